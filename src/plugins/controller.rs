//! Writes into the status of every `AdmissionPlugin` whether it can be used, whether the API server calls for it, and whether another
//! contradicts it. Only the leader does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::registry::Phase;
use engine::plugins::compiled::{CompiledPlugin, Mode};
use engine::plugins::{conflict, endpoints};
use engine::pod::ENTRY;
use engine::sidecarset::narrowing::Rule;
use engine::snapshot::Snapshot;
use engine::snapshot::plugins::PluginRecord;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use super::entries::{Entries, EntryReader};
use crate::answers::{self, NoAnswer, said};
use crate::controller::Context;
use crate::controller::conditions::Statement;
use crate::field_managers::{ADMISSION_PLUGIN, patching};
use crate::logging::throttle::LogThrottle;
use crate::metrics::ReconcileResult;
use crate::watch::AdmissionPluginResource;
use crate::watch::coverage::Coverage;
use crate::watch::read_model::ReadModel;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "admissionplugin";

/// When to check an object again that waits for its entries, and one that does not: another object, or a person who edits the webhook
/// configurations, may have changed the result.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(15);

/// Contradictions that a condition names.
const TOLD: usize = 4;

/// Runs the controller until its term ends.
///
/// It reads what decisions read, and has no watch of its own: a cluster without the definition has no objects, and no fault.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    run(context).boxed()
}

async fn run(context: Context) {
    let Context { client, metrics, term, world, coverage, .. } = context;
    let controller = Controller { entries: EntryReader::new(client.clone()), client, world, coverage };
    let work = async {
        controller.world.published().await;
        let (mut publications, counted) = (controller.world.publications(), metrics.controller(NAME));
        let mut trouble = LogThrottle::default();
        loop {
            let begun = Instant::now();
            let pause = match controller.pass().await {
                Ok(pause) => {
                    trouble.over();
                    if !controller.world.plugin_table.all().is_empty() {
                        counted.reconciled(ReconcileResult::success, begun.elapsed());
                    }
                    pause
                }
                Err(error) => {
                    if trouble.is_news(&error) {
                        tracing::warn!(%error, "The status of AdmissionPlugins cannot be written, trying again");
                    }
                    counted.reconciled(ReconcileResult::error, begun.elapsed());
                    SOON
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                changed = publications.changed() => if changed.is_err() { return std::future::pending().await },
            }
        }
    };
    let _ended = term.until_ending(work).await;
}

/// A pass that did not succeed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{}", said(.0))]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
}

async fn in_time<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    answers::in_time(async { request.await.map_err(Error::from) }).await
}

struct Controller {
    client: Client,
    entries: EntryReader,
    world: ReadModel,
    coverage: Receiver<Coverage>,
}

impl Controller {
    /// Reconciles every object, and returns when to do so again.
    async fn pass(&self) -> Result<Duration, Error> {
        let records = self.world.plugin_table.all();
        if records.is_empty() {
            return Ok(LATER);
        }
        let entries = in_time(self.entries.read()).await?;
        let (snapshot, coverage) = (self.world.snapshot.load_full(), self.coverage.borrow().clone());
        let mut pause = LATER;
        for record in records.iter().filter(|record| !record.terminating) {
            let compiled = compiled(record);
            let statements = [
                accepted(&compiled),
                programmed(&compiled, &record.name, &snapshot, &entries, &coverage),
                contradicted(&compiled, &snapshot),
            ];
            if statements.iter().any(|statement| statement.reason == PENDING) {
                pause = SOON;
            }
            self.write(record, &status_of(record, statements, Timestamp::now())).await?;
        }
        Ok(pause)
    }

    async fn write(&self, record: &PluginRecord, status: &Value) -> Result<(), Error> {
        if record.status.as_ref().map(|stored| json!(stored)).as_ref() == Some(status) {
            return Ok(());
        }
        // The uid keeps the status of a deleted object from a new one of the same name.
        let patch = json!({"metadata": {"uid": record.uid}, "status": status});
        let (api, params) = (Api::<AdmissionPluginResource>::all(self.client.clone()), patching(ADMISSION_PLUGIN));
        match in_time(api.patch_status(&record.name, &params, &Patch::Merge(&patch))).await {
            // Deleted meanwhile, or deleted and made again.
            Err(Error::Api(error)) if matches!(answers::code(&error), Some(404 | 409)) => Ok(()),
            written => written.map(drop),
        }
    }
}

