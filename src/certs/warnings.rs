//! Warnings to users of the cluster, as events about our webhook configuration: an object that is there however we are deployed.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Api, Client, Resource};
use tokio::time::timeout;

use crate::names::APP;
use crate::names::MUTATING;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes events.
#[derive(Clone)]
pub struct Warnings {
    configurations: Api<MutatingWebhookConfiguration>,
    recorder: Recorder,
}

impl Warnings {
    /// Of the certificates of this process.
    pub fn new(client: Client) -> Self {
        let reporter = format!("{APP}-certificates");
        Self { configurations: Api::all(client.clone()), recorder: Recorder::new(client, reporter.as_str().into()) }
    }

    /// Warns. An event that cannot be written is only logged: it is never the reason why something else fails.
    pub async fn warn(&self, reason: &str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "CheckCertificates".to_owned(),
            secondary: None,
        };
        let publish = async {
            // `kubectl describe` finds events by uid.
            let found = self.configurations.get_opt(MUTATING).await?;
            let about = found.map_or_else(named, |found| found.object_ref(&()));
            self.recorder.publish(&event, &about).await
        };
        match timeout(REQUEST_TIMEOUT, publish).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, reason, "An event cannot be written"),
            Err(_) => tracing::warn!(reason, "An event was not written in time"),
        }
    }
}

fn named() -> ObjectReference {
    ObjectReference {
        api_version: Some(MutatingWebhookConfiguration::api_version(&()).into_owned()),
        kind: Some(MutatingWebhookConfiguration::kind(&()).into_owned()),
        name: Some(MUTATING.to_owned()),
        ..ObjectReference::default()
    }
}
