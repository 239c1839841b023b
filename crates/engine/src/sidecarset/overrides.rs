//! `spec.podOverrides`: what a pod may change of a set's containers for itself.

use std::collections::{BTreeMap, BTreeSet};

use admission::format::Quantity;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::sidecarset::api::{PodOverrides as Written, RawObject};
use crate::sidecarset::mark;
use crate::sidecarset::needs::quantities;
use crate::sidecarset::resources::set_amount;

/// On a pod: JSON, by container of a set what is another in this pod: `image`, `env` (values by name) and `resources`.
pub const OVERRIDES_ANNOTATION: &str = concat!(api_domain!(), "/overrides");

/// The longest tag of an image, in bytes.
const TAG_MAX: usize = 128;

/// What pods may change.
#[derive(Debug, Clone, Default)]
pub struct CompiledOverrides {
    // None where all containers are meant.
    names: Option<BTreeSet<String>>,
    min: BTreeMap<String, Quantity>,
    max: BTreeMap<String, Quantity>,
    env: BTreeSet<String>,
    image_tag: bool,
}

/// What a pod asks for and may not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAllowed {
    /// The field, such as `resources.limits[cpu]`; empty for the container as a whole.
    pub field: String,
    /// The reason, for a message.
    pub why: String,
}

impl NotAllowed {
    fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), why: why.into() }
    }
}

impl CompiledOverrides {
    /// Those of a set.
    pub fn of(written: &Written) -> Self {
        let bounds = written.resources.clone().unwrap_or_default();
        let amounts = |map: Option<RawObject>| quantities(map.map(Value::Object).as_ref());
        Self {
            names: written.container_names.as_ref().map(|names| names.iter().cloned().collect()),
            min: amounts(bounds.min),
            max: amounts(bounds.max),
            env: written.env.iter().flatten().cloned().collect(),
            image_tag: written.image_tag.unwrap_or_default(),
        }
    }

    /// Changes a container as the pod asks for it.
    ///
    /// # Errors
    /// [`NotAllowed`] for the first thing that the pod may not change; the container may be changed in part then.
    pub fn apply(&self, name: &str, asked: &Value, container: &mut RawObject) -> Result<(), NotAllowed> {
        let Value::Object(asked) = asked else { return Err(NotAllowed::new("", "must be a map of fields")) };
        if self.names.as_ref().is_some_and(|names| !names.contains(name)) {
            return Err(NotAllowed::new("", "the set lets pods change other containers alone"));
        }
        for (field, value) in asked {
            match field.as_str() {
                "image" => self.image(value, container)?,
                "env" => self.variables(value, container)?,
                "resources" => self.resources(value, container)?,
                _ => return Err(NotAllowed::new(field, "only image, env and resources may be changed")),
            }
        }
        Ok(())
    }

    fn image(&self, asked: &Value, container: &mut RawObject) -> Result<(), NotAllowed> {
        if !self.image_tag {
            return Err(NotAllowed::new("image", "the set does not let pods change it (spec.podOverrides.imageTag)"));
        }
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        let repository = split_tag(image.split_once('@').map_or(image, |(tagged, _)| tagged)).0;
        match asked.as_str().map(split_tag) {
            Some((other, Some(tag))) if other == repository && is_tag(tag) => {
                container.insert("image".to_owned(), asked.clone());
                Ok(())
            }
            _ => Err(NotAllowed::new("image", format!("must be {repository:?} with a tag and without a digest"))),
        }
    }

