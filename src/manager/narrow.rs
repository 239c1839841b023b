//! Keeps the matchCondition by which the API server asks only about pods that a set can match. Leader only.

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};

use super::configuration::Configuration;
use super::error::Error;
use crate::answers::in_time;
use crate::logging::throttle::LogThrottle;
use crate::manifests::webhooks::WebhookEntry;
use crate::watch::coverage::Coverage;
use crate::watch::read_model::{Change, ReadModel};
use engine::pod::PODS;
use engine::pod::stages::{Stages, narrowing};
use engine::sidecarset::narrowing::{ALWAYS, NarrowingRule, step};

/// Name of the condition.
pub use crate::names::NARROW as CONDITION;

/// Owner of the condition in managedFields: another than of the rest, so that applying it gives up no other field.
const FIELD_MANAGER: &str = "outrider-narrow";
/// How long the sets have to stay as they are before the condition is narrowed: another replica, or another API server, may still apply
/// what was before.
const NARROW_AFTER: Duration = Duration::from_secs(10);
/// A person or an upgrade of the chart may have changed the condition.
const CHECK: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);
/// Sets are often applied many at a time.
const GATHER: Duration = Duration::from_millis(200);

/// Narrowing, or the end of it.
pub struct Narrowing {
    client: Client,
    model: ReadModel,
    /// Names of the entries for pods.
    entries: Vec<String>,
    /// What decides about pods beside the sets.
    stages: Stages,
    enabled: bool,
    coverage: watch::Sender<Coverage>,
}

impl Narrowing {
    /// With `enabled` false, a condition that was left behind is lifted: it would keep new sets from every pod.
    pub fn new(client: Client, model: ReadModel, webhooks: &[WebhookEntry], stages: Stages, enabled: bool) -> Self {
        let of_pods = |webhook: &&WebhookEntry| webhook.rule.resources == PODS;
        let entries = webhooks.iter().filter(of_pods).map(|webhook| webhook.rule.name.to_owned()).collect();
        let coverage = watch::Sender::new(if enabled { Coverage::Unknown } else { Coverage::Off });
        Self { client, model, entries, stages, enabled, coverage }
    }

    /// The pods for which the API server is known to call the webhook.
    pub fn coverage(&self) -> watch::Receiver<Coverage> {
        self.coverage.subscribe()
    }

