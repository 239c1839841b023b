//! The watch of `ResourceQuota`s, which is there only while a plugin reads them: a cluster may have many, whose status changes often.

use std::future::pending;
use std::pin::Pin;

use engine::plugins::Plugin;
use engine::plugins::compiled::Mode;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::quotas::{QuotaChange, QuotaKey, QuotaSpec, QuotaStatus, read};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};

use crate::watch::follow::{Follower, Step, events};
use crate::watch::partial::Partial;
use crate::watch::read_model::watch_config;

/// A quota: its scopes, and what it limits.
pub type SlimQuota = Partial<ResourceQuota, QuotaSpec, QuotaStatus>;

/// What is read of an event.
type QuotaEvent = Result<Event<SlimQuota>, watcher::Error>;

/// The watch.
pub struct QuotaWatch {
    client: Client,
    events: Option<Pin<Box<dyn Stream<Item = QuotaEvent> + Send>>>,
    follower: Follower<QuotaKey>,
}

impl QuotaWatch {
    /// A watch that is not there yet.
    pub fn new(client: Client) -> Self {
        Self { client, events: None, follower: Follower::default() }
    }

    /// Begins to watch if a plugin reads quotas, and ends if none does any more.
    pub fn follow_need(&mut self, feed: &mut SnapshotBuilder) {
        match (is_needed(feed), self.events.is_some()) {
            (true, false) => self.events = Some(Box::pin(events(Api::all(self.client.clone()), watch_config()))),
            (false, true) => {
                (self.events, self.follower) = (None, Follower::default());
                feed.collections.quotas.apply(&QuotaChange::Unwatched);
            }
            _ => {}
        }
    }

    /// The next event; none, for ever, while there is no watch.
    ///
    /// # Errors
    /// Those of the watch, which goes on.
    pub async fn next(&mut self) -> QuotaEvent {
        if let Some(events) = &mut self.events
            && let Some(event) = events.next().await
        {
            return event;
        }
        pending().await
    }

    /// Takes an event in.
    pub fn take(&mut self, event: QuotaEvent, feed: &mut SnapshotBuilder) {
        let quotas = &mut feed.collections.quotas;
        self.follower.follow(event, key, |step| {
            let change = match step {
                Step::Is(quota) => QuotaChange::Is(key(&quota), read(quota.spec, quota.status)),
                Step::Gone(key) => QuotaChange::Gone(key),
                Step::Listed => QuotaChange::Listed,
            };
            quotas.apply(&change);
        });
    }
}

fn is_needed(feed: &SnapshotBuilder) -> bool {
    let records = feed.collections.plugins.collection().table().all();
    let mut forms = records.iter().filter_map(|record| record.compiled.as_ref());
    forms.any(|form| form.plugin == Plugin::ResourceQuota && form.mode != Mode::Off)
}

fn key(quota: &SlimQuota) -> QuotaKey {
    QuotaKey { namespace: quota.namespace().unwrap_or_default(), name: quota.name_any() }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;

    #[test]
    fn quotas_are_needed_while_a_plugin_that_is_on_reads_them() {
        let mut feed = SnapshotBuilder::new(Exclusion::default(), true);
        let limited = json!([{"resource": "pods", "matchContains": ["pods"]}]);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec = json!({"plugin": "ResourceQuota", "mode": mode, "resourceQuota": {"limitedResources": limited}});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            feed.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed(&feed), needed, "{mode}");
        }
        feed.collections.plugins.remove("a");
        assert!(!is_needed(&feed));
    }
}
