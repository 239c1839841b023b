//! Watches of what only some plugins read: each is there while an accepted object reads it, and not otherwise.

use std::fmt::Debug;
use std::future::pending;
use std::hash::Hash;
use std::pin::Pin;

use engine::plugins::compiled::{CompiledPlugin, Mode};
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::Change;
use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::watch::follow::{Follower, Step, events};
use crate::watch::read_model::watch_config;

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

    /// Takes a change in.
    fn apply(change: &Change<Self::Key, Self::Value>, feed: &mut SnapshotBuilder);
}

/// What is read of an event.
type Read<R> = Result<Event<<R as WhileRead>::Object>, watcher::Error>;

/// A watch.
pub struct WatchWhileRead<R: WhileRead> {
    client: Client,
    events: Option<Pin<Box<dyn Stream<Item = Read<R>> + Send>>>,
    follower: Follower<R::Key>,
}

impl<R: WhileRead> WatchWhileRead<R> {
    /// A watch that is not there yet.
    pub fn new(client: Client) -> Self {
        Self { client, events: None, follower: Follower::default() }
    }

    /// Begins to watch if a plugin needs it, and ends if none does any more.
    pub fn follow_need(&mut self, feed: &mut SnapshotBuilder) {
        match (is_needed::<R>(feed), self.events.is_some()) {
            (true, false) => {
                self.events = Some(Box::pin(events(Api::all_with(self.client.clone(), &()), watch_config())));
            }
            (false, true) => {
                (self.events, self.follower) = (None, Follower::default());
                R::apply(&Change::Unwatched, feed);
            }
            _ => {}
        }
    }

    /// The next event; none, for ever, while there is no watch.
    ///
    /// # Errors
    /// Those of the watch, which goes on.
    pub async fn next(&mut self) -> Read<R> {
        if let Some(events) = &mut self.events
            && let Some(event) = events.next().await
        {
            return event;
        }
        pending().await
    }

    /// Takes an event in.
    pub fn take(&mut self, event: Read<R>, feed: &mut SnapshotBuilder) {
        self.follower.follow(event, R::key, |step| {
            let change = match step {
                Step::Is(object) => Change::Is(R::key(&object), R::read(object)),
                Step::Gone(key) => Change::Gone(key),
                Step::Listed => Change::Listed,
            };
            R::apply(&change, feed);
        });
    }
}

/// Whether an accepted object that is on reads it.
pub fn is_needed<R: WhileRead>(feed: &SnapshotBuilder) -> bool {
    let records = feed.collections.plugins.collection().table().all();
    let mut forms = records.iter().filter_map(|record| record.compiled.as_ref());
    forms.any(|form| form.mode != Mode::Off && R::is_read_by(form))
}
