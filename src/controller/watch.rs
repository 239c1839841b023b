//! Follows a collection into a store.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{Key, Store, Watchable};
use crate::watch::follow::{Follower, WatchStep};
use crate::watch::lenient::{Lenient, lenient_events};
use crate::watch::read_model::watch_config;
use crate::watch::ungated::UngatedWatches;

/// Objects in one page of a list. A user who may write objects of these kinds may make each as large as can be.
const PAGE: u32 = 20;

/// Keeps the store of the objects that there are, in the namespace if one is given; does not end. `changed` gets every object before and after, once for each version that the watch
/// reports; a relist reports nothing about unchanged objects. `listed` is cancelled when the whole collection was read once.
pub async fn follow<K: Watchable>(
    client: Client,
    namespace: Option<&str>,
    watches: &UngatedWatches,
    labels: Option<String>,
    store: Store<K>,
    listed: CancellationToken,
    changed: impl FnMut(Option<&K>, Option<&K>) + Send,
) {
    let mut config = watch_config().page_size(PAGE);
    config.label_selector = labels;
    let mut events = pin!(watches.counting(K::plural(&()), lenient_events(client, namespace, config)));
    let (mut follower, mut handler) = (Follower::default(), ObjectEventHandler { store, changed });
    while let Some(event) = events.next().await {
        follower.follow(event, Key::of, |step| match step {
            WatchStep::Is(lenient) => handler.is(lenient),
            WatchStep::Gone(key) => handler.gone(&key),
            WatchStep::Listed => listed.cancel(),
        });
    }
}

struct ObjectEventHandler<K, F> {
    store: Store<K>,
    changed: F,
}

impl<K: Watchable, F: FnMut(Option<&K>, Option<&K>)> ObjectEventHandler<K, F> {
    fn is(&mut self, lenient: Lenient<K>) {
        let key = Key::of(&lenient);
        match lenient.object() {
            Ok(object) => {
                let new = Arc::from(object);
                let old = self.store.put(key, Arc::clone(&new));
                let version = |object: &K| object.meta().resource_version.clone();
                if old.as_deref().and_then(version) != version(&new) || version(&new).is_none() {
                    (self.changed)(old.as_deref(), Some(&new));
                }
            }
            Err(error) => {
                let kind = K::kind(&());
                tracing::warn!(%kind, object = ?key, %error, "Object cannot be read; its last good form stays");
            }
        }
    }

    fn gone(&mut self, key: &Key) {
        if let Some(old) = self.store.take(key) {
            (self.changed)(Some(&old), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, version: &str) -> Lenient<ConfigMap> {
        serde_json::from_value(json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": version}}))
            .unwrap()
    }

    fn unreadable(name: &str) -> Lenient<ConfigMap> {
        let metadata = json!({"namespace": "n", "name": name, "resourceVersion": "9"});
        serde_json::from_value(json!({"metadata": metadata, "data": Value::from(1)})).unwrap()
    }

    #[test]
    fn each_version_is_told_once_and_what_vanished_is_told() {
        let mut told = Vec::new();
        let describe = |object: Option<&ConfigMap>| {
            let text = |object: &ConfigMap| {
                let metadata = &object.metadata;
                format!("{}@{}", metadata.name.clone().unwrap(), metadata.resource_version.clone().unwrap())
            };
            object.map_or_else(|| "-".to_owned(), text)
        };
        let store = Store::default();
        let mut follower = Follower::default();
        let mut handler = ObjectEventHandler {
            store: store.clone(),
            changed: |old: Option<&ConfigMap>, new: Option<&ConfigMap>| {
                told.push(format!("{} {}", describe(old), describe(new)));
            },
        };
        for event in [
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::InitApply(object("b", "2")),
            Event::InitApply(object("c", "3")),
            Event::InitDone,
            Event::Apply(object("a", "4")),
            Event::Apply(unreadable("c")),
            Event::Init,
            Event::InitApply(object("a", "4")),
            Event::InitApply(unreadable("c")),
            Event::InitDone,
            Event::Delete(object("a", "5")),
            Event::Delete(object("a", "5")),
        ] {
            follower.follow(Ok(event), Key::of, |step| match step {
                WatchStep::Is(lenient) => handler.is(lenient),
                WatchStep::Gone(key) => handler.gone(&key),
                WatchStep::Listed => {}
            });
        }
        assert_eq!(told, ["- a@1", "- b@2", "- c@3", "a@1 a@4", "b@2 -", "a@4 -"]);
        assert_eq!(store.all().len(), 1, "the last good form of c stays");
    }
}
