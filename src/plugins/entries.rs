//! The webhook entries of pods, as the API server has them.

use std::time::{Duration, Instant};

use admission::registry::Phase;
use engine::pod::ENTRY;
use engine::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use engine::snapshot::EXCLUDE_LABEL;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::names::{MUTATING, VALIDATING};

/// Passes may follow each other quickly.
const FRESH: Duration = Duration::from_secs(1);

/// The entries of pods, one of each phase.
#[derive(Debug, Clone, Default)]
pub struct PodEntries {
    /// Why the API server does not call for new pods.
    pub fault: Option<String>,
    /// What the installation restricts calls by.
    pub restricted: Option<String>,
}

/// Reads the configurations, at most once in a second.
pub struct EntryReader {
    client: Client,
    last: Option<(Instant, PodEntries)>,
}

impl EntryReader {
    /// A reader that has read nothing.
    pub const fn new(client: Client) -> Self {
        Self { client, last: None }
    }

    /// The entries.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn read(&mut self) -> Result<PodEntries, kube::Error> {
        if let Some((_, known)) = self.last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(known.clone());
        }
        let mutating = self.get::<MutatingWebhookConfiguration>(MUTATING).await?;
        let validating = self.get::<ValidatingWebhookConfiguration>(VALIDATING).await?;
        let entries = judged([(Phase::Mutating, &mutating), (Phase::Validating, &validating)]);
        self.last = Some((Instant::now(), entries.clone()));
        Ok(entries)
    }

    async fn get<C>(&self, name: &str) -> Result<Value, kube::Error>
    where
        C: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
        C: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
    {
        Ok(json!(Api::<C>::all(self.client.clone()).get_opt(name).await?))
    }
}

/// What the entries of pods in these configurations are good for.
pub fn judged<'c>(configurations: impl IntoIterator<Item = (Phase, &'c Value)>) -> PodEntries {
    let mut found = PodEntries::default();
    for (phase, configuration) in configurations {
        let mut entries = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let entry = entries.find(|entry| entry.get("name").is_some_and(|name| name == ENTRY));
        let fault = entry.map_or(Some("is not there"), fault);
        found.fault = found.fault.or_else(|| fault.map(|what| format!("The {phase:?} webhook entry {ENTRY} {what}.")));
        let restriction = entry.and_then(restriction);
        found.restricted =
            found.restricted.or_else(|| restriction.map(|field| format!("{field} of the {phase:?} entry")));
    }
    found
}

fn fault(entry: &Value) -> Option<&'static str> {
    let bundle = entry.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default();
    if bundle.is_empty() {
        return Some("has no caBundle");
    }
    let mut rules = entry.get("rules").and_then(Value::as_array).into_iter().flatten();
    (!rules.any(is_for_new_pods)).then_some("has no rule for the creation of pods")
}

fn is_for_new_pods(rule: &Value) -> bool {
    let has = |field: &str, words: &[&str]| {
        let mut found = rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        found.any(|word| words.contains(&word))
    };
    has("apiGroups", &["", "*"])
        && has("apiVersions", &["v1", "*"])
        && has("operations", &["CREATE", "*"])
        && has("resources", &["pods", "*", "*/*"])
        && rule.get("scope").is_none_or(|scope| scope != "Cluster")
}

/// The field that leaves out pods which Outrider would not leave out itself. The values of the chart can set them.
fn restriction(entry: &Value) -> Option<&'static str> {
    let has = |pointer: &str| {
        entry.pointer(pointer).is_some_and(|value| *value != json!(null) && *value != json!({}) && *value != json!([]))
    };
    let terms = entry.pointer("/namespaceSelector/matchExpressions").and_then(Value::as_array);
    let is_ours = |term: &Value| [NAMESPACE_NAME_LABEL, EXCLUDE_LABEL].iter().any(|key| term["key"] == *key);
    let is_other = has("/namespaceSelector/matchLabels") || terms.into_iter().flatten().any(|term| !is_ours(term));
    let fields = [("objectSelector", has("/objectSelector")), ("namespaceSelector", is_other)];
    fields.into_iter().find_map(|(field, is_set)| is_set.then_some(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Value);

    /// What is said of a configuration whose entry of pods is changed so.
    fn of(change: impl Fn(&mut Value)) -> PodEntries {
        let mut entry = json!({
            "name": ENTRY, "clientConfig": {"caBundle": "eA=="},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"}],
            "namespaceSelector": {"matchExpressions": [{"key": EXCLUDE_LABEL, "operator": "DoesNotExist"}]}, "objectSelector": {},
        });
        change(&mut entry);
        judged([(Phase::Mutating, &json!({"webhooks": [entry]}))])
    }

    #[test]
    fn an_entry_that_is_not_called_for_new_pods_is_a_fault() {
        assert_eq!(of(|_| {}).fault, None);
        let faults: [(Change, &str); 4] = [
            (|entry| entry["name"] = "other".into(), "is not there"),
            (|entry| entry["clientConfig"] = json!({}), "has no caBundle"),
            (|entry| entry["rules"] = json!([]), "has no rule for the creation of pods"),
            (|entry| entry["rules"][0]["operations"] = json!(["UPDATE"]), "has no rule for the creation of pods"),
        ];
        for (change, expected) in faults {
            let found = of(change).fault.unwrap();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn what_the_installation_restricts_is_said() {
        assert_eq!(of(|_| {}).restricted, None);
        let selector = of(|entry| entry["objectSelector"] = json!({"matchLabels": {"a": "b"}}));
        assert_eq!(selector.restricted.unwrap(), "objectSelector of the Mutating entry");
        let selector = of(|entry| entry["namespaceSelector"]["matchLabels"] = json!({"a": "b"}));
        assert_eq!((selector.fault, selector.restricted.is_some()), (None, true));
    }
}
