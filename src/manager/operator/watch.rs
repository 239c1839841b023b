//! Follows a collection into a store.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio_util::sync::CancellationToken;

use super::{Key, Store, Watchable};
use crate::logging::trouble::Trouble;
use crate::world::guarded::Guarded;
use crate::world::patience::Patience;
use crate::world::relist::Relist;
use crate::world::report::report;
use crate::world::watch::watch_config;

/// Objects in one page of a list. Whoever may write objects of these kinds may make each as large as can be.
const PAGE: u32 = 20;

/// Keeps the store of what `api` has; does not end. `changed` gets every object before and after, once for each version of it that the watch tells
/// of; a relist tells nothing about what is as it was. `listed` is cancelled when the whole collection was read once.
pub async fn follow<K: Watchable>(
    api: Api<Guarded<K>>,
    labels: Option<String>,
    store: Store<K>,
    listed: CancellationToken,
    changed: impl FnMut(Option<&K>, Option<&K>) + Send,
) {
    let mut config = watch_config().page_size(PAGE);
    config.label_selector = labels;
    let mut events = pin!(watcher(api, config).backoff(Patience::default()));
    let mut intake = Intake { store, relist: Relist::default(), changed, trouble: Trouble::default() };
    while let Some(event) = events.next().await {
        let complete = matches!(event, Ok(Event::InitDone));
        intake.take_in(event);
        if complete {
            listed.cancel();
        }
    }
}

struct Intake<K, F> {
    store: Store<K>,
    relist: Relist<Key>,
    changed: F,
    trouble: Trouble,
}

impl<K: Watchable, F: FnMut(Option<&K>, Option<&K>)> Intake<K, F> {
    fn take_in(&mut self, event: Result<Event<Guarded<K>>, watcher::Error>) {
        report(&event, &mut self.trouble);
        match event {
            Ok(Event::Init) => self.relist.begin(),
            Ok(Event::Apply(guarded) | Event::InitApply(guarded)) => self.is(guarded),
            Ok(Event::Delete(guarded)) => self.gone(&Key::of(&guarded)),
            Ok(Event::InitDone) => {
                for key in self.relist.finish() {
                    self.gone(&key);
                }
            }
            Err(_) => {}
        }
    }

    fn is(&mut self, guarded: Guarded<K>) {
        let key = Key::of(&guarded);
        self.relist.seen(key.clone());
        match guarded.object {
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
        self.relist.gone(key);
        if let Some(old) = self.store.take(key) {
            (self.changed)(Some(&old), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, version: &str) -> Guarded<ConfigMap> {
        serde_json::from_value(json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": version}}))
            .unwrap()
    }

    fn unreadable(name: &str) -> Guarded<ConfigMap> {
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
        let mut intake = Intake {
            store: store.clone(),
            relist: Relist::default(),
            trouble: Trouble::default(),
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
            intake.take_in(Ok(event));
        }
        assert_eq!(told, ["- a@1", "- b@2", "- c@3", "a@1 a@4", "b@2 -", "a@4 -"]);
        assert_eq!(store.all().len(), 1, "the last good form of c stays");
    }
}
