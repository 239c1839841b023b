//! Namespaces that refuse new pods with a set: by the level of the Pod Security Standards that they enforce, by a `LimitRange` or by a
//! `ResourceQuota`.
//!
//! Found is only what the API server refuses whatever else the pod contains. One container for each namespace and cause is enough.

pub mod namespace_limits;
pub mod pod_levels;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;

use std::collections::BTreeMap;

use self::namespace_limits::{Limits, NamespaceLimits, Part, Room};
use self::pod_levels::Level;
use crate::pod::select::{Reach, reaches};
use crate::sidecarset::compiled::CompiledSet;
use crate::snapshot::Snapshot;

/// Namespaces that are named; the others are counted.
const NAMED: usize = 3;

/// What refuses new pods with a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// In how many namespaces.
    pub namespaces: usize,
    /// Why, for the first of them by name.
    pub first: Vec<String>,
}

/// The namespaces that refuse new pods with the set. Linear in the number of namespaces.
pub fn refused(set: &CompiledSet, snapshot: &Snapshot, limits: &NamespaceLimits) -> Refused {
    let Some(mut search) = Search::of(set, snapshot) else { return Refused::default() };
    let (mut namespaces, mut first) = (0, BTreeMap::new());
    for (name, namespace) in snapshot.namespaces.iter() {
        let (labels, limits) = (namespace.labels(), limits.of(name));
        let is_free = Level::enforced(labels).is_none() && limits.is_none();
        if is_free || snapshot.excludes(name) || reaches(set, name, Some(labels)) != Reach::Yes {
            continue;
        }
        let causes = search.causes(name, labels, limits, Room::Left);
        if causes.is_empty() {
            continue;
        }
        namespaces += 1;
        first.insert(name, causes);
        if first.len() > NAMED {
            first.pop_last();
        }
    }
    Refused { namespaces, first: first.into_values().flatten().collect() }
}

/// Why single namespaces refuse new pods with a set.
pub struct Search<'s> {
    form: &'s CompiledSet,
    parts: Vec<Part<'s>>,
    by_level: BTreeMap<Level, Option<String>>,
}

impl<'s> Search<'s> {
    /// For the form of the set that new pods get; none where they get none.
    pub fn of(set: &'s CompiledSet, snapshot: &'s Snapshot) -> Option<Self> {
        let form = form_of_new_pods(set, snapshot)?;
        let of_init = form.init_containers.iter().map(|piece| Part::of(piece, piece.needs.is_native_sidecar));
        let parts = of_init.chain(form.containers.iter().map(|piece| Part::of(piece, true))).collect();
        Some(Self { form, parts, by_level: BTreeMap::new() })
    }

    /// Why the namespace of this name, with these labels and limits, refuses them; empty if nothing shows that it does.
    pub fn causes(
        &mut self,
        name: &str,
        labels: &BTreeMap<String, String>,
        limits: Option<&Limits>,
        room: Room,
    ) -> Vec<String> {
        let (form, mut causes) = (self.form, Vec::new());
        if let Some(level) = Level::enforced(labels)
            && let Some(cause) = self.by_level.entry(level).or_insert_with(|| pod_levels::refused(form, level))
        {
            causes.push(format!("namespace {name} enforces the pod security level {}: {cause}", level.name()));
        }
        causes.extend(limits.into_iter().flat_map(|limits| limits.refused(name, &self.parts, room)));
        causes
    }
}

/// The form that new pods get; none where they get none.
fn form_of_new_pods<'s>(set: &'s CompiledSet, snapshot: &'s Snapshot) -> Option<&'s CompiledSet> {
    if set.paused {
        return None;
    }
    match &set.pin {
        Some(pin) if !pin.is_partial() => snapshot.pinned.form(&set.name)?.as_deref().ok(),
        _ => Some(set),
    }
}
