//! Keeps the statuses of objects that decisions are taken from: whether each can be used, and whether the API server calls for it. Only the
//! leader does.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::demand::Demand;
use engine::sidecarset::narrowing::NarrowingRule;
use engine::snapshot::Snapshot;
use engine::snapshot::policies::Record;
use jiff::Timestamp;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use super::entries::EntryReader;
pub use super::entries::PodEntries;
pub use crate::answers::RequestError;
use crate::answers::answer;
use crate::controller::Context;
use crate::controller::conditions::Statement;
use crate::field_managers::patching;
use crate::logging::throttle::LogThrottle;
use crate::metrics::ReconcileResult;
use crate::watch::coverage::Coverage;
use crate::watch::in_order::InOrder;
use crate::watch::partial::Partial;
use crate::watch::read_model::ReadModel;

/// When to check an object again that waits for its entries.
const SOON: Duration = Duration::from_secs(1);
/// When to check the others again: another object, or a person who edits the webhook configurations, may have changed the result.
const LATER: Duration = Duration::from_secs(15);

/// Objects are often applied many at a time, and namespaces change all the time.
const GATHER: Duration = Duration::from_millis(200);

/// The reason of what waits for its entries.
pub const PENDING: &str = "Pending";

/// The statuses of one kind.
pub trait Statuses: Send {
    /// Name of the controller in logs, metrics and the flag `--controllers`.
    const NAME: &'static str;
    /// The kind, for log lines.
    const KIND: &'static str;

    /// Reconciles every object, and returns when to do so again; none where there is no object.
    fn pass(&mut self, keeper: &mut Keeper) -> impl Future<Output = Result<Option<Duration>, RequestError>> + Send;
}

/// Keeps statuses until the term of the context ends.
///
/// It reads what decisions read, and has no watch of its own: a cluster without the definition has no objects, and no fault.
pub async fn keep<S: Statuses>(context: Context, mut statuses: S) {
    let Context { client, metrics, term, model, coverage, mut in_order, .. } = context;
    let mut keeper =
        Keeper { entries: EntryReader::new(client.clone()), client, model, coverage, in_order: in_order.clone() };
    let work = async {
        keeper.model.published().await;
        let (mut publications, counted) = (keeper.model.publications(), metrics.controller(S::NAME));
        let mut backends = keeper.model.images.changes();
        let mut throttle = LogThrottle::default();
        loop {
            let begun = Instant::now();
            let pause = match statuses.pass(&mut keeper).await {
                Ok(pause) => {
                    throttle.over();
                    if pause.is_some() {
                        counted.reconciled(ReconcileResult::success, begun.elapsed());
                    }
                    pause.unwrap_or(LATER)
                }
                Err(error) => {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "The status of {}s cannot be written, trying again", S::KIND);
                    }
                    counted.reconciled(ReconcileResult::error, begun.elapsed());
                    SOON
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                changed = publications.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                    sleep(GATHER).await;
                }
                Ok(()) = in_order.changed() => {}
                () = backends.next() => {}
            }
        }
    };
    let _ended = term.until_ending(work).await;
}

/// What statuses are found and written with.
pub struct Keeper {
    client: Client,
    entries: EntryReader,
    /// What decisions read.
    pub model: ReadModel,
    coverage: Receiver<Coverage>,
    in_order: Receiver<InOrder>,
}

/// What the statements about an object follow from.
pub struct StatementFacts {
    /// What decisions are taken from.
    pub snapshot: Arc<Snapshot>,
    /// The on-demand entries that the API server has.
    pub in_order: InOrder,
    /// The entries of pods.
    pub of_pods: PodEntries,
    /// The pods that they are called for.
    pub coverage: Coverage,
}

impl Keeper {
    /// How things are.
    ///
    /// # Errors
    /// What the API server says about the entries of pods.
    pub async fn facts(&mut self) -> Result<StatementFacts, RequestError> {
        let of_pods = answer(self.entries.read()).await?;
        Ok(StatementFacts {
            snapshot: self.model.snapshot.load_full(),
            in_order: self.in_order.borrow().clone(),
            of_pods,
            coverage: self.coverage.borrow().clone(),
        })
    }

    /// Writes into the status of every object of a kind whether it can be used, and, by `programmed`, whether the API server calls for it,
    /// as far as the on-demand entries of the kind are needed. Returns when to check them again; nothing where there is no object.
    ///
    /// # Errors
    /// What the API server says about the entries of pods, or about a status.
    pub async fn write_programmed<R, C>(
        &mut self,
        manager: &str,
        records: &[Arc<Record<C>>],
        demands: fn(&Snapshot) -> Vec<Demand>,
        programmed: fn(&Record<C>, &StatementFacts, &[Demand]) -> Statement,
    ) -> Result<Option<Duration>, RequestError>
    where
        R: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
        C: Send + Sync,
    {
        if records.is_empty() {
            return Ok(None);
        }
        let facts = self.facts().await?;
        let needed = demands(&facts.snapshot);
        let statements = |record: &Record<C>| vec![accepted(record), programmed(record, &facts, &needed)];
        self.write_all::<R, C>(manager, records, statements).await.map(Some)
    }