fn compiled(record: &PluginRecord) -> Compiled {
    match (&record.fault, &record.compiled) {
        (None, Some(compiled)) => Ok(Arc::clone(compiled)),
        (fault, _) => Err(fault.clone().unwrap_or_default()),
    }
}

const PENDING: &str = "Pending";

fn status_of(record: &PluginRecord, statements: [Statement; 3], now: Timestamp) -> Value {
    let stored = record.status.as_ref().and_then(|status| status.conditions.as_ref());
    let old: Vec<Condition> = stored.and_then(|stored| serde_json::from_value(json!(stored)).ok()).unwrap_or_default();
    let generation = Some(record.generation);
    let conditions = statements.map(|statement| statement.condition(&old, generation, now));
    json!({"observedGeneration": generation, "conditions": conditions})
}

type Compiled = Result<Arc<CompiledPlugin>, String>;

fn accepted(compiled: &Compiled) -> Statement {
    let (holds, reason, message) = match compiled {
        Ok(_) => (true, "Accepted", "The object can be used.".to_owned()),
        Err(fault) => {
            (false, "Invalid", format!("{fault}. The last form that could be used, if there was one, stays in force."))
        }
    };
    Statement { type_: "Accepted", holds, reason, message }
}

fn programmed(
    compiled: &Compiled,
    name: &str,
    snapshot: &Snapshot,
    entries: &Entries,
    coverage: &Coverage,
) -> Statement {
    let (holds, reason, message) = match compiled {
        Err(_) => (false, "Invalid", "The object cannot be used.".to_owned()),
        Ok(plugin) if plugin.mode == Mode::Off => (false, "Off", "spec.mode is Off.".to_owned()),
        Ok(plugin) => match missing(plugin, name, snapshot, entries, coverage) {
            Some(what) => (false, PENDING, what),
            None => (true, "Programmed", "The API server calls Outrider for what the plugin decides.".to_owned()),
        },
    };
    Statement { type_: "Programmed", holds, reason, message }
}

/// What is missing for the API server to call.
fn missing(
    plugin: &CompiledPlugin,
    name: &str,
    snapshot: &Snapshot,
    entries: &Entries,
    coverage: &Coverage,
) -> Option<String> {
    if snapshot.plugins.get(name).is_none_or(|known| **known != *plugin) {
        return Some("The leader has not seen this form of the object yet.".to_owned());
    }
    if !endpoints::is_permitted(plugin.plugin, snapshot) {
        return Some(
            "The webhook entry would be for all resources, which the installation does not allow: set the chart value \
             guard.allResources, or the flag --on-demand-all-resources and the lists of the guard policy."
                .to_owned(),
        );
    }
    let mut needed: Vec<(Phase, String)> =
        endpoints::needs(name, snapshot).into_iter().map(|demand| (demand.phase, demand.name)).collect();
    if plugin.plugin.is_of_pods() {
        if matches!(coverage, Coverage::Known(rule) if !rule.covers(&Rule::Wide)) {
            return Some("The match condition of the entries of pods does not cover all pods yet.".to_owned());
        }
        needed.extend([Phase::Mutating, Phase::Validating].map(|phase| (phase, ENTRY.to_owned())));
    }
    let missing = needed.into_iter().find(|entry| !entries.contains(entry));
    missing.map(|(phase, entry)| format!("The {phase:?} webhook entry {entry} is not there, or has no caBundle."))
}

