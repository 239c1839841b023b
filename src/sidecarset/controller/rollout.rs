//! Carries out rollouts: asks the planner which pods are next, and changes these.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::timeout;

use crate::answers::{NoAnswer, REQUEST_TIMEOUT, said};
use crate::sidecarset::controller::change::{Outcome, PodChanger};
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::members::Members;
use crate::sidecarset::controller::memory::{Memory, What};
use crate::sidecarset::controller::pods::PodKey;
use crate::sidecarset::controller::record::PodRecord;
use crate::sidecarset::rollout::strategy::Strategy;
use crate::sidecarset::rollout::{Disruption, Plan, PodState, Waits, plan};
use admission::format::selector::LabelSelector;
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::Snapshot;

/// Pods of one set that are changed at one time.
const AT_ONCE: usize = 8;
/// Pods that one reconcile of a set changes, or tries to change, at most: other sets wait for their turn.
const MOST: usize = 64;
/// How long a list of budgets is good for: several sets that change at one time share it. It is short, as a new budget is to be kept
/// from the moment that it exists; and budgets are listed only when a pod could be changed.
const LIST_FRESH: Duration = Duration::from_millis(100);
/// When a set that waits for a `PodDisruptionBudget` is reconciled again: budgets are not watched.
const DISRUPTION_PAUSE: Duration = Duration::from_secs(2);
/// When a set with pods in flight is reconciled again, in case the watch never reports them.
const IN_FLIGHT_PAUSE: Duration = Duration::from_secs(30);

/// What came of looking at a set.
#[derive(Debug)]
pub struct Result {
    /// Why no more pods are touched now.
    pub waits: Waits,
    /// When to look again if nothing happens before.
    pub again: Option<Duration>,
}

/// Carries out rollouts.
pub struct Rollouts {
    changer: PodChanger,
    budgets: Api<PodDisruptionBudget>,
    listed: Mutex<Listed>,
    memories: Mutex<Memories>,
}

/// Budgets, and when they were listed.
type Listed = Option<(Instant, Arc<Vec<Disruption>>)>;
/// By set.
type Memories = BTreeMap<Arc<str>, Arc<Mutex<Memory>>>;

impl Rollouts {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self {
            changer: PodChanger::new(client.clone()),
            budgets: Api::all(client),
            listed: Mutex::default(),
            memories: Mutex::default(),
        }
    }

    /// What is remembered of the pods of a set.
    pub fn memory(&self, set: &str) -> Arc<Mutex<Memory>> {
        Arc::clone(locked(&self.memories).entry(set.into()).or_default())
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.memories).remove(set);
    }

    /// Touches the pods of a set that are next.
    pub async fn run(&self, set: &CompiledSet, members: &Members, snapshot: &Snapshot) -> Result {
        let (strategy, memory) = (Strategy::of(set.update_strategy()), self.memory(&set.name));
        let mut tried = 0;
        let waits = loop {
            let Some(planned) = self.plan(set, members, &strategy, &memory).await else {
                // Without the budgets nothing is touched.
                return Result { waits: Waits::Failed, again: Some(DISRUPTION_PAUSE) };
            };
            let Plan { update, waits } = planned;
            if update.is_empty() {
                break waits;
            } else if tried >= MOST {
                break Waits::Nothing;
            }
            let update: Vec<usize> = update.into_iter().take(MOST.saturating_sub(tried)).collect();
            tried = tried.saturating_add(update.len());
            self.carry_out(set, members, &update, snapshot, &memory).await;
        };
        self.clear(set, members).await;
        let again = again(&waits, &locked(&memory), Instant::now());
        Result { waits, again }
    }

    /// Clears the condition of pods that have the current form: the set may have got back the one that they have.
    async fn clear(&self, set: &CompiledSet, members: &Members) {
        let has_it = |pod: &PodRecord| pod.is_refused(&set.name) && pod.hash_of(&set.name) == Some(&*set.hash);
        let pods = members.carrying.iter().filter(|(_, pod)| has_it(pod)).take(MOST);
        let cleared: Vec<_> = pods.map(|(key, pod)| self.changer.clear(&set.name, key, pod.facts.uid)).collect();
        futures::stream::iter(cleared).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    }

    /// The next pods; nothing where the disruption budgets are not known.
    async fn plan(
        &self,
        set: &CompiledSet,
        members: &Members,
        strategy: &Strategy,
        memory: &Mutex<Memory>,
    ) -> Option<Plan> {
        let now = Instant::now();
        let states = |memory: &Memory| -> Vec<PodState<'_>> {
            members.carrying.iter().map(|member| memory.state(&set.name, &set.hash, member, now)).collect()
        };
        {
            let mut memory = locked(memory);
            memory.prune(&set.name, &set.hash, &members.carrying, now);
            // Most sets have nothing to do, and need no budgets.
            let pods = states(&memory);
            let planned = plan(&pods, strategy, &[]);
            if planned.update.is_empty() {
                return Some(planned);
            }
        }
        let disruptions = self.disruptions().await?;
        let mut disruptions = (*disruptions).clone();
        for disruption in &mut disruptions {
            let elsewhere = members.unsettled_elsewhere.iter();
            let about = elsewhere
                .filter(|(key, labels)| *key.namespace == disruption.namespace && disruption.selector.matches(labels));
            let about = i32::try_from(about.count()).unwrap_or(i32::MAX);
            disruption.allowed = disruption.allowed.saturating_sub(about);
        }
        let pods = states(&locked(memory));
        Some(plan(&pods, strategy, &disruptions))
    }

    async fn carry_out(
        &self,
        set: &CompiledSet,
        members: &Members,
        update: &[usize],
        snapshot: &Snapshot,
        memory: &Mutex<Memory>,
    ) {
        let pods = update.iter().filter_map(|position| members.carrying.get(*position));
        let changes: Vec<_> = pods.map(|pod| self.change(set, pod, snapshot)).collect();
        let mut changes = futures::stream::iter(changes).buffer_unordered(AT_ONCE);
        while let Some((key, uid, outcome)) = changes.next().await {
            let (namespace, name, now) = (&*key.namespace, &*key.name, Instant::now());
            tracing::debug!(namespace, name, ?outcome, "Pod of a rollout");
            let mut memory = locked(memory);
            match outcome {
                // The watch has not shown yet what it has.
                Outcome::Changed => memory.note(key, uid, &set.hash, What::Touched(now)),
                Outcome::HasIt => memory.note(key, uid, &set.hash, What::HasIt),
                // The watch shows it soon: planned again then.
                Outcome::Gone | Outcome::Stale => memory.note_wait(key, uid, &set.hash, now),
                Outcome::OpenKruise => memory.note(key, uid, &set.hash, What::OpenKruise),
                Outcome::NewPodOnly(why) => memory.note(key, uid, &set.hash, What::NewPodOnly(why)),
                Outcome::Failed(why) => {
                    tracing::warn!(namespace, name, why, "A pod cannot be changed, trying again");
                    memory.note_failure(key, uid, &set.hash, why, now);
                }
            }
        }
    }

    /// What becomes of a pod, with its key and its uid.
    async fn change<'m>(
        &self,
        set: &CompiledSet,
        (key, pod): &'m (PodKey, PodRecord),
        snapshot: &Snapshot,
    ) -> (&'m PodKey, u64, Outcome) {
        let uid = pod.facts.uid;
        let outcome = self.changer.update(set, key, (uid, !pod.ready), snapshot).await;
        (key, uid, outcome)
    }

    /// All `PodDisruptionBudget`s.
    async fn disruptions(&self) -> Option<Arc<Vec<Disruption>>> {
        let listed = locked(&self.listed).clone();
        if let Some((_, disruptions)) = listed.filter(|(at, _)| at.elapsed() < LIST_FRESH) {
            return Some(disruptions);
        }
        let list = async { self.budgets.list(&ListParams::default()).await.map_err(|error| said(&error)) };
        let found =
            match timeout(REQUEST_TIMEOUT, list).await.unwrap_or_else(|_| Err(NoAnswer(REQUEST_TIMEOUT).to_string())) {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(error, "PodDisruptionBudgets cannot be listed; no pod is changed");
                    return None;
                }
            };
        let disruptions: Arc<Vec<Disruption>> = Arc::new(found.items.iter().filter_map(disruption).collect());
        *locked(&self.listed) = Some((Instant::now(), Arc::clone(&disruptions)));
        Some(disruptions)
    }
}

