//! Events about objects, for `kubectl describe` and `kubectl events`.

use std::sync::Arc;

use admission::bounded::beginning;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, Resource};
use tokio::sync::Semaphore;

use crate::answers::answer;
use crate::names::APP;

/// Bytes of a note that the API server takes (`NoteLengthLimit` of k8s.io/kubernetes/pkg/apis/core/validation). It refuses events with
/// longer ones, and messages repeat what users have written.
const NOTE_MAX_BYTES: usize = 1024;

/// Writes the events of one component. An event that cannot be written is only logged, and never makes anything else fail.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// Events that `outrider-<component>` reports.
    pub fn new(client: Client, component: &str) -> Self {
        Self(Recorder::new(client, format!("{APP}-{component}").as_str().into()))
    }

    /// Writes a warning about an object that a controller reconciles.
    pub async fn warn(&self, object: &impl Resource<DynamicType = ()>, reason: &str, message: &str) {
        self.reconciled(object, true, reason, message).await;
    }

    /// Writes an event about an object that a controller reconciles.
    pub async fn reconciled(
        &self,
        object: &impl Resource<DynamicType = ()>,
        warning: bool,
        reason: &str,
        message: &str,
    ) {
        self.write(&of_reconcile(warning, reason, message, None), &object.object_ref(&())).await;
    }

    /// Writes an event about the object that `about` refers to.
    pub async fn write(&self, event: &Event, about: &ObjectReference) {
        if let Err(error) = answer(self.0.publish(event, about)).await {
            tracing::warn!(%error, reason = event.reason, "An event cannot be written");
        }
    }
}

fn of_reconcile(warning: bool, reason: &str, message: &str, related: Option<ObjectReference>) -> Event {
    Event {
        type_: if warning { EventType::Warning } else { EventType::Normal },
        reason: reason.to_owned(),
        note: Some(beginning(message, NOTE_MAX_BYTES).to_owned()),
        action: "Reconcile".to_owned(),
        secondary: related,
    }
}

/// Events that wait to be written. Of more, those that come are left out.
const WAITING: usize = 500;
/// Events that are written at one time.
const WRITING: usize = 1;

/// Writes events beside the work that they are about, which does not wait for them.
#[derive(Clone)]
pub struct BackgroundEvents {
    events: Events,
    waiting: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl BackgroundEvents {
    /// Writes by `events`.
    pub fn new(events: Events) -> Self {
        Self { events, waiting: Arc::new(Semaphore::new(WAITING)), writing: Arc::new(Semaphore::new(WRITING)) }
    }

    /// Has an event written about an object that a controller reconciles. `related` is another object that it concerns.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn reconciled(
        &self,
        object: &impl Resource<DynamicType = ()>,
        warning: bool,
        reason: &str,
        message: &str,
        related: Option<ObjectReference>,
    ) {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            tracing::debug!(reason, "An event is left out: too many wait to be written");
            return;
        };
        let (event, about) = (of_reconcile(warning, reason, message, related), object.object_ref(&()));
        let Self { events, writing, .. } = self.clone();
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _turn = writing.acquire_owned().await;
            events.write(&event, &about).await;
            drop(place);
        });
    }

    /// Waits until all are written.
    #[cfg(test)]
    pub async fn written(&self) {
        while self.waiting.available_permits() < WAITING {
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_no_longer_than_the_api_server_takes() {
        let note = |message: &str| of_reconcile(true, "Reason", message, None).note.unwrap();
        assert_eq!(note("what happened"), "what happened");
        assert_eq!(note(&"\u{e9}".repeat(600)), "\u{e9}".repeat(512));
    }
}
