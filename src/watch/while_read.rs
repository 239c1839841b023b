//! Watches of what only some plugins read: each is there while an accepted object reads it, and not otherwise.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use engine::plugins::compiled::{CompiledPlugin, Mode};
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::CollectionChange;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::watch::follow::{EventStream, Follower, WatchStep, next_event};
use crate::watch::lenient::decoded_events;
use crate::watch::read_model::watch_config;
use crate::watch::ungated::UngatedWatches;

/// What is watched while a plugin reads it.
pub trait WhileRead {
    /// What is decoded of an object.
    type Object: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static;
    /// Which object.
    type Key: Eq + Hash + Clone;
    /// What decisions read of it.
    type Value;

    /// Whether the plugin reads it.
    fn is_read_by(plugin: &CompiledPlugin) -> bool;

    /// Which object that is.
    fn key(object: &Self::Object) -> Self::Key;

    /// What decisions read of the object.
    fn read(object: Self::Object) -> Self::Value;

    /// How many labels of the object there is no room for.
    fn left_out(_: &Self::Object) -> usize {
        0
    }

    /// Writes to the log that labels of an object are left out.
    fn log_left_out(_: &Self::Key, _: usize) {}

    /// Takes a change in.
    fn apply(change: &CollectionChange<Self::Key, Self::Value>, builder: &mut SnapshotBuilder);
}

/// What is read of an event.
type Read<R> = Result<Event<<R as WhileRead>::Object>, watcher::Error>;

/// A watch that comes and goes with the need for it.
pub struct WatchWhileRead<R: WhileRead> {
    client: Client,
    watches: UngatedWatches,
    events: Option<EventStream<R::Object>>,
    follower: Follower<R::Key>,
    left_out: LeftOut<R::Key>,
}

/// Objects of which labels are left out, and how many: it is logged again only where their number has changed, as some objects change
/// all the time.
struct LeftOut<K>(HashMap<K, usize>);

impl<K: Eq + Hash + Clone> LeftOut<K> {
    fn is_news(&mut self, key: &K, count: usize) -> bool {
        if count == 0 {
            self.0.remove(key);
            return false;
        }
        self.0.insert(key.clone(), count) != Some(count)
    }
}

impl<R: WhileRead> WatchWhileRead<R> {
    /// A watch that is not there yet.
    pub fn new(client: Client, watches: &UngatedWatches) -> Self {
        let (watches, follower) = (watches.clone(), Follower::default());
        Self { client, watches, events: None, follower, left_out: LeftOut(HashMap::new()) }
    }

    /// Begins to watch if a plugin needs it, and ends if none does any more.
    pub fn follow_need(&mut self, builder: &mut SnapshotBuilder) {
        match (is_needed::<R>(builder), self.events.is_some()) {
            (true, false) => {
                let events = decoded_events(self.client.clone(), None, watch_config());
                self.events = Some(Box::pin(self.watches.counting(R::Object::plural(&()), events)));
            }
            (false, true) => {
                (self.events, self.follower) = (None, Follower::default());
                self.left_out = LeftOut(HashMap::new());
                R::apply(&CollectionChange::Unwatched, builder);
            }
            _ => {}
        }
    }

    /// The next event; none, for ever, while there is no watch.
    ///
    /// # Errors
    /// Those of the watch, which goes on.
    pub async fn next(&mut self) -> Read<R> {
        next_event(&mut self.events).await
    }

    /// Takes an event in.
    pub fn take(&mut self, event: Read<R>, builder: &mut SnapshotBuilder) {
        let left_out = &mut self.left_out;
        self.follower.follow(event, R::key, |step| {
            let change = match step {
                WatchStep::Is(object) => {
                    let (key, count) = (R::key(&object), R::left_out(&object));
                    if left_out.is_news(&key, count) {
                        R::log_left_out(&key, count);
                    }
                    CollectionChange::Is(key, R::read(object))
                }
                WatchStep::Gone(key) => {
                    left_out.is_news(&key, 0);
                    CollectionChange::Gone(key)
                }
                WatchStep::Listed => CollectionChange::Listed,
            };
            R::apply(&change, builder);
        });
    }
}

/// Whether an accepted object that is on reads it.
pub fn is_needed<R: WhileRead>(builder: &SnapshotBuilder) -> bool {
    let records = builder.collections.plugins.collection().table().all();
    let mut forms = records.iter().filter_map(|record| record.compiled.as_ref());
    forms.any(|form| form.mode != Mode::Off && R::is_read_by(form))
}

#[cfg(test)]
mod tests {
    use super::LeftOut;

    #[test]
    fn labels_that_are_left_out_are_news_once_for_each_object_and_number() {
        let mut left_out = LeftOut(std::collections::HashMap::new());
        let seen = [("a", 0), ("a", 3), ("a", 3), ("b", 3), ("a", 4), ("a", 0), ("a", 4), ("b", 3)];
        let news = seen.map(|(node, count)| left_out.is_news(&node, count));
        assert_eq!(news, [false, true, false, true, true, false, true, false]);
    }
}
