//! Follows a collection: events of a watch in, objects that are there and keys of objects that are gone out.

use std::fmt::Debug;
use std::future::pending;
use std::hash::Hash;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::logging::throttle::LogThrottle;
use crate::watch::backoff::WatchBackoff;
use crate::watch::relist::Relist;
use crate::watch::report::report;

/// A step in following a collection.
#[derive(Debug, PartialEq, Eq)]
pub enum WatchStep<K, Q> {
    /// The object is there, as it is here.
    Is(K),
    /// The object of this key is gone.
    Gone(Q),
    /// Everything that there is has been named at least once.
    Listed,
}

/// A watch of `api` that is begun again, after a pause, whenever it fails. Does not end.
pub fn events<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, config).backoff(WatchBackoff::default())
}

/// A watch, of whichever kind it was made.
pub type EventStream<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

/// The next event; none, for ever, where there is no watch.
///
/// # Errors
/// Those of the watch, which goes on.
pub async fn next_event<K>(events: &mut Option<EventStream<K>>) -> Result<Event<K>, watcher::Error> {
    if let Some(events) = events
        && let Some(event) = events.next().await
    {
        return event;
    }
    pending().await
}

/// The keys of a collection that is followed.
#[derive(Debug)]
pub struct Follower<Q> {
    relist: Relist<Q>,
    throttle: LogThrottle,
}

impl<Q> Default for Follower<Q> {
    fn default() -> Self {
        Self { relist: Relist::default(), throttle: LogThrottle::default() }
    }
}

impl<Q: Eq + Hash + Clone> Follower<Q> {
    /// Passes to `each` what an event means, step by step. Objects that went while the watch was down follow with the next list.
    /// An error is logged, once while it lasts.
    pub fn follow<K: Resource<DynamicType = ()>>(
        &mut self,
        event: Result<Event<K>, watcher::Error>,
        key: impl Fn(&K) -> Q,
        mut each: impl FnMut(WatchStep<K, Q>),
    ) {
        self.follow_some(event, key, |step| {
            each(match step {
                WatchStep::Is((object, _)) => WatchStep::Is(object),
                WatchStep::Gone(key) => WatchStep::Gone(key),
                WatchStep::Listed => WatchStep::Listed,
            });
            true
        });
    }

    /// The same for a collection of which few objects matter, for a caller that keeps the same keys. Where `each` returns false about an
    /// object that is there, its key is not kept, and nothing follows when the object is missing from a later list.
    pub fn follow_some<K: Resource<DynamicType = ()>>(
        &mut self,
        event: Result<Event<K>, watcher::Error>,
        key: impl Fn(&K) -> Q,
        mut each: impl FnMut(WatchStep<(K, &Q), Q>) -> bool,
    ) {
        report(&event, &mut self.throttle);
        match event {
            Ok(Event::Init) => self.relist.begin(),
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let key = key(&object);
                if each(WatchStep::Is((object, &key))) {
                    self.relist.seen(key);
                } else {
                    self.relist.gone(&key);
                }
            }
            Ok(Event::Delete(object)) => {
                let key = key(&object);
                self.relist.gone(&key);
                each(WatchStep::Gone(key));
            }
            Ok(Event::InitDone) => {
                for key in self.relist.finish() {
                    each(WatchStep::Gone(key));
                }
                each(WatchStep::Listed);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt as _;
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
    }

    #[test]
    fn what_vanished_while_the_watch_was_away_is_told_before_the_list_is_complete() {
        let (mut follower, mut told) = (Follower::default(), Vec::new());
        for event in [
            Ok(Event::Init),
            Ok(Event::InitApply(object("a"))),
            Ok(Event::InitApply(object("b"))),
            Ok(Event::InitDone),
            Err(watcher::Error::NoResourceVersion),
            Ok(Event::Init),
            Ok(Event::InitApply(object("b"))),
            Ok(Event::InitDone),
            Ok(Event::Delete(object("b"))),
        ] {
            follower.follow(event, ConfigMap::name_any, |step| {
                told.push(match step {
                    WatchStep::Is(object) => format!("+{}", object.name_any()),
                    WatchStep::Gone(name) => format!("-{name}"),
                    WatchStep::Listed => "listed".to_owned(),
                });
            });
        }
        assert_eq!(told, ["+a", "+b", "listed", "+b", "-a", "listed", "-b"]);
    }

    #[test]
    fn of_an_object_that_does_not_matter_no_key_is_kept() {
        let (mut follower, mut gone) = (Follower::default(), Vec::new());
        let mut matters = true;
        for event in [
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitApply(object("b")),
            Event::InitApply(object("never")),
            Event::InitDone,
            Event::Apply(object("b")),
            Event::Init,
            Event::InitDone,
        ] {
            matters &= !matches!(event, Event::Apply(_));
            follower.follow_some(Ok(event), ConfigMap::name_any, |step| match step {
                WatchStep::Is((object, _)) => matters && object.name_any() != "never",
                WatchStep::Gone(name) => {
                    gone.push(name);
                    true
                }
                WatchStep::Listed => true,
            });
        }
        assert_eq!(gone, ["a"], "b did not matter in the end");
    }
}