fn contradicted(compiled: &Compiled, snapshot: &Snapshot) -> Statement {
    let others =
        compiled.iter().flat_map(|one| snapshot.plugins.iter().filter_map(|other| conflict::between(one, other)));
    let found: Vec<String> = others.take(TOLD).collect();
    let (holds, reason, message) = if found.is_empty() {
        (false, "NoConflict", "No other AdmissionPlugin contradicts this one.".to_owned())
    } else {
        (true, "Contradicted", found.join("; "))
    };
    Statement { type_: "Conflict", holds, reason, message }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use engine::snapshot::builder::SnapshotBuilder;

    use super::*;

    fn table(objects: &[(&str, Value)]) -> (Snapshot, Vec<Arc<PluginRecord>>) {
        let (mut feed, target) = (SnapshotBuilder::new(Exclusion::default(), true), arc_swap::ArcSwap::default());
        for (name, spec) in objects {
            let object = json!({"metadata": {"name": name, "uid": name, "generation": 1}, "spec": spec});
            feed.collections.plugins.apply(&serde_json::from_value(object).unwrap());
        }
        feed.publish(&target);
        (Snapshot::clone(&target.load()), feed.collections.plugins.collection().table().all())
    }

    fn snapshot(objects: &[(&str, Value)]) -> Snapshot {
        table(objects).0
    }

    fn of(spec: Value) -> Compiled {
        compiled(&table(&[("a", spec)]).1[0])
    }

    #[test]
    fn programmed_is_true_once_every_entry_is_there_and_the_condition_covers_all_pods() {
        let spec = json!({"plugin": "LimitPodHardAntiAffinityTopology"});
        let (compiled, known) = (of(spec.clone()), snapshot(&[("a", spec)]));
        let entry = |phase, name: &str| (phase, name.to_owned());
        let mut entries: Entries = [entry(Phase::Mutating, ENTRY), entry(Phase::Validating, ENTRY)].into();
        let says = |snapshot: &Snapshot, entries: &Entries, coverage: &Coverage| {
            let said = programmed(&compiled, "a", snapshot, entries, coverage);
            (said.holds, said.message)
        };
        let unseen = says(&snapshot(&[]), &entries, &Coverage::Off);
        assert!(!unseen.0 && unseen.1.contains("has not seen"), "{unseen:?}");
        let pending = says(&known, &entries, &Coverage::Off);
        assert!(
            !pending.0 && pending.1.contains("limitpodhardantiaffinitytopology.policy.outrider.dev"),
            "{pending:?}"
        );
        entries.insert(entry(Phase::Validating, "limitpodhardantiaffinitytopology.policy.outrider.dev"));
        assert!(says(&known, &entries, &Coverage::Off).0);
        assert!(says(&known, &entries, &Coverage::Known(Rule::Wide)).0);
        assert!(!says(&known, &entries, &Coverage::Known(Rule::of([]))).0);
        entries.remove(&entry(Phase::Mutating, ENTRY));
        assert!(!says(&known, &entries, &Coverage::Off).0);
    }

    #[test]
    fn an_entry_for_all_resources_that_is_not_allowed_is_said_and_not_waited_for_in_silence() {
        let spec = json!({"plugin": "OwnerReferencesPermissionEnforcement"});
        let (compiled, mut known) = (of(spec.clone()), snapshot(&[("a", spec)]));
        let entry = (Phase::Validating, "ownerreferencespermissionenforcement.policy.outrider.dev".to_owned());
        let entries: Entries = [entry].into();
        let refused = programmed(&compiled, "a", &known, &entries, &Coverage::Off);
        assert!(!refused.holds && refused.message.contains("guard.allResources"), "{refused:?}");
        known.may_name_all_resources = true;
        assert!(programmed(&compiled, "a", &known, &entries, &Coverage::Off).holds);
    }

    #[test]
    fn an_object_that_cannot_be_used_and_one_that_is_off_say_so() {
        let nothing = Entries::new();
        let invalid = of(json!({"plugin": "AlwaysAdmit"}));
        assert_eq!(accepted(&invalid).reason, "Invalid");
        assert!(accepted(&invalid).message.contains("spec.plugin"));
        let off = of(json!({"plugin": "AlwaysPullImages", "mode": "Off"}));
        assert!(accepted(&off).holds);
        assert_eq!(programmed(&off, "a", &snapshot(&[]), &nothing, &Coverage::Off).reason, "Off");
    }

    #[test]
    fn a_contradiction_names_the_other_object() {
        let with = |seconds| json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": seconds}});
        let said = contradicted(&of(with(30)), &snapshot(&[("a", with(30)), ("b", with(60))]));
        assert!(said.holds && said.message.contains("AdmissionPlugin \"b\""), "{said:?}");
        assert!(!contradicted(&of(with(30)), &snapshot(&[("a", with(30))])).holds);
    }

    #[test]
    fn a_status_that_says_the_same_keeps_its_times() {
        let (known, records) = table(&[("a", json!({"plugin": "AlwaysPullImages"}))]);
        let mut record = PluginRecord::clone(&records[0]);
        let statements = |record: &PluginRecord| {
            let one = compiled(record);
            [accepted(&one), programmed(&one, "a", &known, &Entries::new(), &Coverage::Off), contradicted(&one, &known)]
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = status_of(&record, statements(&record), at(1));
        record.status = serde_json::from_value(first.clone()).unwrap();
        assert_eq!(status_of(&record, statements(&record), at(9)), first);
        assert_eq!(json!(record.status), first, "what is stored is what was written");
    }
}
