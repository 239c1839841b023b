//! How one watched collection is doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;

use crate::watch::failing::Failing;
use crate::watch::last_seen::LastSeen;
use crate::watch::report::status_code;

/// How one watched collection is doing. Clones share their content.
#[derive(Debug, Clone)]
pub struct Model {
    synced: watch::Sender<bool>,
    /// When the API server was last heard on this watch.
    pub last_seen: LastSeen,
    failing: Failing,
    /// Whether the API server does not know the kind.
    is_unknown: Arc<AtomicBool>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            synced: watch::Sender::new(false),
            last_seen: LastSeen::default(),
            failing: Failing::default(),
            is_unknown: Arc::default(),
        }
    }
}

impl Model {
    /// Whether the whole collection has been read once.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until the whole collection has been read once.
    pub async fn synced(&self) {
        wait_for(&self.synced, |synced| *synced).await;
    }

    /// For how long the watch has failed, and why it last did.
    pub fn failing(&self) -> Option<(Duration, String)> {
        self.failing.since(&self.last_seen)
    }

    /// There are no objects, and nothing to hear.
    pub(super) fn mark_unknown(&self) {
        self.is_unknown.store(true, Ordering::Relaxed);
        self.mark_synced();
    }

    /// Takes note of an event of a kind whose definition a cluster may lack: then there are no objects. Returns whether it does.
    pub(super) fn note_optional<K>(&self, event: &Result<Event<K>, watcher::Error>) -> bool {
        let is_unknown = event.as_ref().is_err_and(|error| status_code(error) == Some(404));
        if is_unknown {
            self.mark_unknown();
        } else {
            if !matches!(event, Ok(Event::Init)) {
                self.is_unknown.store(false, Ordering::Relaxed);
            }
            self.note(event);
        }
        is_unknown
    }

    /// How long ago the watch was heard; `None` while it never was. Of an unknown kind there is nothing to hear.
    pub(super) fn age(&self) -> Option<Duration> {
        if self.is_unknown.load(Ordering::Relaxed) { Some(Duration::ZERO) } else { self.last_seen.age() }
    }

    pub(super) fn note<K>(&self, event: &Result<Event<K>, watcher::Error>) {
        if let Err(error) = event {
            self.failing.note(error, &self.last_seen);
        }
    }

    pub(super) fn mark_synced(&self) {
        self.synced.send_replace(true);
    }
}

/// Waits until the value is so.
pub(super) async fn wait_for<T>(sender: &watch::Sender<T>, condition: impl FnMut(&T) -> bool) {
    // An error would mean that the sender is gone, and it is borrowed here.
    drop(sender.subscribe().wait_for(condition).await);
}
