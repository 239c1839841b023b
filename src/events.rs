//! Events about objects, for `kubectl describe` and `kubectl events`.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Resource};

use crate::answers::{NoAnswer, in_time};
use crate::names::APP;

/// Writes the events of one component. An event that cannot be written is only logged, and never makes anything else fail.
#[derive(Clone)]
pub struct Events(Recorder);

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
}

impl Events {
    /// Events that `outrider-<component>` reports.
    pub fn new(client: Client, component: &str) -> Self {
        Self(Recorder::new(client, format!("{APP}-{component}").as_str().into()))
    }

    /// Writes a warning about an object that a controller reconciles.
    pub async fn warn(&self, object: &impl Resource<DynamicType = ()>, reason: &str, message: &str) {
        self.reconciled(object, true, reason, message, None).await;
    }

    /// Writes an event about an object that a controller reconciles. `related` is another object that it concerns.
    pub async fn reconciled(
        &self,
        object: &impl Resource<DynamicType = ()>,
        warning: bool,
        reason: &str,
        message: &str,
        related: Option<ObjectReference>,
    ) {
        let type_ = if warning { EventType::Warning } else { EventType::Normal };
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(message.to_owned()),
            action: "Reconcile".to_owned(),
            secondary: related,
        };
        self.write(&event, &object.object_ref(&())).await;
    }

    /// Writes an event about the object that `about` refers to.
    pub async fn write(&self, event: &Event, about: &ObjectReference) {
        let publish = async { Ok::<(), Error>(self.0.publish(event, about).await?) };
        if let Err(error) = in_time(publish).await {
            tracing::warn!(%error, reason = event.reason, "An event cannot be written");
        }
    }
}
