//! The watch of a kind of policies: objects that decisions read, of which a cluster may lack the definition.

use engine::snapshot::collection::Collected;
use engine::snapshot::policies::{Policies, Policy};
use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::follow::{EventStream, Follower, WatchStep, next_event};
use super::lenient::{Lenient, lenient_events};
use super::model::Model;
use super::read_model::watch_config;

/// What is read of an event.
type Read<R> = Result<Event<Lenient<R>>, watcher::Error>;

/// A watch. Where there is none, there are no objects.
pub(super) struct PolicyWatch<'m, R> {
    model: &'m Model,
    events: Option<EventStream<Lenient<R>>>,
    follower: Follower<String>,
}

impl<'m, R: Resource<DynamicType = ()> + DeserializeOwned + 'static> PolicyWatch<'m, R> {
    /// A watch by this client; none where the kind is off.
    pub(super) fn new(client: Option<Client>, model: &'m Model) -> Self {
        if client.is_none() {
            model.mark_unknown();
        }
        let watch = |client| lenient_events(client, None, watch_config()).boxed();
        Self { events: client.map(watch), ..Self::of(model) }
    }

    /// A watch without events.
    pub(super) fn of(model: &'m Model) -> Self {
        Self { model, events: None, follower: Follower::default() }
    }

    /// The next event; none, for ever, where there is no watch.
    ///
    /// # Errors
    /// Those of the watch, which goes on.
    pub(super) async fn next(&mut self) -> Read<R> {
        next_event(&mut self.events).await
    }

    /// Takes an event in.
    pub(super) fn take<P>(&mut self, event: Read<R>, collection: &mut Collected<Policies<P>>)
    where
        R: Into<P>,
        P: Policy,
    {
        if self.model.note_optional(&event) {
            for record in collection.collection().table().all() {
                collection.remove(&record.name);
            }
            return;
        }
        self.follower.follow(event, Lenient::name_any, |step| match step {
            WatchStep::Is(lenient) => {
                let name = lenient.name_any();
                match lenient.object() {
                    Ok(object) => drop(collection.apply(&(*object).into())),
                    Err(error) => {
                        tracing::warn!(kind = P::KIND, name, %error, "The object cannot be read; its last good form stays");
                    }
                }
            }
            WatchStep::Gone(name) => drop(collection.remove(&name)),
            WatchStep::Listed => self.model.mark_synced(),
        });
    }
}