    /// Writes the status of every object that is not being deleted. Returns when to check them again.
    ///
    /// # Errors
    /// What the API server says about a status.
    pub async fn write_all<R, C>(
        &self,
        manager: &str,
        records: &[Arc<Record<C>>],
        statements: impl Fn(&Record<C>) -> Vec<Statement>,
    ) -> Result<Duration, RequestError>
    where
        R: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
        C: Send + Sync,
    {
        let mut pause = LATER;
        for record in records.iter().filter(|record| !record.terminating) {
            pause = pause.min(self.write::<R, C>(manager, record, statements(record)).await?);
        }
        Ok(pause)
    }

    /// Writes the status of an object, unless it says this already. Returns when to check it again.
    async fn write<R, C>(
        &self,
        manager: &str,
        record: &Record<C>,
        statements: Vec<Statement>,
    ) -> Result<Duration, RequestError>
    where
        R: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned,
        C: Send + Sync,
    {
        let pause = if statements.iter().any(|one| one.reason == PENDING) { SOON } else { LATER };
        let status = status_of(record, statements, Timestamp::now());
        if record.status.as_ref().map(|stored| json!(stored)).as_ref() == Some(&status) {
            return Ok(pause);
        }
        // The uid keeps the status of a deleted object from a new one of the same name.
        let patch = json!({"metadata": {"uid": record.uid}, "status": status});
        // Nothing is read of what is answered.
        let api = Api::<Partial<R>>::all(self.client.clone());
        match answer(api.patch_status(&record.name, &patching(manager), &Patch::Merge(&patch))).await {
            // Deleted meanwhile, or deleted and made again.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(pause),
            written => written.map(|_| pause),
        }
    }
}

/// The status with these conditions.
pub fn status_of<C>(record: &Record<C>, statements: Vec<Statement>, now: Timestamp) -> Value {
    let stored = record.status.as_ref().and_then(|status| status.conditions.as_ref());
    let old: Vec<Condition> = stored.and_then(|stored| serde_json::from_value(json!(stored)).ok()).unwrap_or_default();
    let generation = Some(record.generation);
    let conditions: Vec<Condition> =
        statements.into_iter().map(|statement| statement.condition(&old, generation, now)).collect();
    json!({"observedGeneration": generation, "conditions": conditions})
}

/// Whether the object can be used.
pub fn accepted<C>(record: &Record<C>) -> Statement {
    let (holds, reason, message) = match (&record.fault, &record.compiled) {
        (None, _) => (true, "Accepted", "The object can be used.".to_owned()),
        (Some(fault), Some(_)) => {
            (false, "Invalid", format!("{fault}. The last form that could be used stays in force."))
        }
        (Some(fault), None) => (false, "Invalid", format!("{fault}. The object does nothing.")),
    };
    Statement { type_: "Accepted", holds, reason, message }
}

/// Whether the API server calls for the object. Of one that can be used, `usable` says it.
pub fn programmed<C>(record: &Record<C>, usable: impl FnOnce(&C) -> (bool, &'static str, String)) -> Statement {
    let (holds, reason, message) = match (&record.fault, &record.compiled) {
        (Some(_), Some(_)) => {
            let message = "The last form that could be used stays in force, in replicas that have seen it: one that starts now does \
                           nothing for this object.";
            (false, "Invalid", message.to_owned())
        }
        (_, None) => (false, "Invalid", "The object cannot be used, and does nothing.".to_owned()),
        (None, Some(compiled)) => usable(compiled),
    };
    Statement { type_: "Programmed", holds, reason, message }
}

/// What a leader says of a form that is not in its snapshot.
pub fn not_seen() -> String {
    "The leader has not seen this form of the object yet.".to_owned()
}

impl StatementFacts {
    /// Why the API server does not call for all new pods.
    pub fn lacks_pods(&self) -> Option<String> {
        if matches!(&self.coverage, Coverage::Known(rule) if !rule.covers(&NarrowingRule::Wide)) {
            return Some("The match condition of the entries of pods does not cover all pods yet.".to_owned());
        }
        self.of_pods.fault.clone()
    }

    /// Which of these entries the API server does not have.
    pub fn lacks_entry<'d>(&self, mut needed: impl Iterator<Item = &'d Demand>) -> Option<String> {
        let missing = needed.find(|demand| !self.in_order.contains(demand))?;
        Some(format!("The {:?} webhook entry {} is not there, or is not as it should be.", missing.phase, missing.name))
    }

    /// Which new pods the installation leaves out; empty where none.
    pub fn left_out(&self) -> String {
        let restricted = self.of_pods.restricted.as_ref();
        restricted.map_or_else(String::new, |what| format!(" Pods that {what} leaves out are not among them."))
    }
}