/// A budget as the planner has it. One without a selector is about no pod; one whose controller has not observed its current
/// generation allows nothing, as the API server itself has it.
fn disruption(budget: &PodDisruptionBudget) -> Option<Disruption> {
    let selector = serde_json::to_value(budget.spec.as_ref()?.selector.as_ref()?).ok()?;
    let selector = serde_json::from_value::<LabelSelector>(selector).ok()?.compile().ok()?;
    let status = budget.status.as_ref();
    let is_current = status.is_some_and(|status| status.observed_generation >= budget.metadata.generation);
    Some(Disruption {
        namespace: budget.metadata.namespace.clone().unwrap_or_default(),
        name: budget.metadata.name.clone().unwrap_or_default(),
        selector,
        allowed: status.filter(|_| is_current).and_then(|status| status.disruptions_allowed).unwrap_or_default(),
    })
}

/// When to look again.
fn again(waits: &Waits, memory: &Memory, now: Instant) -> Option<Duration> {
    let by_state = match waits {
        Waits::Nothing => Some(Duration::ZERO),
        Waits::Disruption(..) => Some(DISRUPTION_PAUSE),
        Waits::MaxUnavailable(_) | Waits::MaxUnavailablePerOwner => Some(IN_FLIGHT_PAUSE),
        _ => None,
    };
    let paused = memory.next_try().map(|until| until.saturating_duration_since(now));
    [by_state, paused].into_iter().flatten().min()
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
        let all = budget(json!({"selector": {}}), status(2)).unwrap();
        assert!(all.selector.requirements().is_empty());
    }

    #[test]
    fn what_no_event_tells_of_is_looked_at_again() {
        let (memory, now) = (Memory::default(), Instant::now());
        let again = |waits: Waits| again(&waits, &memory, now);
        assert_eq!(again(Waits::Nothing), Some(Duration::ZERO));
        assert_eq!(again(Waits::Disruption(String::new(), String::new())), Some(DISRUPTION_PAUSE));
        assert_eq!(again(Waits::MaxUnavailable(1)), Some(IN_FLIGHT_PAUSE));
        for waits in [Waits::Done, Waits::Paused, Waits::NotUpdate, Waits::Kept, Waits::NewPodOnly] {
            assert_eq!(again(waits), None);
        }
    }
}
