//! `spec.injectionStrategy.revision`: an older revision for new pods, which must be there.

use admission::field::{Error, ErrorList};

use admission::format::names::label_value;
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::pin::{RevisionRef, versions_in_metadata};
use crate::sidecarset::vocabulary::{NOT_UPDATE, REVISION_PARTIAL};
use crate::snapshot::Snapshot;
use crate::snapshot::pinned::missing;

/// Checks that a revision that is named belongs to the set.
pub fn check(metadata: &Node<'_>, spec: &Node<'_>, cluster: &Snapshot, errors: &mut ErrorList) {
    let revision = spec.child("injectionStrategy").child("revision");
    let (name, version) = (revision.text("revisionName"), revision.text("customVersion"));
    let Some(named) = RevisionRef::of(name, version) else {
        // As a rule the name was forgotten: without it every new pod gets the current form.
        if revision.value.is_object() {
            let detail =
                "name a revision by revisionName or customVersion, or remove revision to inject the current form";
            errors.push(Error::required(&revision.path, detail));
        }
        return;
    };
    let found = cluster.revisions.find(metadata.text("name"), metadata.text("uid"), &named);
    let (field, value) = if name.is_empty() { ("customVersion", version) } else { ("revisionName", name) };
    let path = revision.path.child(field);
    match found {
        None => errors.push(Error::invalid(&path, value, missing(&named, !cluster.namespaces_may_appear))),
        Some(found) if found.content.is_none() => {
            let detail = "the content of the revision is not held, as those of all sets together exceed 64 MiB; lower revisionHistoryLimit of sets";
            errors.push(Error::forbidden(&path, detail));
        }
        Some(_) => {}
    }
}

/// The versions that the set's metadata gives, in the order in which they count.
fn in_metadata<'a>(metadata: &Node<'a>) -> impl Iterator<Item = (&'static str, String, &'a str)> {
    let value = metadata.value;
    versions_in_metadata(move |map, key| value.get(map)?.get(key).and_then(Value::as_str))
}

/// Checks the version that counts where `spec.customVersion` is absent: it becomes a label of the revision. That of a label the API server
/// has checked.
pub fn check_version(metadata: &Node<'_>, spec: &Node<'_>, errors: &mut ErrorList) {
    if !spec.text("customVersion").is_empty() {
        return;
    }
    if let Some((map, key, version)) = in_metadata(metadata).next() {
        let path = metadata.child(map).path.key(&*key);
        errors.extend(label_value(version).into_iter().map(|message| Error::invalid(&path, version, message)));
    }
}

/// Warns of a version in the metadata that does not count, as another one does.
pub fn warn_of_versions(metadata: &Node<'_>, spec: &Node<'_>, warnings: &mut Vec<String>) {
    let mut versions = in_metadata(metadata).map(|(map, key, version)| (format!("metadata.{map}[{key}]"), version));
    let written = Some(spec.text("customVersion")).filter(|version| !version.is_empty());
    let written = written.map(|version| ("spec.customVersion".to_owned(), version));
    let Some((place, counts)) = written.or_else(|| versions.next()) else { return };
    if let Some((other, version)) = versions.find(|(_, version)| *version != counts) {
        warnings.push(format!("{other}: {version:?} does not count, as {place} is {counts:?}; remove one of them"));
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
