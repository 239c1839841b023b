//! Objects of policies, as their watches find them.

use engine::snapshot::collection::Collected;
use engine::snapshot::policies::{Policies, Policy};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::follow::{Follower, WatchStep};
use super::lenient::Lenient;
use super::model::Model;

/// Takes in an event of a kind whose definition a cluster may lack: then there are no objects.
pub(super) fn take<R, P>(
    event: Result<Event<Lenient<R>>, watcher::Error>,
    model: &Model,
    follower: &mut Follower<String>,
    collection: &mut Collected<Policies<P>>,
) where
    R: Resource<DynamicType = ()> + DeserializeOwned + Into<P>,
    P: Policy,
{
    if model.note_optional(&event) {
        for record in collection.collection().table().all() {
            collection.remove(&record.name);
        }
        return;
    }
    follower.follow(event, Lenient::name_any, |step| match step {
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
        WatchStep::Listed => model.mark_synced(),
    });
}