    /// Works until it is dropped.
    pub async fn run(self) {
        // By a part of the sets, pods of the others would be left out.
        self.model.published().await;
        let (mut changes, mut throttle) = (self.model.changes(), LogThrottle::default());
        let mut publications = self.model.publications();
        let (mut wanted, mut since) = (self.wanted(), Instant::now());
        loop {
            let now = self.wanted();
            if now != wanted {
                (wanted, since) = (now, Instant::now());
            }
            let left = NARROW_AFTER.saturating_sub(since.elapsed());
            let pause = match in_time(self.pass(&wanted, left.is_zero())).await {
                Ok(Some(_)) if !self.enabled => return std::future::pending().await,
                Ok(observed) => {
                    throttle.over();
                    let pause = match observed {
                        None => self.retry(),
                        Some(_) if left.is_zero() => CHECK,
                        Some(_) => left,
                    };
                    self.publish(observed.map_or(Coverage::Unknown, Coverage::Known));
                    pause
                }
                Err(error) => {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "The condition {CONDITION} is not in order, trying again");
                    }
                    self.retry()
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.others(&mut publications, &wanted) => {}
                () = set_changes(&mut changes) => {
                    sleep(GATHER).await;
                    changes = changes.resubscribe();
                }
            }
        }
    }

    /// Nothing waits for the removal of a condition that most probably does not exist.
    const fn retry(&self) -> Duration {
        if self.enabled { RETRY } else { CHECK }
    }

    fn publish(&self, news: Coverage) {
        if self.enabled {
            self.coverage.send_if_modified(|coverage| {
                let changed = *coverage != news;
                *coverage = news;
                changed
            });
        }
    }

    fn wanted(&self) -> WantedRules {
        if !self.enabled {
            return WantedRules { mutating: NarrowingRule::Wide, validating: NarrowingRule::Wide };
        }
        let records = self.model.sets.all();
        let sets = || records.iter().filter_map(|record| record.compiled.as_deref());
        let snapshot = self.model.snapshot.load();
        let with_stages = |sets| narrowing(sets, &self.stages, &snapshot);
        WantedRules {
            mutating: with_stages(NarrowingRule::of(sets())),
            validating: with_stages(NarrowingRule::of(sets().filter(|set| set.is_must()))),
        }
    }

    /// Waits until something else is wanted for another reason than a set.
    async fn others(&self, publications: &mut watch::Receiver<u64>, known: &WantedRules) {
        while self.wanted() == *known {
            if publications.changed().await.is_err() {
                // The read model is gone with the process.
                return std::future::pending().await;
            }
        }
    }

    /// Brings both configurations a step further; returns the pods of both afterwards, or nothing where one is not there.
    async fn pass(&self, wanted: &WantedRules, settled: bool) -> Result<Option<NarrowingRule>, Error> {
        let mutating = self.bring::<MutatingWebhookConfiguration>(&wanted.mutating, settled).await?;
        let validating = self.bring::<ValidatingWebhookConfiguration>(&wanted.validating, settled).await?;
        Ok(mutating.zip(validating).map(|(mutating, validating)| wanted.covered(&mutating, &validating)))
    }

    async fn bring<C: Configuration>(
        &self,
        wanted: &NarrowingRule,
        settled: bool,
    ) -> Result<Option<NarrowingRule>, Error> {
        let api = Api::<C>::all(self.client.clone());
        let failed = Error::api(C::NAME);
        let Some(found) = api.get_opt(C::NAME).await.map_err(&failed)? else { return Ok(None) };
        let mut found = json!(found);
        // The wide rule is no condition; if another manager wrote one of that name too, it stays, and is made always true.
        for always in [None, Some(ALWAYS)] {
            let Some(rule) = step(&rules(&found, &self.entries), wanted, settled) else { break };
            let expression = rule.expression();
            let patch = self.patch::<C>(&found, expression.as_deref().or(always));
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let written = api.patch(C::NAME, &params, &Patch::Apply(&patch)).await.map_err(&failed)?;
            found = json!(written);
            let bytes = expression.as_deref().map_or(0, str::len);
            tracing::info!(
                configuration = C::NAME,
                wide = expression.is_none(),
                bytes,
                "Wrote the condition {CONDITION}"
            );
        }
        let known = |all: NarrowingRule, rule: &Option<NarrowingRule>| match rule {
            Some(rule) => all.and(rule),
            None => NarrowingRule::nothing(),
        };
        Ok(Some(rules(&found, &self.entries).iter().fold(NarrowingRule::Wide, known)))
    }

    /// Gives the entries this condition, or none, and touches nothing else.
    fn patch<C: Configuration>(&self, found: &Value, expression: Option<&str>) -> Value {
        let conditions: Vec<Value> =
            expression.iter().map(|expression| json!({"name": CONDITION, "expression": expression})).collect();
        let webhooks: Vec<Value> = pod_entries(found, &self.entries)
            .filter_map(|entry| Some(json!({"name": entry.get("name")?, "matchConditions": conditions})))
            .collect();
        json!({
            "apiVersion": C::api_version(&()), "kind": C::kind(&()),
            // What was decided holds for this version only.
            "metadata": {"name": C::NAME, "resourceVersion": found.pointer("/metadata/resourceVersion")},
            "webhooks": webhooks,
        })
    }
}

/// What each of the two entries for pods is to ask about.
#[derive(Debug, PartialEq)]
struct WantedRules {
    /// Pods that a set may select.
    mutating: NarrowingRule,
    /// Pods that a must may select: only for those has validation something to refuse. A pod of other sets costs one call, not two.
    validating: NarrowingRule,
}

impl WantedRules {
    /// The pods that are known to get what sets are for, where the entries ask about these.
    fn covered(&self, mutating: &NarrowingRule, validating: &NarrowingRule) -> NarrowingRule {
        if validating.covers(&self.validating) { mutating.clone() } else { mutating.and(validating) }
    }
}

/// Waits until something happens to a set.
async fn set_changes(changes: &mut broadcast::Receiver<Change>) {
    loop {
        match changes.recv().await {
            Ok(Change::Namespace(_)) => {}
            Ok(Change::Set(_)) | Err(RecvError::Lagged(_)) => return,
            // The read model is gone with the process.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn pod_entries<'a>(configuration: &'a Value, names: &'a [String]) -> impl Iterator<Item = &'a Value> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    webhooks.filter(|entry| names.iter().any(|name| entry.get("name").is_some_and(|found| found == name)))
}

/// The rule of each entry for pods.
fn rules(configuration: &Value, names: &[String]) -> Vec<Option<NarrowingRule>> {
    let rule = |entry: &Value| {
        let conditions = entry.get("matchConditions").and_then(Value::as_array).into_iter().flatten();
        let mut ours = conditions.filter(|condition| condition.get("name").is_some_and(|name| name == CONDITION));
        let expression = ours.find_map(|condition| condition.get("expression")?.as_str());
        NarrowingRule::read(expression)
    };
    pod_entries(configuration, names).map(rule).collect()
}
