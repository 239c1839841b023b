//! Older forms of sets that new pods get, compiled once.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::revisions::{Revision, RevisionIndex};
use super::sets::compile;
use crate::sidecarset::api::{Metadata, SidecarSet};
use crate::sidecarset::canonical::INJECTED_FIELDS;
use crate::sidecarset::compiled::{CompiledSet, revision_name};
use crate::sidecarset::pin::RevisionRef;
use crate::sidecarset::size;

/// The form of a revision, or why there is none.
pub type PinnedForm = Result<Arc<CompiledSet>, String>;

/// For each set that names an older revision, its form.
#[derive(Debug, Clone, Default)]
pub struct PinnedForms {
    by_set: HashMap<String, Pinned>,
}

#[derive(Debug, Clone)]
struct Pinned {
    of: Arc<CompiledSet>,
    revision: Option<Arc<Revision>>,
    form: PinnedForm,
}

impl PinnedForms {
    /// The forms that these sets name, each with its uid. What has not changed since is not compiled again.
    #[must_use]
    pub fn next<'s>(
        &self,
        sets: impl Iterator<Item = (&'s Arc<CompiledSet>, &'s str)>,
        revisions: &RevisionIndex,
    ) -> Self {
        let pinned = sets.filter_map(|(set, uid)| {
            let named = &set.pin.as_ref()?.revision;
            let revision = revisions.find(&set.name, uid, named);
            let same = self.by_set.get(&set.name).filter(|before| {
                Arc::ptr_eq(&before.of, set) && before.revision.as_ref().map(Arc::as_ptr) == revision.map(Arc::as_ptr)
            });
            let pinned = same.cloned().unwrap_or_else(|| Pinned {
                of: Arc::clone(set),
                revision: revision.cloned(),
                form: form(set, named, revision.map(|revision| &**revision)),
            });
            Some((set.name.clone(), pinned))
        });
        Self { by_set: pinned.collect() }
    }

    /// A copy that shares no memory with these.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |pinned: &Pinned| Pinned {
            of: Arc::new(pinned.of.detached()),
            revision: pinned.revision.as_deref().cloned().map(Arc::new),
            form: pinned.form.as_ref().map(|form| Arc::new(form.detached())).map_err(Clone::clone),
        };
        Self { by_set: self.by_set.iter().map(|(set, pinned)| (set.clone(), copy(pinned))).collect() }
    }

    /// The older form of the set that new pods get; nothing where it names none.
    pub fn form(&self, set: &str) -> Option<&PinnedForm> {
        self.by_set.get(set).map(|pinned| &pinned.form)
    }

    /// The name of the revision, where there is one.
    pub fn revision(&self, set: &str) -> Option<&str> {
        self.by_set.get(set)?.revision.as_ref().map(|revision| &*revision.name)
    }
}

/// That no revision of the set is the one that is named.
pub fn missing(named: &RevisionRef, is_offline: bool) -> String {
    let what = match named {
        RevisionRef::Name(name) => format!("no ControllerRevision {name:?} belongs to the set"),
        RevisionRef::CustomVersion(version) => {
            format!("no ControllerRevision of the set has the custom version {version:?}")
        }
    };
    let help = if is_offline { "add it to the manifests" } else { "name one that is kept" };
    format!("{what}; {help}, or remove spec.injectionStrategy.revision to inject the current form")
}

fn form(set: &Arc<CompiledSet>, named: &RevisionRef, revision: Option<&Revision>) -> PinnedForm {
    let revision = revision.ok_or_else(|| missing(named, false))?;
    if *revision.name == *revision_name(&set.name, &set.hash) {
        return Ok(Arc::clone(set));
    }
    let name = &revision.name;
    content(set, revision)?
        .ok()
        .filter(|form| **name == *revision_name(&form.name, &form.hash))
        .map(Arc::new)
        .ok_or_else(|| {
            format!("ControllerRevision {name:?} has been changed: its name does not match the hash of its content")
        })
}

/// The set with the content of the revision, or why there is none; the inner error is that of content that is no set's.
fn content(set: &CompiledSet, revision: &Revision) -> Result<Result<CompiledSet, String>, String> {
    let name = &revision.name;
    let content = revision.content.as_deref().ok_or_else(|| {
        format!("the content of ControllerRevision {name:?} is not held, as those of all sets together exceed 64 MiB; lower revisionHistoryLimit of sets")
    })?;
    let content: &RawValue = serde_json::from_str(content).map_err(|error| error.to_string())?;
    // No set had more: what is decoded takes many times as much as its text.
    size::check_spec(content).map_err(|error| {
        format!("ControllerRevision {name:?} has been changed: it holds more than a set may have ({error})")
    })?;
    Ok(restored(set, content.get()))
}

