//! Warnings to users of the cluster, as events about the mutating webhook configuration: it exists in every kind of installation.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use kube::{Api, Client, Resource};

use crate::answers::answer;
use crate::events::Events;
use crate::names::MUTATING;

/// Writes warnings about the certificates of this process.
#[derive(Clone)]
pub struct Warnings {
    configurations: Api<MutatingWebhookConfiguration>,
    events: Events,
}

impl Warnings {
    /// Writes with this client.
    pub fn new(client: Client) -> Self {
        Self { configurations: Api::all(client.clone()), events: Events::new(client, "certificates") }
    }

    /// Writes a warning. One that cannot be written is only logged, and never makes anything else fail.
    pub async fn warn(&self, reason: &str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: "CheckCertificates".to_owned(),
            secondary: None,
        };
        // `kubectl describe` finds events by uid.
        let about = match answer(self.configurations.get_opt(MUTATING)).await {
            Ok(Some(found)) => found.object_ref(&()),
            _ => named(),
        };
        self.events.write(&event, &about).await;
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