    fn variables(&self, asked: &Value, container: &mut RawObject) -> Result<(), NotAllowed> {
        let Value::Object(asked) = asked else {
            return Err(NotAllowed::new("env", "must be a map from names of variables to values"));
        };
        let mut left: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, value) in asked {
            let field = format!("env[{name}]");
            // A set may have been stored while no webhook checked it.
            if !self.env.contains(name) || name == mark::NAME {
                return Err(NotAllowed::new(field, "the set does not let pods change it (spec.podOverrides.env)"));
            }
            let Value::String(value) = value else { return Err(NotAllowed::new(field, "must be a string")) };
            left.insert(name, value);
        }
        let env = container.entry("env").or_insert(Value::Null);
        if env.is_null() {
            *env = json!([]);
        }
        let Value::Array(env) = env else { return Ok(()) };
        let new = |name: &str, value: &str| json!({"name": name, "value": value});
        for variable in env.iter_mut() {
            let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
            if let Some((name, value)) = left.remove_entry(name) {
                *variable = new(name, value);
            }
        }
        // In front, so that the container's own may refer to them.
        env.splice(0..0, left.into_iter().map(|(name, value)| new(name, value)));
        Ok(())
    }

    fn resources(&self, asked: &Value, container: &mut RawObject) -> Result<(), NotAllowed> {
        let Value::Object(asked) = asked else { return Err(NotAllowed::new("resources", "must be a map")) };
        for (list, amounts) in asked {
            let list_field = format!("resources.{list}");
            if !matches!(list.as_str(), "limits" | "requests") {
                return Err(NotAllowed::new(list_field, "only limits and requests may be changed"));
            }
            let Value::Object(amounts) = amounts else { return Err(NotAllowed::new(list_field, "must be a map")) };
            for (name, amount) in amounts {
                let field = format!("{list_field}[{name}]");
                let asked = self.amount(name, amount, list == "limits").map_err(|why| NotAllowed::new(field, why))?;
                set_amount(container, list, name, asked);
            }
        }
        check_limits(container, asked)
    }

    /// The amount, where it is within the bounds.
    fn amount(&self, name: &str, asked: &Value, is_limit: bool) -> Result<Value, String> {
        let Some(max) = self.max.get(name) else {
            return Err("the set does not let pods change it (spec.podOverrides.resources.max)".to_owned());
        };
        let mut amount = Quantity::deserialize(asked).map_err(|error| error.to_string())?;
        amount.round_up_to_milli();
        let is_below = self.min.get(name).map_or_else(|| amount.is_negative(), |min| amount < *min);
        if is_below || amount > *max {
            let min = self.min.get(name).cloned().unwrap_or(Quantity::ZERO);
            return Err(format!("must be from {min} to {max}"));
        }
        // The kubelet sets none for it.
        if is_limit && amount == Quantity::ZERO {
            return Err(format!("a limit of 0 is none; must be above 0 and at most {max}"));
        }
        Ok(amount.to_string().into())
    }
}

/// A request above the limit is what the API server refuses. What is named is what the pod asks for.
fn check_limits(container: &RawObject, asked: &RawObject) -> Result<(), NotAllowed> {
    let amounts = |list: &str| quantities(container.get("resources").and_then(|resources| resources.get(list)));
    let limits = amounts("limits");
    let requests = amounts("requests");
    let above = requests.iter().find_map(|(name, request)| {
        let limit = limits.get(name).filter(|limit| request > *limit)?;
        Some((name, request, limit))
    });
    let Some((name, request, limit)) = above else { return Ok(()) };
    let is_asked = |list: &str| asked.get(list).is_some_and(|amounts| amounts.get(name).is_some());
    Err(if is_asked("requests") || !is_asked("limits") {
        NotAllowed::new(format!("resources.requests[{name}]"), format!("{request} is above the limit {limit}"))
    } else {
        let why = format!("{limit} is below the container's request {request}; lower resources.requests[{name}], too");
        NotAllowed::new(format!("resources.limits[{name}]"), why)
    })
}

