//! Where an object keeps the pods that it makes.
//!
//! Kinds of Kubernetes, and those that have their shape, are known by name. In all others pod templates are found by their shape,
//! and what looks like containers and is no template is named: nothing is passed over in silence.

use admission::field::Path;
use serde_json::Value;

use crate::input::{Identity, group, pod_template};

/// The pod templates of an object.
#[derive(Default)]
pub struct FoundTemplates {
    /// Each with the way to it.
    pub templates: Vec<FoundTemplate>,
    /// The kind is not known: the templates were found by their shape.
    pub by_shape: bool,
    /// What looks like containers and was not looked into: sentences.
    pub passed_over: Vec<String>,
    /// Where the pods come from instead.
    pub elsewhere: Option<String>,
}

/// A pod template, or a pod.
pub struct FoundTemplate {
    /// JSON pointer in the object; empty for the object itself.
    pub pointer: String,
    /// The same as a field path; absent for the object itself.
    pub path: Option<Path>,
}

/// Places that are named one by one.
const PLACES_TOLD: usize = 5;

impl FoundTemplates {
    /// Looks through an object.
    pub fn of(identity: &Identity, object: &Value) -> Self {
        if let Some(at) = pod_template(&identity.api_version, &identity.kind) {
            return Self::known(at, object);
        }
        let mut found = Self { by_shape: true, ..Self::default() };
        if makes_no_pods(identity) {
            return found;
        }
        let mut places = Vec::new();
        if let Value::Object(fields) = object {
            for (key, value) in fields {
                let place = TemplateLocation { pointer: format!("/{}", escaped(key)), path: Path::new(key.clone()) };
                found.search(value, place, key.ends_with("emplate"), &mut places);
            }
        }
        let left_out = places.len().saturating_sub(PLACES_TOLD);
        found.passed_over.extend(places.into_iter().take(PLACES_TOLD));
        if left_out > 0 {
            found.passed_over.push(format!("{left_out} more places with containers were not checked"));
        }
        found
    }

    /// Where the templates are.
    pub fn paths(&self) -> Vec<String> {
        self.templates.iter().filter_map(|template| Some(template.path.as_ref()?.to_string())).collect()
    }

    fn known(at: &'static str, object: &Value) -> Self {
        let is_missing = object.pointer(at).is_none_or(Value::is_null);
        if let (true, Some(Value::Object(reference))) = (is_missing, object.pointer("/spec/workloadRef")) {
            let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            let elsewhere = format!(
                "its pods are made from the template of {} {:?}, which spec.workloadRef names: give that one",
                text("kind"),
                text("name")
            );
            return Self { elsewhere: Some(elsewhere), ..Self::default() };
        }
        let mut fields = at.split('/').skip(1).map(str::to_owned);
        let path = fields.next().map(|first| fields.fold(Path::new(first), |path, field| path.child(field)));
        Self { templates: vec![FoundTemplate { pointer: at.to_owned(), path }], ..Self::default() }
    }

    /// Takes the templates in `value`. The loader bounds how deep objects nest.
    fn search(&mut self, value: &Value, place: TemplateLocation, is_template: bool, places: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(at) = embedded(value) {
                    let at_place = place.below(at);
                    if value.pointer(at).is_some_and(Value::is_object) {
                        self.templates.push(at_place.into());
                        return;
                    }
                }
                if is_template
                    && let Some(containers) = value.pointer("/spec/containers").filter(|list| holds(list, "name"))
                {
                    if holds(containers, "image") {
                        self.templates.push(place.into());
                    } else {
                        places.push(format!(
                            "no container of {} has an image, so its controller must complete it: it is left as it is",
                            place.path
                        ));
                    }
                    return;
                }
                for (key, value) in fields {
                    let inner = place.child(key);
                    if key == "containers" && holds(value, "image") || key == "container" && is_container(value) {
                        places.push(format!(
                            "{} is in no pod template that Outrider can find: it is left as it is",
                            inner.path
                        ));
                        continue;
                    }
                    self.search(value, inner, key.ends_with("emplate") || key.ends_with("emplates"), places);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    self.search(value, place.index(index), is_template, places);
                }
            }
            _ => {}
        }
    }
}

/// The template of an object in an object, as a Template of `OpenShift` or a package of manifests holds them.
fn embedded(value: &Value) -> Option<&'static str> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    pod_template(text("apiVersion")?, text("kind")?)
}

/// Whether a list holds containers that say this.
fn holds(list: &Value, field: &str) -> bool {
    let said = |item: &Value, field: &str| item.get(field).is_some_and(Value::is_string);
    let says = |item: &Value| said(item, field) || (field == "name" && said(item, "image"));
    list.as_array().is_some_and(|items| items.iter().any(says))
}

