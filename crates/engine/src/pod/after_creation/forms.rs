//! The forms in which a pod may have a must: the current one, and the older one that new pods get, or got when this pod was created.
//!
//! Which one the pod has is read from its containers. Its record decides nothing: anybody may write it.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::Unserved;

use super::{Containers, Update};
use crate::pod::select::{Fitted, Selected, Selection, fitted, injection};
use crate::pod::view::PodView;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::{AmountsSource, INJECTED_ANNOTATION, Injection};
use crate::sidecarset::mark::is_marked;
use crate::snapshot::Snapshot;
use crate::snapshot::pinned::PinnedForm;

/// A must that the pod is to carry.
#[derive(Clone, Copy)]
pub(super) struct Must<'s> {
    /// In its current form.
    pub set: &'s Arc<CompiledSet>,
    /// Its older form, or why that cannot be read, where there is one.
    pub older: Option<&'s PinnedForm>,
}

impl<'s> Must<'s> {
    /// The musts among the sets that select a pod.
    pub fn among<'a>(all: &'a Selected<'s>, snapshot: &'a Snapshot) -> impl Iterator<Item = Must<'a>> {
        let musts = all.iter().filter(|(set, selection)| set.is_must() && matches!(selection, Selection::Selected));
        musts.map(|(set, _)| Must { set, older: older(set, snapshot) })
    }

    /// The name of the set.
    pub fn name(&self) -> &'s str {
        &self.set.name
    }

    /// Whether the pod may have a form that is not known.
    pub const fn is_unreadable(&self) -> bool {
        matches!(self.older, Some(Err(_)))
    }

    /// The older form, where it can be read.
    pub const fn older_form(&self) -> Option<&'s Arc<CompiledSet>> {
        match self.older {
            Some(Ok(form)) => Some(form),
            _ => None,
        }
    }

    /// Names of containers that may be the set's, in either form: of those that the older one alone has, the pod may have its own.
    pub fn names<'n>(&self, containers: &'n Containers<'_>) -> impl Iterator<Item = &'n str>
    where
        's: 'n,
    {
        let is_of_set = |piece: &&Piece| {
            let name = piece.name.as_str();
            containers.injected.contains(name) || (containers.old.contains(name) && !is_marked(&piece.object()))
        };
        let older = self.older_form().into_iter().flat_map(|form| form.pieces()).filter(is_of_set);
        let unknown = containers.unclaimed.iter().copied().filter(|_| self.is_unreadable());
        has(self.set).chain(older.map(|piece| piece.name.as_str())).chain(unknown)
    }
}

/// Names of the containers of a set, in either form.
pub(super) fn names<'s>(set: &'s CompiledSet, snapshot: &'s Snapshot) -> impl Iterator<Item = &'s str> {
    let older = older(set, snapshot).and_then(|form| form.as_ref().ok());
    has(set).chain(older.into_iter().flat_map(|form| has(form)))
}

/// Names of the containers of a form.
pub(super) fn has(form: &CompiledSet) -> impl Iterator<Item = &str> {
    form.pieces().map(|piece| piece.name.as_str())
}

fn older<'s>(set: &CompiledSet, snapshot: &'s Snapshot) -> Option<&'s PinnedForm> {
    snapshot.pinned.form(&set.name).filter(|form| form.as_ref().map_or(true, |form| form.hash != set.hash))
}

/// Requests and limits that follow from the pod's own containers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Those that the pod had before.
    #[default]
    Kept,
    /// Those that a new pod would get: this one is to carry the set since its labels have changed.
    Computed,
    /// Those that the pod had before, or those of the set for a container that keeps its image: a rollout resizes a pod before it gives it
    /// the image.
    Resized,
}

/// How strictly a form of a must is judged.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    /// The pod may not lack anything of it.
    pub is_whole: bool,
    /// Containers of it are others than before.
    pub is_changed: bool,
    /// What its requests and limits are compared with, where they follow from the pod's own containers.
    pub sizes: Sizes,
    /// Its record in the pod is another than before.
    pub is_recorded_anew: bool,
}

/// For each must that is judged, why a pod does not carry it, if it does not.
pub(super) type Faults = BTreeMap<String, Option<String>>;

impl Update<'_, '_> {
    /// Judges a pod, the old or the new one, which `selected` select, each in the form that is judged.
    pub fn faults<'a>(
        &'a self,
        pod: &'a PodView<'a>,
        selected: Selected<'_>,
        asked: &BTreeMap<&'a str, Asked>,
    ) -> Result<Faults, Unserved> {
        // As this pod gets them: what of a set depends on the pod is not another form of it. All of them, as containers of other
        // sets are not the pod's own.
        let before = |(name, asked): (&&'a str, &Asked)| (asked.sizes != Sizes::Computed).then_some(*name);
        let resized = asked.iter().filter(|(_, asked)| asked.sizes == Sizes::Resized).map(|(name, _)| *name).collect();
        let amounts =
            AmountsSource::Kept { before: self.old, sets: asked.iter().filter_map(before).collect(), resized };
        let amounts = (amounts, Some(self.old));
        let Fitted { sets, selections, .. } = fitted(pod, self.request.body, selected, amounts, self.snapshot);
        let injection = injection(pod, self.request.body, &sets, &selections);
        let mut faults = Faults::new();
        for (set, selection) in sets.iter().zip(&selections) {
            let Some(asked) = asked.get(set.name.as_str()) else { continue };
            self.request.deadline.check()?;
            let fault = match selection {
                // What the pod would get of it is not known. The set as it is written leaves open what it would settle for the
                // pod, and annotations and owners, on which that depends, may be changed without a webhook.
                Selection::Unfit(clash) => Some(clash.text.clone()),
                Selection::Skipped(_, why) if asked.is_changed => Some(why.clone()),
                _ => differing(&injection, set, *asked),
            };
            faults.insert(set.name.clone(), fault);
        }
        Ok(faults)
    }
}

/// In what the pod does not carry the set.
fn differing<'s>(injection: &Injection<'_, 's>, set: &'s CompiledSet, asked: Asked) -> Option<String> {
    let missing = match injection.examine(set) {
        Err(clash) => return Some(clash.text),
        Ok(missing) => missing,
    };
    let lacking: Vec<&str> = missing.lacking().collect();
    // What it lacked it may go on lacking.
    let lacks = (asked.is_whole && !lacking.is_empty()).then(|| format!("it lacks container {}", lacking.join(", ")));
    let is_recorded = !asked.is_recorded_anew || injection.carried().says(&set.name, &set.entry());
    // What the pod's own containers were to get, they would have got when it was created.
    let is_gained = asked.sizes == Sizes::Computed;
    let lacks_of_own = || is_gained.then(|| missing.repairs().next()).flatten().map(|what| format!("it lacks {what}"));
    let recorded =
        || (!is_recorded).then(|| format!("its annotation {INJECTED_ANNOTATION} is not the record of this form"));
    lacks.or_else(|| missing.outdated().map(str::to_owned)).or_else(lacks_of_own).or_else(recorded)
}
