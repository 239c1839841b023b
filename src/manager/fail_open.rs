//! Requests pass without us while we are scaled to zero: our webhooks are turned to Ignore by the last replicas, and back by the
//! first.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client, Resource as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::break_glass::is_in_force;
use super::configuration::{Configuration, OnDemand};
use super::error::Error;
use super::failure_policies::{IGNORE, annotation, patch, policies, rewrite};
use crate::answers::{URGENT_REQUEST_TIMEOUT, within};
use crate::field_managers::patching;
use crate::logging::throttle::LogThrottle;
use crate::watch::deployment::PartialDeployment;

/// Annotation of a webhook configuration that was turned to Ignore: when, and what each entry was before, as JSON.
pub use crate::names::FAIL_OPEN as ANNOTATION;

const FIELD_MANAGER: &str = "outrider-fail-open";
const CHECK: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);
/// The end of the process waits for it, and the kubelet kills what does not end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Until nodes route to a replica that the Deployment counts as ready.
const ROUTED_AFTER: Duration = Duration::from_secs(5);

/// When the webhooks were turned to Ignore, and what they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FailOpenRecord {
    at: String,
    /// `failurePolicy` of each entry before.
    was: BTreeMap<String, String>,
}

/// What the Deployment says about us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeploymentState {
    /// There is none.
    Gone,
    /// No replica is wanted.
    Away,
    /// Replicas are wanted.
    Wanted {
        /// One of them can answer.
        is_ready: bool,
    },
}

/// Keeps `failurePolicy` in step with our own Deployment.
pub struct FailOpen {
    client: Client,
    deployments: Api<PartialDeployment>,
    name: String,
}

impl FailOpen {
    /// The Deployment is in our own namespace.
    pub fn new(client: &Client, namespace: &str, name: &str) -> Self {
        Self { client: client.clone(), deployments: Api::namespaced(client.clone(), namespace), name: name.to_owned() }
    }

    /// Waits until this replica has to end, and turns the webhooks to Ignore if no other will follow.
    pub async fn at_the_end(self, draining: CancellationToken) {
        // A Deployment that never was there has not been deleted: its name is wrong.
        let mut was_there = false;
        while !was_there {
            match self.state().await {
                Ok(DeploymentState::Gone) => {
                    tracing::warn!(
                        deployment = self.name,
                        "--fail-open-when-scaled-to-zero has no effect: there is no such Deployment; name it with --deployment-name"
                    );
                }
                Ok(_) => was_there = true,
                Err(error) => tracing::warn!(
                    %error,
                    "Cannot see our own Deployment, trying again; `outrider manifests rbac --fail-open-when-scaled-to-zero` prints the \
                     rule that allows it"
                ),
            }
            if !was_there && draining.run_until_cancelled(sleep(CHECK)).await.is_none() {
                return;
            }
        }
        draining.cancelled().await;
        let turned = async {
            while let Err(error) = self.turn_if_away().await {
                tracing::warn!(%error, "Cannot set failurePolicy before the process ends, trying again");
                sleep(RETRY).await;
            }
        };
        if timeout(END_TIMEOUT, turned).await.is_err() {
            tracing::error!("failurePolicy was left as it is; if no replica starts again: outrider break-glass");
        }
    }

    async fn turn_if_away(&self) -> Result<(), Error> {
        if matches!(self.state().await?, DeploymentState::Wanted { .. }) {
            return Ok(());
        }
        let now = Timestamp::now();
        self.carry_out_all(|found| open(found, now)).await
    }

