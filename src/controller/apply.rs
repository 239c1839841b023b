//! Owned objects, written by server-side apply when they differ, and never taken from anybody else.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

use super::owned::Owned;
use super::owner::is_controlled_by;
use super::queue::ReconcileError;
use super::scope::{Scoped, within};
use super::{Again, Key, Store};
use crate::answers::{RequestError, answer, is_refusal};

#[cfg(test)]
mod tests;

/// An object of another owner need not be watched; a later reconcile notices that it is gone.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// Why an owned object is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An object of that name exists and belongs to another owner, or has none.
    #[error(
        "{kind} {name:?} exists and is not controlled by this {owner}; delete it, or give this {owner} another name"
    )]
    Foreign {
        /// Kind of the object.
        kind: Cow<'static, str>,
        /// Name of the object.
        name: String,
        /// Kind of what should own it.
        owner: String,
    },
    /// The object names no owner, which would leave it behind for ever: a mistake in the controller.
    #[error("{kind} {name:?} would have no controller")]
    NoOwner {
        /// Kind of the object.
        kind: Cow<'static, str>,
        /// Name of the object.
        name: String,
    },
    /// The namespace is being deleted, and the owner with it.
    #[error("{kind} {name:?}: the namespace is being deleted")]
    NamespaceTerminating {
        /// Kind of the object.
        kind: Cow<'static, str>,
        /// Name of the object.
        name: String,
    },
    /// The API server refused, could not be reached, or did not answer in time.
    #[error("{kind} {name:?}: {source}")]
    Request {
        /// Kind of the object.
        kind: Cow<'static, str>,
        /// Name of the object.
        name: String,
        /// What it said, if anything.
        source: RequestError,
    },
    /// The object cannot be written as JSON: a mistake in the controller.
    #[error("an object cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// What the API server answered, if it is that which failed.
    pub fn answer(&self) -> Option<&Status> {
        let Self::Request { source, .. } = self else { return None };
        source.status()
    }

    /// The HTTP status code of that answer.
    pub fn code(&self) -> Option<u16> {
        self.answer().map(|answer| answer.code)
    }
}

impl ReconcileError for Error {
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Request { source: RequestError::Client(error), .. } if is_refusal(error))
    }
}

impl Error {
    /// When a controller reconciles again after this error: an object of another owner, and one whose namespace ends, are no
    /// failure of ours.
    ///
    /// # Errors
    /// Any other error, to be tried again with growing pauses.
    pub fn again(self) -> Result<Again, Self> {
        match self {
            Self::Foreign { .. } => Ok(Some(LOOK_AGAIN)),
            Self::NamespaceTerminating { .. } => Ok(None),
            failure => Err(failure),
        }
    }
}

/// Whether the API server refused to create something in a namespace that ends.
fn is_namespace_terminating(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    // k8s.io/api/core/v1: NamespaceTerminatingCause.
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Keeps owned objects of one kind: writes them under one name of a field manager.
pub struct Applier<C> {
    client: Client,
    field_manager: &'static str,
    watched: Store<Owned<C>>,
}

impl<C: Resource<DynamicType = (), Scope: Scoped> + Serialize> Applier<C> {
    /// Writes as this field manager. An object that is not among those that are `watched` is read from the API server.
    pub const fn new(client: Client, field_manager: &'static str, watched: Store<Owned<C>>) -> Self {
        Self { client, field_manager, watched }
    }

    /// Applies the object as wanted, and returns it as it is then. Fields that `wanted` does not have are left to others;
    /// those that it has are taken by force. Writes nothing when all of `wanted` is there.
    ///
    /// `wanted` needs a name, a namespace if its kind has such, and an owner reference with `controller`. An object that another client
    /// creates meanwhile is taken over unless it has a controller, as server-side apply cannot be limited to creating.
    ///
    /// # Errors
    /// [`Error::Foreign`] when an object of this name has another controller or none; else what the API server says.
    pub async fn apply(&self, wanted: &C) -> Result<Arc<Owned<C>>, Error> {
        let (key, kind) = (Key::of(wanted), C::kind(&()));
        let api = within::<Owned<C>>(self.client.clone(), &key.namespace);
        let owner = wanted.owner_references().iter().find(|owner| owner.controller == Some(true));
        let owner = owner.ok_or_else(|| Error::NoOwner { kind: kind.clone(), name: key.name.clone() })?;
        let live = match self.watched.get(&key) {
            Some(live) => Some(live),
            None => request::<C, _>(&key, api.get_opt(&key.name)).await?.map(Arc::new),
        };
        let mut document = serde_json::to_value(wanted)?;
        if let Some(live) = live {
            if !is_controlled_by(&*live, &owner.uid) {
                return Err(Error::Foreign { kind, name: key.name, owner: owner.kind.clone() });
            }
            // One that is being deleted comes back when it is gone: its end is an event.
            if live.meta().deletion_timestamp.is_some() || live.contains(&document) {
                return Ok(live);
            }
            // Another object of this name that was created meanwhile stays as it is.
            if let (Some(metadata), Some(uid)) = (document.get_mut("metadata"), live.uid()) {
                metadata["uid"] = uid.into();
            }
        }
        tracing::debug!(%kind, object = ?key, field_manager = self.field_manager, "Applying");
        let params = PatchParams::apply(self.field_manager).force();
        request::<C, _>(&key, api.patch(&key.name, &params, &Patch::Apply(&document))).await.map(Arc::new)
    }
}

/// Waits for an answer about the `C` of this key, but not for ever.
///
/// # Errors
/// [`Error::NamespaceTerminating`], or [`Error::Request`] for any other refusal and where there is no answer.
pub async fn request<C: Resource<DynamicType = ()>, T>(
    key: &Key,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    let (kind, name) = (C::kind(&()), key.name.clone());
    answer(request).await.map_err(|source| match &source {
        RequestError::Client(error) if is_namespace_terminating(error) => Error::NamespaceTerminating { kind, name },
        _ => Error::Request { kind, name, source },
    })
}

/// Whether all of `wanted` is in `live`: what the API server or others added does not count, nor the place of a list's items
/// that are objects.
pub fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| live.get(field).is_some_and(|live| contains(live, wanted)))
        }
        (Value::Array(live), Value::Array(wanted)) if wanted.iter().all(Value::is_object) => {
            wanted.iter().all(|wanted| live.iter().any(|live| contains(live, wanted)))
        }
        _ => live == wanted,
    }
}
