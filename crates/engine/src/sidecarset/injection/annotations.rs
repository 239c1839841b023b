//! Annotations that sets give to the pod (`spec.patchPodMetadata`).
//!
//! Sets follow each other in order. What comes of patches that several sets merge into one annotation is computed once, at the
//! end: the pod's value may be long, and there may be many sets.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use crate::pod::view::Metadata;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::hot_upgrade::WORKING_ANNOTATION;
use crate::sidecarset::injection::{Clash, Injection, RECORD_MAX_BYTES};
use crate::sidecarset::metadata::{AnnotationPiece, PatchPolicy, changes, merged_text};

/// An annotation that is to change, and its value.
pub(super) struct NewAnnotation<'s> {
    pub(super) key: &'s str,
    pub(super) value: String,
    /// The sets that change it.
    pub(super) sets: Vec<&'s CompiledSet>,
}

/// Annotations that sets have given so far.
#[derive(Debug, Default)]
pub(super) struct Annotations<'s> {
    given: BTreeMap<&'s str, Given<'s>>,
    // The pod's values of keys that sets merge into; nothing where one is no JSON.
    parsed: RefCell<BTreeMap<&'s str, Option<Rc<Value>>>>,
    // Bytes that all annotations take more at most.
    growth: usize,
}

#[derive(Debug, Default)]
struct Given<'s> {
    // In place of what the pod has.
    value: Option<&'s str>,
    merges: Vec<&'s Value>,
    // The last set that did more than add what was not there.
    changed_by: Option<&'s CompiledSet>,
    is_overwritten: bool,
    sets: Vec<&'s CompiledSet>,
}

impl<'s> Annotations<'s> {
    /// What of the set's annotations changes something.
    ///
    /// # Errors
    /// [`Clash`] for a patch that cannot be merged, and for an annotation that an earlier set gives another value.
    pub(super) fn examine(&self, set: &'s CompiledSet, pod: &Metadata<'_>) -> Result<Vec<&'s AnnotationPiece>, Clash> {
        let mut new = Vec::new();
        for piece in &set.metadata {
            if self.check(set, piece, pod)? {
                new.push(piece);
            }
        }
        Ok(new)
    }

    fn check(&self, set: &CompiledSet, piece: &'s AnnotationPiece, pod: &Metadata<'_>) -> Result<bool, Clash> {
        let given = self.given.get(piece.key.as_str());
        let value = given.and_then(|given| given.value).or_else(|| of_pod(pod, &piece.key));
        let is_merge = matches!(piece.policy, PatchPolicy::Merge(_));
        if let Some(Given { changed_by: Some(other), is_overwritten, .. }) = given
            && piece.policy != PatchPolicy::Retain
            && (*is_overwritten || !is_merge)
        {
            return Err(Clash::between_sets(
                set,
                &other.name,
                &format!("annotation {:?} with another value", piece.key),
            ));
        }
        let has_merges = given.is_some_and(|given| !given.merges.is_empty());
        match (&piece.policy, value) {
            (PatchPolicy::Retain, value) => Ok(value.is_none()),
            (PatchPolicy::Overwrite, value) => Ok(value != Some(piece.value.as_str()) || has_merges),
            (PatchPolicy::Merge(_), None | Some("")) => Ok(true),
            (PatchPolicy::Merge(patch), Some(text)) => {
                let parsed = match given.and_then(|given| given.value) {
                    Some(of_set) => serde_json::from_str(of_set).ok().map(Rc::new),
                    None => self.parsed(&piece.key, text),
                };
                let parsed = parsed.ok_or_else(|| Clash::no_json(set, &piece.key, text))?;
                Ok(has_merges || changes(&parsed, patch))
            }
        }
    }

    /// The pod's value of a key.
    fn parsed(&self, key: &'s str, text: &str) -> Option<Rc<Value>> {
        let mut parsed = self.parsed.borrow_mut();
        parsed.entry(key).or_insert_with(|| serde_json::from_str(text).ok().map(Rc::new)).clone()
    }

    /// Takes note of what a set changes, and of what it has changed before.
    pub(super) fn add(&mut self, set: &'s CompiledSet, new: &[&'s AnnotationPiece], pod: &Metadata<'_>) {
        for piece in set.metadata.iter().filter(|piece| piece.policy != PatchPolicy::Retain) {
            let given = self.given.entry(&piece.key).or_default();
            given.is_overwritten |= piece.policy == PatchPolicy::Overwrite;
            given.changed_by = Some(set);
        }
        self.growth += growth(new);
        for piece in new {
            let given = self.given.entry(&piece.key).or_default();
            given.sets.push(set);
            let is_empty = given.value.or_else(|| of_pod(pod, &piece.key)).is_none_or(str::is_empty);
            match &piece.policy {
                PatchPolicy::Retain => given.value = Some(&piece.value),
                PatchPolicy::Overwrite => {
                    given.value = Some(&piece.value);
                    given.merges.clear();
                }
                PatchPolicy::Merge(_) if is_empty => given.value = Some(&piece.value),
                PatchPolicy::Merge(patch) => given.merges.push(patch),
            }
        }
    }

    /// Bytes that all annotations take more at most.
    pub(super) const fn growth(&self) -> usize {
        self.growth
    }

    /// Whether a set gives this one.
    pub(super) fn has(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// What a set puts in place of the pod's value.
    pub(super) fn value(&self, key: &str) -> Option<&'s str> {
        self.given.get(key)?.value
    }

    /// What comes of it all: annotations with another value than the pod's.
    pub(super) fn changed(&self, pod: &Metadata<'_>) -> Vec<NewAnnotation<'s>> {
        let changed = |(key, given): (&&'s str, &Given<'s>)| {
            let before = pod.annotation(key);
            let base = given.value.or(before)?;
            let value = match given.merges.as_slice() {
                [] => Cow::Borrowed(base),
                merges => {
                    let read: Value = serde_json::from_str(base).ok()?;
                    let text = merged_text(base, merges);
                    let is_same = || serde_json::from_str::<Value>(&text).is_ok_and(|value| value == read);
                    if given.value.is_none() && is_same() {
                        return None;
                    }
                    Cow::Owned(text)
                }
            };
            (before != Some(&*value)).then(|| NewAnnotation {
                key,
                value: value.into_owned(),
                sets: given.sets.clone(),
            })
        };
        self.given.iter().filter_map(changed).collect()
    }
}

/// The pod's value, if it is one to keep. What is longer in the annotation of pairs than all of them could take is not ours, and is not
/// read.
fn of_pod<'p>(pod: &'p Metadata<'_>, key: &str) -> Option<&'p str> {
    pod.annotation(key).filter(|text| key != WORKING_ANNOTATION || text.len() <= RECORD_MAX_BYTES)
}

/// Bytes that these take at most.
pub(super) fn growth(new: &[&AnnotationPiece]) -> usize {
    new.iter().map(|piece| piece.key.len() + piece.value.len()).sum()
}

impl<'s> Injection<'_, 's> {
    /// Annotations that the pod lacks of sets that it must carry, and the sets.
    pub fn lacking_annotations(&self) -> Vec<(&'s CompiledSet, &'s str)> {
        let changed = self.annotations.changed(&self.pod.metadata).into_iter();
        changed
            .flat_map(|new| new.sets.into_iter().map(move |set| (set, new.key)))
            .filter(|(set, _)| set.is_must())
            .collect()
    }
}