/// The repository and the tag.
fn split_tag(image: &str) -> (&str, Option<&str>) {
    match image.rsplit_once(':') {
        // A colon before a slash is that of the registry's port.
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (image, None),
    }
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_MAX
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn overrides() -> CompiledOverrides {
        let written = json!({
            "containerNames": ["proxy"], "env": ["LEVEL", "NEW"], "imageTag": true,
            "resources": {"min": {"cpu": "10m"}, "max": {"cpu": "2", "memory": "1Gi"}},
        });
        CompiledOverrides::of(&serde_json::from_value(written).unwrap())
    }

    fn applied(image: &str, asked: &Value) -> Result<Value, String> {
        let container = json!({
            "name": "proxy", "image": image, "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
            "env": [{"name": "LEVEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "IS_INJECTED", "value": "true"}],
        });
        let mut container = container.as_object().unwrap().clone();
        match overrides().apply("proxy", asked, &mut container) {
            Ok(()) => Ok(Value::Object(container)),
            Err(fault) => Err(format!("{}: {}", fault.field, fault.why)),
        }
    }

    #[test]
    fn what_is_listed_may_be_changed_within_its_bounds() {
        let asked = json!({
            "image": "registry:5000/proxy:2.1-rc_1", "env": {"LEVEL": "debug", "NEW": ""},
            "resources": {"limits": {"cpu": 2}, "requests": {"cpu": "10m", "memory": "64Mi"}},
        });
        let changed = applied("registry:5000/proxy:1", &asked).unwrap();
        assert_eq!(changed["image"], "registry:5000/proxy:2.1-rc_1");
        assert_eq!(
            changed["env"],
            json!([{"name": "NEW", "value": ""}, {"name": "LEVEL", "value": "debug"}, {"name": "IS_INJECTED", "value": "true"}])
        );
        assert_eq!(
            changed["resources"],
            json!({"limits": {"cpu": "2", "memory": "64Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}})
        );
        for image in ["proxy", "proxy@sha256:0123", "proxy:1@sha256:0123"] {
            assert_eq!(applied(image, &json!({"image": "proxy:2"})).unwrap()["image"], "proxy:2", "{image}");
        }
        assert!(applied("proxy:1", &json!({})).is_ok());
    }

    #[test]
    fn anything_else_is_named_by_its_field() {
        for (asked, expected) in [
            (json!("x"), ": must be a map of fields"),
            (json!({"command": ["sh"]}), "command: only image, env and resources may be changed"),
            (json!({"image": "evil:1"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "proxy"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "proxy:"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "proxy:a b"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "proxy:2@sha256:0"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "other/proxy:1"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": "proxy:5000/evil"}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"image": 1}), "image: must be \"proxy\" with a tag and without a digest"),
            (json!({"env": [{"name": "LEVEL"}]}), "env: must be a map from names of variables to values"),
            (
                json!({"env": {"LD_PRELOAD": "x"}}),
                "env[LD_PRELOAD]: the set does not let pods change it (spec.podOverrides.env)",
            ),
            (json!({"env": {"LEVEL": 1}}), "env[LEVEL]: must be a string"),
            (json!({"resources": {"limits": {"cpu": "3"}}}), "resources.limits[cpu]: must be from 10m to 2"),
            (json!({"resources": {"requests": {"cpu": "1m"}}}), "resources.requests[cpu]: must be from 10m to 2"),
            (json!({"resources": {"requests": {"memory": "-1"}}}), "resources.requests[memory]: must be from 0 to 1Gi"),
            (
                json!({"resources": {"requests": {"cpu": "1500m"}}}),
                "resources.requests[cpu]: 1500m is above the limit 1",
            ),
            (
                json!({"resources": {"limits": {"nvidia.com/gpu": 1}}}),
                "resources.limits[nvidia.com/gpu]: the set does not let pods change it (spec.podOverrides.resources.max)",
            ),
            (json!({"resources": {"claims": []}}), "resources.claims: only limits and requests may be changed"),
            (json!({"resources": {"limits": []}}), "resources.limits: must be a map"),
        ] {
            assert_eq!(applied("proxy:1", &asked).unwrap_err(), expected, "{asked}");
        }
        // Of a container with a request, which the pod leaves as it is.
        let mut with_request = json!({"resources": {"requests": {"cpu": "500m"}}}).as_object().unwrap().clone();
        let low = overrides().apply("proxy", &json!({"resources": {"limits": {"cpu": "200m"}}}), &mut with_request);
        let low = low.unwrap_err();
        assert_eq!(low.field, "resources.limits[cpu]");
        assert_eq!(low.why, "200m is below the container's request 500m; lower resources.requests[cpu], too");
        let marked = json!({"env": ["IS_INJECTED"]});
        let marked = CompiledOverrides::of(&serde_json::from_value(marked).unwrap());
        let unmark = marked.apply("proxy", &json!({"env": {"IS_INJECTED": "false"}}), &mut RawObject::new());
        assert_eq!(unmark.unwrap_err().field, "env[IS_INJECTED]");
        let none = CompiledOverrides::default().apply("proxy", &json!({"image": "proxy:2"}), &mut RawObject::new());
        assert_eq!(none.unwrap_err().field, "image");
        let other = overrides().apply("other", &json!({}), &mut RawObject::new());
        assert_eq!(other.unwrap_err().why, "the set lets pods change other containers alone");
    }
}
