//! Whether a container or volume of a pod is what a set injects.
//!
//! One comparison for admission, validation and the offline commands. It goes over every field, known or not, in the forms
//! of [`canonical`](super::canonical) on both sides. What the API server fills in by itself makes no difference, and neither do
//! the changes that a set allows (`spec.allowedChanges`). Whatever cannot be read is not the same.

mod allowed;
mod container;
mod identities;
mod lists;
mod paths;
mod settled;
mod taken;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
mod variables;
mod verbatim;
mod volume;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use self::identities::{MountOf, Room};
use self::taken::FromPodForm;
use crate::pod::volumes::Volumes;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::strict_volume;
use crate::sidecarset::compiled::VolumePiece;
use crate::sidecarset::flat::{Flat, FlatValue};

pub use self::allowed::{CompiledAllowedChanges, FieldGlob};
pub use self::container::is_image_of;
pub use self::paths::clean as clean_path;
pub use self::settled::amounts_as_stored;
pub use self::taken::{FromPod, Lacking};

/// A container as a set injects it, in a form that can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    // As it is written. What takes longer to compare, and more memory, is made of it for those who ask.
    source: Arc<str>,
    // As it reads in most pods.
    stored: Flat,
    room: Room,
    // Of the container as it goes into a pod.
    bytes: usize,
    // Beside what is written: what the container has from the pod's own containers.
    taken: Option<Box<FromPodForm>>,
}

impl Form {
    /// The form of a container as it goes into a pod, and as which JSON.
    pub fn of(container: &RawObject, json: &Arc<str>) -> Self {
        Self {
            source: Arc::clone(json),
            stored: stored(container),
            room: Room::of(container),
            bytes: json.len(),
            taken: None,
        }
    }

    /// The form of the container in a pod from whose own containers it takes something, with which it is `container` and takes this
    /// many bytes.
    #[must_use]
    pub fn with(&self, container: &RawObject, bytes: usize, taken: &FromPod) -> Self {
        Self {
            source: Arc::clone(&self.source),
            stored: stored(container),
            room: self.room,
            bytes,
            taken: Some(Box::new(FromPodForm::of(taken))),
        }
    }

    /// Shares this text, which is the same as its own, in place of its own.
    pub(in crate::sidecarset) fn detach(&mut self, json: &Arc<str>) {
        self.source = Arc::clone(json);
    }

    /// The command and the arguments, where the set has any.
    pub fn runs(&self) -> (Option<FlatValue<'_>>, Option<FlatValue<'_>>) {
        let field = |name| self.stored.value().get(name);
        (field("command"), field("args"))
    }

    /// The container, in the form in which fields are compared one by one.
    fn fields(&self) -> RawObject {
        settled::container(serde_json::from_str(&self.source).unwrap_or_default())
    }

    /// The first field in which a container of a pod is not what the set injects, such as `env[MODE]`; `None` when it is.
    ///
    /// `found` is `None` when the container has no readable text.
    pub fn difference(
        &self,
        found: Option<&RawValue>,
        allowed: &CompiledAllowedChanges,
        pod: &Around<'_>,
    ) -> Option<String> {
        match self.compare(found, allowed, pod) {
            Ok(lacking) => lacking.first(),
            Err(field) => Some(field),
        }
    }

    /// What a container of a pod lacks of what the set takes from the pod's own containers: another webhook may have changed these
    /// since it was injected.
    ///
    /// # Errors
    /// The first field in which the container is not what the set injects.
    pub fn compare(
        &self,
        found: Option<&RawValue>,
        allowed: &CompiledAllowedChanges,
        pod: &Around<'_>,
    ) -> Result<Lacking, String> {
        #[cfg(test)]
        COMPARED.with(|compared| compared.set(compared.get() + 1));
        let Some(found) = found else { return Err("a part that cannot be read".to_owned()) };
        if !is_readable(found, self.bytes) {
            return Err("its length".to_owned());
        }
        if verbatim::is_same(found, self.stored.value(), self.room, pod) {
            return Ok(Lacking::default());
        }
        let Ok(found) = serde_json::from_str::<RawObject>(found.get()) else {
            return Err("a part that cannot be read".to_owned());
        };
        let found = settled::container(found);
        let nothing = FromPodForm::default();
        let mut taken = self.taken.as_deref().unwrap_or(&nothing).expected(&found);
        match container::difference(&self.fields(), &found, allowed, (self.room, pod), &mut taken) {
            Some(field) => Err(field),
            None => Ok(taken.lacking(allowed)),
        }
    }
}

fn stored(container: &RawObject) -> Flat {
    Flat::of(&Value::Object(settled::as_stored(container)))
}

#[cfg(test)]
thread_local! {
    /// How many containers were compared.
    pub static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What of the pod decides how its containers are read, for one review.
#[derive(Debug, Default)]
pub struct Around<'p> {
    /// The pod uses the network of its node, so that the API server writes a host port for each port.
    pub host_network: bool,
    /// The volumes of the pod.
    pub volumes: Volumes<'p>,
    // Whose token each volume holds that was asked for, by position.
    tokens: RefCell<BTreeMap<usize, Option<MountOf>>>,
}

impl<'p> Around<'p> {
    /// Of a pod with these volumes.
    pub fn new(host_network: bool, volumes: &'p [&'p RawValue]) -> Self {
        Self { host_network, volumes: Volumes::new(volumes), tokens: RefCell::default() }
    }

    /// Whose token the volume of that name holds. Each volume is read once, however many containers mount it.
    fn token(&self, volume: &str) -> Option<MountOf> {
        let (index, raw) = self.volumes.find(volume)?;
        *self.tokens.borrow_mut().entry(index).or_insert_with(|| identities::token_in(raw))
    }
}

/// How much longer a container or volume may be written in a pod and still be the same: the API server and others fill in
/// defaults. What is longer is not read. The author of a pod may write megabytes, and every set may have one of that name.
const FACTOR: usize = 16;
const MORE: usize = 16 * 1024;

fn is_readable(found: &RawValue, ours: usize) -> bool {
    found.get().len() <= ours * FACTOR + MORE
}

/// Whether a volume of a pod has the name and the source of a set's volume.
pub fn is_same_volume(found: &RawValue, ours: &VolumePiece) -> bool {
    is_readable(found, ours.json.len())
        && serde_json::from_str::<RawObject>(found.get()).is_ok_and(|found| volume::is_same(strict_volume(found), ours))
}
