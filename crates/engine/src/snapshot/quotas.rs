//! What decisions read of `ResourceQuota`s.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::collection::{Change, Collection, Effect};
use crate::plugins::api::ScopeSpec;
use crate::plugins::resource_quota::{Quota, Scope, Values, is_counted};

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
    let plain = scopes.into_iter().flatten().map(|name| Scope {
        name,
        operator: "Exists".to_owned(),
        values: Values::default(),
    });
    let selected = scope_selector.and_then(|selector| selector.match_expressions).into_iter().flatten();
    let hard = status.and_then(|status| status.hard).unwrap_or_default();
    let counted = hard.into_keys().filter(|hard| is_counted(hard));
    Quota { scopes: plain.chain(selected.map(Scope::from)).collect(), hard: counted.map(Into::into).collect() }
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

    /// Takes in a quota.
    pub fn insert(&mut self, key: &QuotaKey, quota: Quota) {
        self.known.entry(key.namespace.clone()).or_default().insert(key.name.clone(), Arc::new(quota));
    }

    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let of_one = |(name, quota): (&String, &Arc<Quota>)| (name.clone(), Arc::new((**quota).clone()));
        let copy = |(namespace, all): (&String, &BTreeMap<_, _>)| (namespace.clone(), all.iter().map(of_one).collect());
        Self { known: self.known.iter().map(copy).collect(), is_complete: self.is_complete }
    }
}

/// Which quota.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Every quota, on its way into snapshots.
#[derive(Debug, Default)]
pub struct QuotaList {
    known: Arc<Quotas>,
}

impl Collection for QuotaList {
    type Object = Change<QuotaKey, Quota>;
    type View = Quotas;

    fn apply(&mut self, change: &Self::Object) -> Effect {
        match change {
            Change::Is(key, quota) => {
                let known = self.known.known.get(&key.namespace).and_then(|all| all.get(&key.name));
                if known.is_some_and(|known| **known == *quota) {
                    return Effect::None;
                }
                Arc::make_mut(&mut self.known).insert(key, quota.clone());
            }
            Change::Gone(key) => {
                if self.known.known.get(&key.namespace).is_none_or(|all| !all.contains_key(&key.name)) {
                    return Effect::None;
                }
                let known = &mut Arc::make_mut(&mut self.known).known;
                if let Some(all) = known.get_mut(&key.namespace) {
                    all.remove(&key.name);
                    if all.is_empty() {
                        known.remove(&key.namespace);
                    }
                }
            }
            Change::Listed if self.known.is_complete => return Effect::None,
            Change::Listed => Arc::make_mut(&mut self.known).is_complete = true,
            Change::Unwatched => self.known = Arc::default(),
        }
        Effect::Decisions
    }

    /// Forgets nothing: a quota is named by two words.
    fn remove(&mut self, _: &str) -> Effect {
        Effect::None
    }

    fn view(&mut self) -> Arc<Quotas> {
        Arc::clone(&self.known)
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
    fn quotas_change_decisions_once_and_are_forgotten_when_no_plugin_reads_them() {
        let key = QuotaKey { namespace: "shop".to_owned(), name: "q".to_owned() };
        let quota = Quota { hard: ["pods".into()].into(), ..Quota::default() };
        let mut list = QuotaList::default();
        let is = Change::Is(key.clone(), quota.clone());
        assert_eq!([list.apply(&is), list.apply(&is)], [Effect::Decisions, Effect::None]);
        assert!(!list.view().is_complete);
        assert_eq!([list.apply(&Change::Listed), list.apply(&Change::Listed)], [Effect::Decisions, Effect::None]);
        let published = list.view();
        assert_eq!(published.of("shop").collect::<Vec<_>>(), [&quota]);
        let gone = Change::Gone(key);
        assert_eq!([list.apply(&gone), list.apply(&gone)], [Effect::Decisions, Effect::None]);
        assert_eq!(list.view().of("shop").count(), 0);
        list.apply(&is);
        list.apply(&Change::Unwatched);
        let nothing = list.view();
        assert!(nothing.of("shop").next().is_none() && !nothing.is_complete);
        assert_eq!(published.of("shop").count(), 1, "what was published stays as it was");
    }
}
