//! `spec.injectionStrategy.revision`: an older revision for new pods, which must be there.

use admission::field::{Error, ErrorList};

use super::node::Node;
use crate::sidecarset::pin::RevisionRef;
use crate::sidecarset::vocabulary::{NOT_UPDATE, REVISION_PARTIAL};
use crate::snapshot::Snapshot;
use crate::snapshot::pinned::missing;

/// Checks that a revision that is named belongs to the set.
pub fn check(metadata: &Node<'_>, spec: &Node<'_>, cluster: &Snapshot, errors: &mut ErrorList) {
    let revision = spec.child("injectionStrategy").child("revision");
    let (name, version) = (revision.text("revisionName"), revision.text("customVersion"));
    // One that is not named is the current one.
    let Some(named) = RevisionRef::of(name, version) else { return };
    let found = cluster.revisions.find(metadata.text("name"), metadata.text("uid"), &named);
    let (field, value) = if name.is_empty() { ("customVersion", version) } else { ("revisionName", name) };
    let path = revision.path.child(field);
    match found {
        None => errors.push(Error::invalid(&path, value, missing(&named, !cluster.namespaces_may_appear))),
        Some(found) if found.content.is_none() => {
            let detail = "the content of the revision is not held, as there is too much of all revisions together; lower revisionHistoryLimit of sets";
            errors.push(Error::forbidden(&path, detail));
        }
        Some(_) => {}
    }
}

/// Warns of new pods that a rollout takes to another form soon after they were created.
pub fn warn(spec: &Node<'_>, warnings: &mut Vec<String>) {
    let (revision, update) = (spec.child("injectionStrategy").child("revision"), spec.child("updateStrategy"));
    let is_named = RevisionRef::of(revision.text("revisionName"), revision.text("customVersion")).is_some();
    let is_updated = update.text("type") != NOT_UPDATE && update.child("paused").value.as_bool() != Some(true);
    if is_named && is_updated && revision.text("policy") != REVISION_PARTIAL {
        warnings.push(
            "spec.injectionStrategy.revision: new pods get the revision, and the rollout takes them to the current form afterwards, as \
             spec.updateStrategy says; use its paused, type: NotUpdate or selector, or policy: Partial, to keep them at the revision"
                .to_owned(),
        );
    }
}