/// What is wrong with a revision that somebody has written: its owner is a set, which is not always known.
///
/// # Errors
/// The field, and what has to be there.
pub fn check(revision: &Revision, set: Option<&CompiledSet>) -> Result<(), String> {
    const DIGITS: usize = 16;
    let Revision { name, set: owner, .. } = revision;
    let is_hash =
        |hash: &str| hash.len() == DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let hash = name.strip_prefix(&**owner).and_then(|rest| rest.strip_prefix('-'));
    let Some(set) = set else {
        return if hash.is_some_and(is_hash) {
            Ok(())
        } else {
            Err(format!(
                "metadata.name: {name:?} is not {owner:?} of metadata.ownerReferences, a dash and the {DIGITS} digits of a hash"
            ))
        };
    };
    if revision.content.is_none() {
        return Err("data.spec: is missing: it holds what the set injects in this form".to_owned());
    }
    let form = content(set, revision)?.map_err(|error| format!("data.spec: {error}"))?;
    let expected = revision_name(&form.name, &form.hash);
    if **name == *expected {
        return Ok(());
    }
    Err(format!(
        "metadata.name: {name:?} is not the name for this content, {expected:?}; no pod gets a revision with another name, as its content \
         may have been changed"
    ))
}

/// The set with what it injected then. All else, such as selectors and policies, is as it is now.
fn restored(set: &CompiledSet, content: &str) -> Result<CompiledSet, String> {
    let mut spec = set.spec_value();
    let mut content: Value = serde_json::from_str(content).map_err(|error| error.to_string())?;
    if let (Some(spec), Some(content)) = (spec.as_object_mut(), content.as_object_mut()) {
        spec.remove("injectionStrategy");
        for field in INJECTED_FIELDS {
            spec.remove(field);
            spec.extend(content.remove_entry(field));
        }
    }
    let metadata = Metadata {
        name: Some(set.name.clone()),
        generation: Some(set.generation),
        annotations: Some(set.annotations.clone()),
        ..Metadata::default()
    };
    let spec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    compile(&SidecarSet { metadata, spec, status: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(tag: u32) -> Arc<CompiledSet> {
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": format!("c:{tag}")}],
            "injectionStrategy": {"revision": {"customVersion": "old"}},
        });
        let set = json!({"metadata": {"name": "s"}, "spec": spec});
        Arc::new(CompiledSet::compile(&serde_json::from_value(set).unwrap()).unwrap())
    }

    fn revision(of: &CompiledSet, number: i64) -> Arc<Revision> {
        Arc::new(Revision {
            name: revision_name(&of.name, &of.hash).into(),
            set: "s".into(),
            set_uid: "u".into(),
            custom_version: Some("old".into()),
            number,
            content: Some(of.spec_value().to_string().into()),
        })
    }

    #[test]
    fn a_revision_with_more_than_a_set_may_have_is_not_decoded() {
        let (current, mut forged) = (set(2), Revision::clone(&revision(&set(1), 1)));
        let lists = vec!["[]"; 25_000].join(",");
        forged.content = Some(format!(r#"{{"containers":[{{"name":"c","x":[{lists}]}}]}}"#).into());
        let named = RevisionRef::CustomVersion("old".into());
        let error = form(&current, &named, Some(&forged)).unwrap_err();
        assert!(
            error.contains("it holds more than a set may have (the object holds more than 40000 values)"),
            "{error}"
        );
    }

    #[test]
    fn a_form_is_compiled_once_for_each_set_and_revision() {
        let (first, second) = (revision(&set(1), 1), revision(&set(2), 2));
        let current = set(3);
        let next = |before: &PinnedForms, set: &Arc<CompiledSet>, revisions: &[&Arc<Revision>]| {
            let index = RevisionIndex::build(revisions.iter().copied().cloned());
            let forms = before.next([(set, "u")].into_iter(), &index);
            let form = forms.form("s").unwrap().clone().unwrap();
            (forms, form)
        };
        let (forms, form) = next(&PinnedForms::default(), &current, &[&first]);
        assert_eq!(form.hash, set(1).hash);
        let (_, again) = next(&forms, &current, &[&first]);
        assert!(Arc::ptr_eq(&form, &again), "nothing it is made from has changed");
        // Of two with one version the newest.
        let (forms, newer) = next(&forms, &current, &[&first, &second]);
        assert_eq!(newer.hash, set(2).hash);
        let (_, of_another) = next(&forms, &set(4), &[&first, &second]);
        assert!(!Arc::ptr_eq(&newer, &of_another), "selectors and policies are those of the set");
        let (_, own) = next(&forms, &current, &[&revision(&current, 3)]);
        assert!(Arc::ptr_eq(&own, &current), "the current form is there already");
    }
}
