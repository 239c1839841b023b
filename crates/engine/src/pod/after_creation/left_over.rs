//! Containers that a must brought and has no longer, because it was renamed or taken out of the set: no form of the set says what they
//! are to be, and only a new pod goes without them.

use std::collections::{BTreeMap, BTreeSet};

use admission::bounded::first_chars;

use super::forms::Must;
use super::{Containers, Update, all};
use crate::pod::validate::must;
use crate::pod::view::{Container, PodView};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{Carried, INJECTED_ANNOTATION};
use crate::sidecarset::mark::is_marked_raw;

/// The longest name that a container can have, in characters.
const NAME_MAX: usize = 63;

/// Containers that a pod had, each with the must that brought it.
#[derive(Default)]
pub(super) struct LeftOver<'m, 's, 'p> {
    containers: BTreeMap<&'p str, &'m Must<'s>>,
    /// Whether the pod's record cannot be read: each must may have brought each of them then.
    is_unread: bool,
}

impl<'m, 's, 'p> LeftOver<'m, 's, 'p> {
    /// The must that brought the container of that name.
    pub fn of(&self, name: &str) -> Option<(&'p str, &'m Must<'s>)> {
        self.containers.get_key_value(name).map(|(name, must)| (*name, *must))
    }

    /// Whether the must brought any of them.
    pub fn has_of(&self, must: &Must<'_>) -> bool {
        self.containers.values().any(|of| self.is_unread || of.name() == must.name())
    }
}

impl<'u> Update<'u, '_> {
    /// By the record that the pod had. Of a must it says what injection put there, and does not change in a running pod. Where it cannot
    /// be read, every container counts that carries the mark of injection, which a running pod keeps.
    pub fn left_over<'m, 's>(&self, musts: &'m [Must<'s>], containers: &Containers<'u>) -> LeftOver<'m, 's, 'u> {
        if musts.is_empty() || self.old.metadata.annotation(INJECTED_ANNOTATION).is_none() {
            return LeftOver::default();
        }
        // All that select the pod, as an injection reads its record.
        let sets = self.all.iter().map(|(set, _)| *set).chain(musts.iter().map(|must| must.set));
        let sets: Vec<&CompiledSet> = sets.map(|set| -> &CompiledSet { set }).collect();
        let carried = Carried::read(&self.old.metadata, &sets);
        let known: BTreeSet<&str> = musts.iter().flat_map(|must| must.names(containers)).collect();
        if carried.is_empty() {
            let is_marked = |container: &&Container<'_>| container.raw(self.request.body).is_some_and(is_marked_raw);
            let marked = all(self.old).filter(is_marked).map(|container| container.name.as_str());
            let of_first = marked.filter(|name| !known.contains(name)).map(|name| (name, &musts[0]));
            return LeftOver { containers: of_first.collect(), is_unread: true };
        }
        let of_must = |must: &'m Must<'s>| {
            let recorded = carried.containers(must.name()).filter(|(_, name)| !known.contains(name));
            let names: Vec<&'u str> = recorded.filter_map(|(_, name)| containers.old.get(name).copied()).collect();
            names.into_iter().map(move |name| (name, must))
        };
        LeftOver { containers: musts.iter().flat_map(of_must).collect(), is_unread: false }
    }

    /// Why those may not become others, nor be forgotten by the record: an update changes the image of a container alone.
    pub fn left_over_changed(&self, left_over: &LeftOver<'_, '_, '_>) -> Vec<String> {
        if left_over.containers.is_empty() {
            return Vec::new();
        }
        let (old, new) = (images(self.old), images(self.new));
        let [text, text_now] =
            [self.old, self.new].map(|pod| pod.metadata.annotation(INJECTED_ANNOTATION).unwrap_or_default());
        let sets: Vec<&CompiledSet> = left_over.containers.values().map(|must| -> &CompiledSet { must.set }).collect();
        let now = Carried::read(&self.new.metadata, &sets);
        let is_recorded = |name: &str, of: &Must<'_>| {
            text == text_now || !left_over.is_unread && now.containers(of.name()).any(|(_, recorded)| recorded == name)
        };
        let text = |(name, of): (&&str, &&Must<'_>)| {
            let may_not = if old.get(*name) != new.get(*name) {
                "become another"
            } else if !is_recorded(name, of) {
                "be taken out of its record"
            } else {
                return None;
            };
            Some(format!(
                "{}, and container {}, which an older form of the set brought, may not {may_not}; recreate the pod",
                must(of.set),
                first_chars(name, NAME_MAX)
            ))
        };
        left_over.containers.iter().filter_map(text).collect()
    }
}

fn images<'p>(pod: &'p PodView<'_>) -> BTreeMap<&'p str, &'p str> {
    all(pod).map(|container| (container.name.as_str(), container.image.as_str())).collect()
}
