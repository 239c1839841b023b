//! Keeps the entries of the on-demand configurations: one for each that accepted objects need, and none otherwise. Leader only.
//!
//! Entries are written by JSON patch with a test of the version that was read: server-side apply cannot withdraw an entry whose
//! caBundle has another owner, as cert-manager's injector is one.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::sleep;

use super::error::Error;
use super::failure_policies::IGNORE;
use crate::answers::in_time;
use crate::kinds::Kinds;
use crate::logging::throttle::LogThrottle;
use crate::manager::registration::{Configuration, OnDemand, RETRY, says};
use crate::manifests::webhooks::{PodFailurePolicy, Settings, WebhookTarget, demanded};
use crate::names::{BREAK_GLASS, FAIL_OPEN, VALIDATING};
use crate::watch::in_order::InOrder;
use crate::watch::read_model::ReadModel;
use admission::registry::Phase;
use engine::demand::Demand;
use engine::snapshot::Exclusion;

/// A person or an upgrade of the chart may have changed the entries.
const CHECK: Duration = Duration::from_secs(15);
/// Owner of the entries in managedFields.
const FIELD_MANAGER: &str = "outrider-on-demand";
/// Objects are often applied many at a time.
const GATHER: Duration = Duration::from_millis(200);

/// What keeps the entries.
pub struct OnDemandEntries {
    /// The API server.
    pub client: Client,
    /// What is accepted.
    pub model: ReadModel,
    /// What needs entries.
    pub kinds: Kinds,
    /// Where the API server reaches us.
    pub target: WebhookTarget,
    /// Namespaces that are left alone.
    pub exclusion: Exclusion,
    /// Where it is said which entries the API server has.
    pub in_order: Sender<InOrder>,
}

impl OnDemandEntries {
    /// Works until it is dropped.
    pub async fn run(self) {
        // By a part of the objects, entries that others need would be withdrawn.
        self.model.published().await;
        let (mut publications, mut throttle) = (self.model.publications(), LogThrottle::default());
        loop {
            let demands = demands(&self.kinds, &self.model);
            let pause = match in_time(self.pass(&demands)).await {
                Ok(()) => {
                    throttle.over();
                    CHECK
                }
                Err(error) => {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "The on-demand entries are not in order, trying again");
                    }
                    RETRY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = others(&mut publications, &self.kinds, &self.model, &demands) => sleep(GATHER).await,
            }
        }
    }

    async fn pass(&self, demands: &[Demand]) -> Result<(), Error> {
        // The mutating one first: our validating webhook would refuse what our mutating one has not changed.
        self.bring::<MutatingWebhookConfiguration>(demands).await?;
        self.bring::<ValidatingWebhookConfiguration>(demands).await
    }

    async fn bring<C: Configuration>(&self, demands: &[Demand]) -> Result<(), Error> {
        let wanted: Vec<&Demand> = demands.iter().filter(|demand| demand.phase == C::PHASE).collect();
        let api = Api::<OnDemand<C>>::all(self.client.clone());
        let name = C::ON_DEMAND;
        let failed = Error::api(name);
        let Some(found) = api.get_opt(name).await.map_err(&failed)? else {
            // Installed by an earlier version: nothing is lost while nothing is needed.
            return if wanted.is_empty() { Ok(()) } else { Err(Error::NoConfiguration(name)) };
        };
        let found = json!(found);
        let validating = if wanted.is_empty() { None } else { Some(self.validating().await?) };
        let entries = self.entries(&wanted, &found, validating.as_ref())?;
        self.say(
            C::PHASE,
            wanted.iter().zip(&entries).filter(|(_, made)| has(&found, made)).map(|(demand, _)| *demand),
        );
        if is_in_order(&found, &entries) {
            return Ok(());
        }
        self.write::<C>(&found, &entries).await.map_err(&failed)?;
        self.say(C::PHASE, wanted.iter().copied());
        let names: Vec<&str> = wanted.iter().map(|demand| demand.name.as_str()).collect();
        tracing::info!(configuration = name, entries = ?names, "Wrote the on-demand entries");
        Ok(())
    }

    /// The configuration whose entries show what is trusted, and what happens to pods.
    async fn validating(&self) -> Result<Value, Error> {
        let api = Api::<ValidatingWebhookConfiguration>::all(self.client.clone());
        let found = api.get_opt(VALIDATING).await.map_err(Error::api(VALIDATING))?;
        found.map(|found| json!(found)).ok_or(Error::NoConfiguration(VALIDATING))
    }

    /// The entries as they should be: each keeps its caBundle, a new one begins with that of `outrider-validating`.
    fn entries(&self, wanted: &[&Demand], found: &Value, validating: Option<&Value>) -> Result<Vec<Value>, Error> {
        let of_pods = validating.and_then(|validating| entry(validating, engine::pod::ENTRY));
        let settings = Settings {
            target: self.target.clone(),
            ca_bundle: None,
            exclusion: &self.exclusion,
            pod_failure_policy: match of_pods.and_then(|entry| entry.get("failurePolicy")) {
                Some(policy) if policy == IGNORE => PodFailurePolicy::Ignore,
                _ => PodFailurePolicy::Fail,
            },
        };
        let bundle = |entry: &Value| entry.pointer("/clientConfig/caBundle").filter(|bundle| *bundle != "").cloned();
        let trusted = || validating.and_then(|validating| webhooks(validating).find_map(bundle));
        // While a way out is in force, no request is refused because no replica answers.
        let is_open = [BREAK_GLASS, FAIL_OPEN].iter().any(|name| {
            found.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(name).is_some())
        });
        let made = |demand: &&Demand| {
            let mut made = demanded(demand, &settings);
            let stored = entry(found, &demand.name);
            made["clientConfig"]["caBundle"] = stored.and_then(bundle).or_else(trusted).ok_or(Error::NoBundle)?;
            if is_open {
                made["failurePolicy"] = IGNORE.into();
            }
            Ok(made)
        };
        wanted.iter().map(made).collect()
    }

    /// Says which entries of a phase the API server has.
    fn say<'d>(&self, phase: Phase, found: impl Iterator<Item = &'d Demand>) {
        let found: Vec<&Demand> = found.collect();
        self.in_order.send_if_modified(|known| {
            let same = known.iter().filter(|demand| demand.phase == phase).eq(found.iter().copied());
            if !same {
                let others = known.iter().filter(|demand| demand.phase != phase);
                *known = Arc::new(others.chain(found).cloned().collect());
            }
            !same
        });
    }

    /// Replaces the entries of the version that was read.
    async fn write<C: Configuration>(&self, found: &Value, entries: &[Value]) -> Result<(), kube::Error> {
        let name = C::ON_DEMAND;
        let version = found.pointer("/metadata/resourceVersion");
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/webhooks", "value": entries},
        ]);
        // A manager of its own: what a process outside the cluster has written is known by its name.
        let url = format!("{}/{name}?fieldManager={FIELD_MANAGER}", C::url_path(&(), None));
        let request = http::Request::patch(url)
            .header(CONTENT_TYPE, "application/json-patch+json")
            .body(patch.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.client.request::<Value>(request).await.map(drop)
    }
}