    /// Puts back what was, once a replica can answer. Leader only; works until it is dropped.
    pub async fn back(self) {
        let mut throttle = LogThrottle::default();
        loop {
            let pause = match self.turn_back_if_ready().await {
                Ok(is_back) => {
                    throttle.over();
                    if is_back { CHECK } else { RETRY }
                }
                Err(error) => {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "Cannot put failurePolicy back, trying again");
                    }
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }

    /// False if something is still to be put back.
    async fn turn_back_if_ready(&self) -> Result<bool, Error> {
        let open = [
            self.is_open::<MutatingWebhookConfiguration>().await?,
            self.is_open::<ValidatingWebhookConfiguration>().await?,
            self.is_open::<OnDemand<MutatingWebhookConfiguration>>().await?,
            self.is_open::<OnDemand<ValidatingWebhookConfiguration>>().await?,
        ];
        if open == [false; 4] {
            return Ok(true);
        }
        for pause in [ROUTED_AFTER, Duration::ZERO] {
            if self.state().await? != (DeploymentState::Wanted { is_ready: true }) {
                return Ok(false);
            }
            sleep(pause).await;
        }
        self.carry_out_all(close).await?;
        Ok(true)
    }

    async fn is_open<C: Configuration>(&self) -> Result<bool, Error> {
        let api = Api::<C>::all(self.client.clone());
        let found = answered(C::NAME, api.get_opt(C::NAME)).await?;
        Ok(found.is_some_and(|found| record(&json!(found)).is_some()))
    }

    async fn carry_out_all(&self, plan: impl Fn(&Value) -> Option<Value>) -> Result<(), Error> {
        self.carry_out::<MutatingWebhookConfiguration>(&plan).await?;
        self.carry_out::<ValidatingWebhookConfiguration>(&plan).await?;
        self.carry_out::<OnDemand<MutatingWebhookConfiguration>>(&plan).await?;
        self.carry_out::<OnDemand<ValidatingWebhookConfiguration>>(&plan).await
    }

    /// Writes the patch that `plan` returns for the configuration.
    async fn carry_out<C: Configuration>(&self, plan: impl Fn(&Value) -> Option<Value>) -> Result<(), Error> {
        let params = patching(FIELD_MANAGER);
        let rewritten = rewrite::<C, _>(&self.client, &params, |found| ((), plan(found)));
        if let Some(((), Some(written))) = within(URGENT_REQUEST_TIMEOUT, rewritten).await? {
            let written = json!(written);
            let policies: BTreeMap<_, _> = policies(&written).collect();
            tracing::warn!(configuration = C::NAME, ?policies, "Changed failurePolicy, as the Deployment was scaled");
        }
        Ok(())
    }

    async fn state(&self) -> Result<DeploymentState, Error> {
        let found = answered(&format!("deployment {}", self.name), self.deployments.get_opt(&self.name)).await?;
        Ok(found.as_ref().map_or(DeploymentState::Gone, state))
    }
}

async fn answered<T>(name: &str, request: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    within(URGENT_REQUEST_TIMEOUT, async { request.await.map_err(Error::api(name)) }).await
}

fn state(deployment: &PartialDeployment) -> DeploymentState {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    if wanted == Some(0) || deployment.meta().deletion_timestamp.is_some() {
        return DeploymentState::Away;
    }
    let status = deployment.status.as_ref();
    let is_ready = status.is_some_and(|status| {
        status.ready_replicas.unwrap_or_default() > 0 && status.observed_generation >= deployment.meta().generation
    });
    DeploymentState::Wanted { is_ready }
}

fn record(configuration: &Value) -> Option<Result<FailOpenRecord, String>> {
    let text = annotation(configuration, ANNOTATION)?.as_str()?;
    Some(serde_json::from_str(text).map_err(|error| error.to_string()))
}

/// The strategic merge patch that turns every entry to Ignore and records what it was; nothing where that is done, or where
/// break-glass has done the same.
fn open(found: &Value, now: Timestamp) -> Option<Value> {
    if is_in_force(found) || record(found).is_some() {
        return None;
    }
    let was: BTreeMap<String, String> =
        policies(found).map(|(entry, policy)| (entry.to_owned(), policy.to_owned())).collect();
    let entries: Vec<(&str, &str)> =
        policies(found).filter(|(_, policy)| *policy != IGNORE).map(|(entry, _)| (entry, IGNORE)).collect();
    if entries.is_empty() {
        return None;
    }
    let record = json!(FailOpenRecord { at: now.to_string(), was }).to_string();
    Some(patch(found, ANNOTATION, &json!(record), &entries))
}

/// The patch that puts back what was; nothing where nothing is recorded, or while break-glass is in force.
fn close(found: &Value) -> Option<Value> {
    if is_in_force(found) {
        return None;
    }
    // Of a record that cannot be read only the annotation can be taken away.
    let was = record(found)?.map(|record| record.was).unwrap_or_default();
    // An entry that is not Ignore any more was changed on purpose.
    let turned = policies(found).filter(|(_, policy)| *policy == IGNORE);
    let entries: Vec<(&str, &str)> = turned.filter_map(|(entry, _)| Some((entry, was.get(entry)?.as_str()))).collect();
    Some(patch(found, ANNOTATION, &Value::Null, &entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn configuration(policies: &[(&str, &str)], annotations: &Value) -> Value {
        let webhooks: Vec<Value> =
            policies.iter().map(|(name, policy)| json!({"name": name, "failurePolicy": policy})).collect();
        json!({"metadata": {"resourceVersion": "7", "annotations": annotations}, "webhooks": webhooks})
    }

    const RECORD: &str = r#"{"at":"2026-01-02T03:04:05Z","was":{"a":"Fail","b":"Ignore"}}"#;

    #[test]
    fn the_deployment_tells_whether_anybody_will_answer() {
        for (deployment, expected) in [
            (json!({"spec": {"replicas": 0}, "status": {"readyReplicas": 1}}), DeploymentState::Away),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}, "spec": {"replicas": 2}}),
                DeploymentState::Away,
            ),
            (json!({"spec": {"replicas": 2}}), DeploymentState::Wanted { is_ready: false }),
            (json!({"spec": {}, "status": {"readyReplicas": 1}}), DeploymentState::Wanted { is_ready: true }),
            (
                json!({"metadata": {"generation": 3}, "spec": {"replicas": 1}, "status": {"readyReplicas": 1, "observedGeneration": 2}}),
                DeploymentState::Wanted { is_ready: false },
            ),
        ] {
            let mut whole = json!({"spec": {"selector": {}, "template": {}}});
            json_patch::merge(&mut whole, &deployment);
            assert_eq!(state(&serde_json::from_value(whole).unwrap()), expected, "{deployment}");
        }
    }

    #[test]
    fn every_entry_is_turned_to_ignore_once_and_what_it_was_is_recorded() {
        let found = configuration(&[("a", "Fail"), ("b", "Ignore")], &Value::Null);
        assert_eq!(
            open(&found, now()).unwrap(),
            json!({
                "metadata": {"resourceVersion": "7", "annotations": {ANNOTATION: RECORD}},
                "webhooks": [{"name": "a", "failurePolicy": "Ignore"}],
            })
        );
        for annotations in [json!({ANNOTATION: RECORD}), json!({"outrider.dev/break-glass": "{}"})] {
            assert_eq!(open(&configuration(&[("a", "Fail")], &annotations), now()), None, "{annotations}");
        }
        assert_eq!(open(&configuration(&[("a", "Ignore")], &Value::Null), now()), None);
    }

    #[test]
    fn what_was_is_put_back_unless_somebody_else_decided() {
        let recorded = json!({ANNOTATION: RECORD});
        let metadata = json!({"resourceVersion": "7", "annotations": {ANNOTATION: null}});
        let table = [
            (
                configuration(&[("a", "Ignore"), ("b", "Ignore")], &recorded),
                Some(json!([{"name": "a", "failurePolicy": "Fail"}, {"name": "b", "failurePolicy": "Ignore"}])),
            ),
            (configuration(&[("a", "Fail"), ("new", "Ignore")], &recorded), Some(json!([]))),
            (configuration(&[("a", "Ignore")], &json!({ANNOTATION: "{"})), Some(json!([]))),
            (configuration(&[("a", "Ignore")], &Value::Null), None),
            (configuration(&[("a", "Ignore")], &json!({ANNOTATION: RECORD, "outrider.dev/break-glass": "{}"})), None),
        ];
        for (found, webhooks) in table {
            let expected = webhooks.map(|webhooks| json!({"metadata": metadata, "webhooks": webhooks}));
            assert_eq!(close(&found), expected, "{found}");
        }
    }
}
