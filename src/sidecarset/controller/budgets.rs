//! Lists of `PodDisruptionBudget`s.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::answers::{in_time, next_page, said};
use crate::sidecarset::rollout::{Disruption, Disruptions};
use crate::watch::deployment::SelectorText;
use crate::watch::partial::Partial;

/// How long a list is good for: several sets that change at one time share it. It is short, as a new budget is to be kept from the
/// moment that it exists; and budgets are listed only when a pod could be changed.
const LIST_FRESH: Duration = Duration::from_millis(100);
/// Objects in one page of the list.
/// Each may be as large as an object can be, and a page is held as text and as values.
const PAGE: u32 = 50;

/// A `PodDisruptionBudget` as it is listed.
type Budget = Partial<PodDisruptionBudget, Spec, Status>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Spec {
    selector: Option<Readable>,
}

/// A selector, or none where it is longer than any that is kept: then the budget is about every pod of its namespace, and allows nothing.
#[derive(Debug, Clone)]
struct Readable(Option<SelectorText>);

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(text.get()).ok()))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: Option<i64>,
    disruptions_allowed: Option<i32>,
}

/// The budgets of all namespaces.
pub struct DisruptionBudgets {
    api: Api<Budget>,
    listed: Option<(Instant, Arc<Disruptions>)>,
}

impl DisruptionBudgets {
    /// Listed with this client.
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), listed: None }
    }

    /// As they were a moment ago at most.
    ///
    /// # Errors
    /// Why they cannot be listed.
    pub async fn fresh(&mut self) -> Result<Arc<Disruptions>, String> {
        if let Some((_, disruptions)) = self.listed.as_ref().filter(|(at, _)| at.elapsed() < LIST_FRESH) {
            return Ok(Arc::clone(disruptions));
        }
        match in_time(self.list()).await {
            Ok(found) => {
                let disruptions = Arc::new(found);
                self.listed = Some((Instant::now(), Arc::clone(&disruptions)));
                Ok(disruptions)
            }
            Err(error) => {
                tracing::warn!(error, "PodDisruptionBudgets cannot be listed; no pod is changed");
                Err(error)
            }
        }
    }

    async fn list(&self) -> Result<Disruptions, String> {
        let (mut found, mut next) = (Vec::new(), Some(ListParams::default().limit(PAGE)));
        while let Some(params) = next {
            let page = self.api.list(&params).await.map_err(|error| said(&error))?;
            next = next_page(params, &page.metadata);
            found.extend(page.items.iter().filter_map(disruption));
        }
        Ok(Disruptions::of(found))
    }
}

/// A budget as the planner has it. One without a selector is about no pod; one whose controller has not observed its current
/// generation allows nothing, as the API server itself has it.
fn disruption(budget: &Budget) -> Option<Disruption> {
    let Readable(written) = budget.spec.as_ref()?.selector.as_ref()?;
    let selector = written.as_ref().map(SelectorText::decoded).unwrap_or_default().compile().ok()?;
    let status = budget.status.as_ref();
    let is_current = status.is_some_and(|status| status.observed_generation >= budget.meta().generation);
    let is_current = is_current && written.is_some();
    Some(Disruption {
        namespace: budget.namespace().unwrap_or_default(),
        name: budget.name_any(),
        selector,
        allowed: status.filter(|_| is_current).and_then(|status| status.disruptions_allowed).unwrap_or_default(),
    })
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn budget(spec: Value, status: Value) -> Option<Disruption> {
        let metadata = json!({"namespace": "n", "name": "b", "generation": 2});
        disruption(&serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap())
    }

    #[test]
    fn a_disruption_budget_allows_what_its_status_says_once_its_controller_has_seen_it() {
        let selected = json!({"selector": {"matchLabels": {"app": "web"}}});
        let status = |observed: i64| json!({"observedGeneration": observed, "disruptionsAllowed": 3, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1});
        assert_eq!(budget(selected.clone(), status(2)).unwrap().allowed, 3);
        assert_eq!(budget(selected.clone(), status(1)).unwrap().allowed, 0);
        assert_eq!(budget(selected, Value::Null).unwrap().allowed, 0);
        assert!(budget(json!({}), status(2)).is_none(), "without a selector it is about no pod");
        let labels: serde_json::Map<_, _> = (0..10_000).map(|n| (n.to_string(), "a".into())).collect();
        let long = budget(json!({"selector": {"matchLabels": labels}}), status(2)).unwrap();
        assert!(long.selector.requirements().is_empty() && long.allowed == 0, "it may be about any pod");
        let all = budget(json!({"selector": {}}), status(2)).unwrap();
        assert!(all.selector.requirements().is_empty());
    }
}