/// What accepted objects need, as far as the snapshot has them.
pub(super) fn demands(kinds: &Kinds, model: &ReadModel) -> Vec<Demand> {
    kinds.demands(&model.snapshot.load())
}

/// Waits until other entries are needed than these.
pub(super) async fn others(publications: &mut Receiver<u64>, kinds: &Kinds, model: &ReadModel, known: &[Demand]) {
    while demands(kinds, model) == known {
        if publications.changed().await.is_err() {
            // The read model is gone with the process.
            return std::future::pending().await;
        }
    }
}

fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten()
}

fn entry<'a>(configuration: &'a Value, name: &str) -> Option<&'a Value> {
    webhooks(configuration).find(|entry| entry.get("name").is_some_and(|found| found == name))
}

/// Whether the stored entries say all that these do, and there are no others. What the API server fills in does not count.
fn is_in_order(found: &Value, entries: &[Value]) -> bool {
    webhooks(found).count() == entries.len()
        && webhooks(found)
            .zip(entries)
            .all(|(stored, made)| stored.get("name") == made.get("name") && says_exactly(stored, made))
}

/// Whether this entry is stored.
fn has(found: &Value, made: &Value) -> bool {
    let name = made.get("name").and_then(Value::as_str).unwrap_or_default();
    entry(found, name).is_some_and(|stored| says_exactly(stored, made))
}

/// Whether the stored entry says all that this one does, and is not called for less than it.
fn says_exactly(stored: &Value, made: &Value) -> bool {
    let same = |field: &str, empty: Value| {
        let of =
            |entry: &Value| entry.get(field).filter(|value| !value.is_null()).cloned().unwrap_or_else(|| empty.clone());
        of(stored) == of(made)
    };
    says(stored, made)
        && same("namespaceSelector", json!({}))
        && same("objectSelector", json!({}))
        && same("matchConditions", json!([]))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<'c> = &'c dyn Fn(&mut Value);

    #[test]
    fn an_entry_that_somebody_made_narrower_is_not_in_order() {
        let made = json!({"name": "a", "rules": [{"resources": ["services"]}], "matchConditions": [{"name": "x", "expression": "true"}]});
        let with = |change: &dyn Fn(&mut Value)| {
            let mut stored = made.clone();
            stored["objectSelector"] = json!({});
            stored["namespaceSelector"] = json!({});
            change(&mut stored);
            json!({"webhooks": [stored]})
        };
        let changes: [(Change<'_>, bool); 6] = [
            (&|_| {}, true),
            (&|stored| stored["failurePolicy"] = "Fail".into(), true),
            (&|stored| stored["namespaceSelector"] = json!({"matchLabels": {"never": "here"}}), false),
            (&|stored| stored["objectSelector"] = json!({"matchLabels": {"never": "here"}}), false),
            (
                &|stored| {
                    stored["matchConditions"].as_array_mut().unwrap().push(json!({"name": "y", "expression": "false"}));
                },
                false,
            ),
            (&|stored| stored["rules"] = json!([]), false),
        ];
        for (change, expected) in changes {
            let found = with(change);
            assert_eq!(
                (is_in_order(&found, std::slice::from_ref(&made)), has(&found, &made)),
                (expected, expected),
                "{found}"
            );
        }
        assert!(!is_in_order(&json!({"webhooks": [made.clone(), made]}), &[]));
    }
}