fn is_container(value: &Value) -> bool {
    value.get("image").is_some_and(Value::is_string)
}

/// Kinds that hold what looks like pods, and make none.
fn makes_no_pods(identity: &Identity) -> bool {
    const POLICIES: [&str; 3] = ["kyverno.io", "policies.kyverno.io", "admissionregistration.k8s.io"];
    let group = group(&identity.api_version);
    match (group, identity.kind.as_str()) {
        ("apps", "ControllerRevision") | ("apiextensions.k8s.io", _) | (_, "SidecarSet") => true,
        _ => POLICIES.contains(&group) || group.ends_with(".gatekeeper.sh"),
    }
}

struct TemplateLocation {
    pointer: String,
    path: Path,
}

impl TemplateLocation {
    fn child(&self, key: &str) -> Self {
        Self { pointer: format!("{}/{}", self.pointer, escaped(key)), path: self.path.child(key.to_owned()) }
    }

    fn index(&self, index: usize) -> Self {
        Self { pointer: format!("{}/{index}", self.pointer), path: self.path.index(index) }
    }

    fn below(&self, pointer: &str) -> Self {
        let fields = pointer.split('/').skip(1);
        let path = fields.fold(self.path.clone(), |path, field| path.child(field.to_owned()));
        Self { pointer: format!("{}{pointer}", self.pointer), path }
    }
}

impl From<TemplateLocation> for FoundTemplate {
    fn from(place: TemplateLocation) -> Self {
        Self { pointer: place.pointer, path: Some(place.path) }
    }
}

/// A key as a step of a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::FoundTemplates;
    use crate::input::identity;

    fn found(mut object: Value) -> (Vec<String>, Vec<String>) {
        object["apiVersion"] = "example.com/v1".into();
        object["kind"] = "Thing".into();
        let found = FoundTemplates::of(&identity(&object).unwrap(), &object);
        for template in &found.templates {
            assert!(object.pointer(&template.pointer).is_some(), "{}", template.pointer);
        }
        let paths = found.templates.into_iter().map(|template| template.path.unwrap().to_string());
        (paths.collect(), found.passed_over)
    }

    #[test]
    fn templates_are_found_at_any_depth_and_several_in_one_object() {
        let template = json!({"spec": {"containers": [{"name": "a", "image": "i"}]}});
        let object = json!({
            "template": template,
            "spec": {
                "a/b~c": [{"template": {"spec": {"template": template}}}],
                "podTemplates": [template, {"x": 1}, template],
                "objects": [{"apiVersion": "v1", "kind": "Pod", "spec": {}}],
            },
        });
        let expected = [
            "spec.a/b~c[0].template.spec.template",
            "spec.objects[0]",
            "spec.podTemplates[0]",
            "spec.podTemplates[2]",
            "template",
        ];
        let (mut paths, passed_over) = found(object);
        paths.sort();
        assert_eq!((paths, passed_over), (expected.map(str::to_owned).to_vec(), vec![]));
    }

    #[test]
    fn what_is_no_template_and_holds_containers_is_named() {
        let container = json!({"name": "a", "image": "i"});
        let table = [
            (json!({"spec": {"containers": [container]}}), "spec.containers is in no pod template"),
            (json!({"spec": {"templates": [{"container": container}]}}), "spec.templates[0].container is in no"),
            (
                json!({"spec": {"podTemplate": {"spec": {"containers": [{"name": "a"}]}}}}),
                "no container of spec.podTemplate has an image",
            ),
        ];
        for (object, expected) in table {
            let (paths, passed_over) = found(object.clone());
            assert_eq!(paths, Vec::<String>::new(), "{object}");
            assert!(passed_over.len() == 1 && passed_over[0].starts_with(expected), "{passed_over:?}");
        }
        let many: Vec<Value> = (0..9).map(|_| json!({"containers": [container]})).collect();
        let (_, passed_over) = found(json!({"spec": many}));
        assert_eq!((passed_over.len(), passed_over[5].as_str()), (6, "4 more places with containers were not checked"));
    }

    #[test]
    fn objects_without_pods_hold_none() {
        for object in [
            json!({"spec": {"template": {"spec": {"containers": []}}}}),
            json!({"spec": {"containers": {"name": "a", "image": "i"}}}),
            json!({"data": {"template": "spec"}}),
        ] {
            assert_eq!(found(object.clone()), (vec![], vec![]), "{object}");
        }
    }
}
