//! The watch of the Secret with the kubeconfigs of `ImageReview` backends, which is there only while a plugin reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::Mode;
use engine::snapshot::builder::SnapshotBuilder;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource as _, ResourceExt as _};

use crate::image_policy::ImageBackends;
use crate::names::IMAGE_POLICY_SECRET;
use crate::watch::follow::{EventStream, Follower, WatchStep, next_event};
use crate::watch::lenient::decoded_events;
use crate::watch::read_model::watch_config;
use crate::watch::ungated::UngatedWatches;

/// Kubeconfigs that are read: one takes several hundred bytes beside its text.
const MAX_KEYS: usize = 256;

type SecretEvent = Result<Event<Secret>, watcher::Error>;

/// The watch of the Secret with the kubeconfigs.
pub struct BackendWatch {
    client: Client,
    namespace: String,
    watches: UngatedWatches,
    events: Option<EventStream<Secret>>,
    follower: Follower<String>,
    found: Option<BTreeMap<String, String>>,
    backends: Arc<ImageBackends>,
}

impl BackendWatch {
    /// A watch that is not there yet, of the Secret in our own namespace.
    pub fn new(client: Client, namespace: &str, backends: Arc<ImageBackends>, watches: &UngatedWatches) -> Self {
        let (namespace, watches) = (namespace.to_owned(), watches.clone());
        Self { client, namespace, watches, events: None, follower: Follower::default(), found: None, backends }
    }

    /// Begins to watch if a plugin reads it, and ends if none does any more.
    pub fn follow_need(&mut self, builder: &SnapshotBuilder) {
        match (is_needed(builder), self.events.is_some()) {
            (true, false) => {
                let of_one = watch_config().fields(&format!("metadata.name={IMAGE_POLICY_SECRET}"));
                let events = decoded_events::<Secret>(self.client.clone(), Some(&self.namespace), of_one);
                self.events = Some(Box::pin(self.watches.counting(Secret::plural(&()), events)));
            }
            (false, true) => {
                (self.events, self.follower) = (None, Follower::default());
                self.found = None;
                self.backends.are_unknown();
            }
            _ => {}
        }
    }

    /// The next event; none, for ever, while there is no watch.
    ///
    /// # Errors
    /// Those of the watch, which goes on.
    pub async fn next(&mut self) -> SecretEvent {
        next_event(&mut self.events).await
    }

    /// Takes an event in.
    pub fn take(&mut self, event: SecretEvent) {
        let is_whole = matches!(event, Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)));
        let found = &mut self.found;
        self.follower.follow(event, Secret::name_any, |step| match step {
            WatchStep::Is(secret) => *found = Some(kubeconfigs(secret)),
            WatchStep::Gone(_) => *found = None,
            WatchStep::Listed => {}
        });
        if is_whole {
            self.backends.are(self.found.clone());
        }
    }
}

/// The kubeconfigs of a Secret by their keys, of more than are read the first. What is no text is an empty kubeconfig, whose fault is
/// said when it is used.
pub fn kubeconfigs(secret: Secret) -> BTreeMap<String, String> {
    let data = secret.data.unwrap_or_default();
    if data.len() > MAX_KEYS {
        tracing::warn!(
            secret = IMAGE_POLICY_SECRET,
            keys = data.len(),
            "Of so many kubeconfigs the first {MAX_KEYS} are read"
        );
    }
    let data = data.into_iter().take(MAX_KEYS);
    data.map(|(key, bytes)| (key, String::from_utf8(bytes.0).unwrap_or_default())).collect()
}

fn is_needed(builder: &SnapshotBuilder) -> bool {
    let records = builder.collections.plugins.collection().table().all();
    let mut forms = records.iter().filter_map(|record| record.compiled.as_ref());
    forms.any(|form| form.plugin == Plugin::ImagePolicyWebhook && form.mode != Mode::Off)
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_secret_is_read_while_a_plugin_that_is_on_needs_it() {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec = json!({"plugin": "ImagePolicyWebhook", "mode": mode});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed(&builder), needed, "{mode}");
        }
        builder.collections.plugins.remove("a");
        assert!(!is_needed(&builder));
    }
}
