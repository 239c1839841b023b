//! Annotations by which it is known which form of a must a pod has: what it asked for when it was created, and its record. Were they
//! changed in a running pod, no rollout could bring it another form of the set any more.

use super::forms::Must;
use super::{Containers, Update};
use crate::pod::validate::must;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{AskedAnew, Carried, INJECTED_ANNOTATION, RECORD_MAX_BYTES};
use crate::sidecarset::overrides::OVERRIDES_ANNOTATION;

impl Update<'_, '_> {
    /// Why the pod may not ask for anything else of musts that it carries.
    pub fn asked_anew(&self, musts: &[Must<'_>], containers: &Containers<'_>) -> Vec<String> {
        let Some(asked) = AskedAnew::read(&self.old.metadata, &self.new.metadata) else { return Vec::new() };
        let is_asked =
            |must: &Must<'_>| asked.concerns(must.set) || must.older_form().is_some_and(|form| asked.concerns(form));
        let concerned = musts.iter().filter(|one| is_asked(one) && carried(one, containers));
        let text = |one: &Must<'_>| {
            format!(
                "{}, and what its annotation {OVERRIDES_ANNOTATION} asks of the set may not change in a running pod; recreate the pod",
                must(one.set)
            )
        };
        concerned.map(text).collect()
    }

    /// Why the record may not grow beyond what rollouts read of it.
    pub fn recorded_too_long(&self, musts: &[Must<'_>], containers: &Containers<'_>) -> Option<String> {
        let [old, new] = [&self.old.metadata, &self.new.metadata]
            .map(|metadata| metadata.annotation(INJECTED_ANNOTATION).map_or(0, str::len));
        let first = musts.iter().find(|must| carried(must, containers))?;
        (new > RECORD_MAX_BYTES && new > old).then(|| {
            format!(
                "{}, and the pod's annotation {INJECTED_ANNOTATION} would have {new} bytes: rollouts read at most {RECORD_MAX_BYTES}",
                must(first.set)
            )
        })
    }

    /// Why the record may not get so many sets that one of a must in it could not be read. Of sets that are no must, the pod's author
    /// may leave one by a label, and what is read for it then.
    pub fn recorded_with_too_many(&self, musts: &[Must<'_>]) -> Option<String> {
        let [old, new] = [&self.old.metadata, &self.new.metadata];
        if old.annotation(INJECTED_ANNOTATION) == new.annotation(INJECTED_ANNOTATION) {
            return None;
        }
        let sets: Vec<&CompiledSet> = musts.iter().map(|must| -> &CompiledSet { must.set }).collect();
        let [old, new] = [old, new].map(|metadata| Carried::read(metadata, &sets));
        let hidden = musts.iter().find(|must| old.has(must.name()) && new.is_empty())?;
        Some(format!(
            "{}, and the pod's annotation {INJECTED_ANNOTATION} would have more other sets than are read, or is no record; recreate the pod",
            must(hidden.set)
        ))
    }

    /// Whether the pod has another record of a must than before.
    pub fn recorded_anew<'a>(&'a self) -> impl Fn(&Must<'_>) -> bool + use<'a> {
        let [old, new] = [&self.old.metadata, &self.new.metadata];
        let is_kept = old.annotation(INJECTED_ANNOTATION) == new.annotation(INJECTED_ANNOTATION);
        // All that select the pod, as an injection reads its record.
        let sets: Vec<&'a CompiledSet> = self.all.iter().map(|(set, _)| -> &CompiledSet { set }).collect();
        let records = (!is_kept).then(|| [old, new].map(|metadata| Carried::read(metadata, &sets)));
        move |must| records.as_ref().is_some_and(|[old, new]| !old.is_as_in(new, must.name()))
    }
}

/// Whether the pod had a container of the must.
fn carried(must: &Must<'_>, containers: &Containers<'_>) -> bool {
    must.names(containers).any(|name| containers.old.contains(name))
}
