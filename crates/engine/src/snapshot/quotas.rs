//! What decisions read of `ResourceQuota`s.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::while_read::WhileRead;
use crate::plugins::api::ScopeSpec;
use crate::plugins::resource_quota::{Quota, QuotaScope, Values, is_counted};

/// What is read of the spec of a quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuotaSpec {
    scopes: Option<Vec<String>>,
    scope_selector: Option<ScopeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScopeSelector {
    match_expressions: Option<Vec<ScopeSpec>>,
}

/// What is read of the status of a quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(clippy::zero_sized_map_values, reason = "a map in the API, of which only the keys are read")]
pub struct QuotaStatus {
    hard: Option<BTreeMap<String, IgnoredAny>>,
}

/// What decisions read of a quota.
pub fn read(spec: Option<QuotaSpec>, status: Option<QuotaStatus>) -> Quota {
    let QuotaSpec { scopes, scope_selector } = spec.unwrap_or_default();
    let plain = scopes.into_iter().flatten().map(|name| QuotaScope {
        name,
        operator: "Exists".to_owned(),
        values: Values::default(),
    });
    let selected = scope_selector.and_then(|selector| selector.match_expressions).into_iter().flatten();
    let hard = status.and_then(|status| status.hard).unwrap_or_default();
    let counted = hard.into_keys().filter(|hard| is_counted(hard));
    Quota { scopes: plain.chain(selected.map(QuotaScope::from)).collect(), hard: counted.map(Into::into).collect() }
}

/// Every quota that has been seen, by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    known: HashMap<String, BTreeMap<String, Arc<Quota>>>,
    /// Whether all quotas that there are have been seen. They are watched only while a plugin reads them.
    pub is_complete: bool,
}

impl Quotas {
    /// Those of a namespace, by name.
    pub fn of<'q>(&'q self, namespace: &str) -> impl Iterator<Item = &'q Quota> + Clone + use<'q> {
        self.known.get(namespace).into_iter().flatten().map(|(_, quota)| &**quota)
    }

    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let of_one = |(name, quota): (&String, &Arc<Quota>)| (name.clone(), Arc::new((**quota).clone()));
        let copy = |(namespace, all): (&String, &BTreeMap<_, _>)| (namespace.clone(), all.iter().map(of_one).collect());
        Self { known: self.known.iter().map(copy).collect(), is_complete: self.is_complete }
    }
}

/// By which a change names the `ResourceQuota` that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl WhileRead for Quotas {
    type Key = QuotaKey;
    type Value = Arc<Quota>;

    fn get(&self, key: &QuotaKey) -> Option<&Arc<Quota>> {
        self.known.get(&key.namespace)?.get(&key.name)
    }

    fn insert(&mut self, key: QuotaKey, quota: Arc<Quota>) {
        self.known.entry(key.namespace).or_default().insert(key.name, quota);
    }

    fn remove(&mut self, key: &QuotaKey) {
        let Some(all) = self.known.get_mut(&key.namespace) else { return };
        all.remove(&key.name);
        if all.is_empty() {
            self.known.remove(&key.namespace);
        }
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn complete(&mut self) {
        self.is_complete = true;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_quota_covers_is_read_from_both_places_of_scopes_and_from_the_status() {
        let spec = json!({"hard": {"pods": "1", "cpu": "1"}, "scopes": ["BestEffort"], "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}});
        let status = json!({"hard": {"pods": "1", "count/widgets.example.com": "1"}, "used": {"pods": "0"}});
        let found = read(serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap());
        let scopes: Vec<String> = found.scopes.iter().map(ToString::to_string).collect();
        assert_eq!(scopes, ["{BestEffort Exists []}", "{PriorityClass In [high]}"]);
        assert_eq!(found.hard, ["pods".into()].into(), "what counts neither pods nor claims nor services is not kept");
    }

    #[test]
    fn quotas_are_known_by_namespace_and_a_namespace_without_any_is_forgotten() {
        let key = QuotaKey { namespace: "shop".to_owned(), name: "q".to_owned() };
        let quota = Quota { hard: ["pods".into()].into(), ..Quota::default() };
        let mut quotas = Quotas::default();
        quotas.insert(key.clone(), Arc::new(quota.clone()));
        assert_eq!(quotas.of("shop").collect::<Vec<_>>(), [&quota]);
        quotas.remove(&key);
        assert!(quotas.known.is_empty() && quotas.get(&key).is_none());
    }
}
