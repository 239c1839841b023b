//! What was added, as a patch.

use std::collections::BTreeSet;

use admission::PatchWriter;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::format::names::LABEL_MAX_BYTES;
use admission::patch::{Present, push_quoted, quoted};

use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::lacking::Repair;
use crate::sidecarset::injection::legality::is_empty_dir;
use crate::sidecarset::injection::{INJECTED_ANNOTATION, Injection};
use crate::sidecarset::mark;

/// The container that kubectl takes where none is named.
const DEFAULT_CONTAINER_ANNOTATION: &str = "kubectl.kubernetes.io/default-container";

/// Names of volumes, joined by commas, with which the cluster's autoscaler evicts a pod all the same.
const SAFE_TO_EVICT_ANNOTATION: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

/// The bytes around an element in a patch.
pub(super) const OPERATION: usize = 80;

impl Injection<'_, '_> {
    /// The patch; empty when nothing was added.
    pub fn into_patch(self) -> PatchWriter {
        let added = &self.added;
        let annotations = self.new_annotations();
        if added.is_empty() && self.new_entries.is_empty() && annotations.is_empty() {
            return PatchWriter::default();
        }
        let spec = &self.pod.spec;
        let mut patch = PatchWriter::with_capacity(self.patch_size());
        if !spec.is_there {
            patch.add("/spec", "{}");
        }
        // First: what follows puts others in front of these.
        added.repairs.iter().for_each(|repair| repair.write(&mut patch));
        if !added.app.is_empty() {
            added.app.write(self.sources(), &mut patch);
        }
        patch.surround(
            "/spec/initContainers",
            present(spec.init_containers.as_deref()),
            added.init_before.iter().map(|piece| &*piece.json),
            added.init_after.iter().map(|piece| &*piece.json),
        );
        patch.surround(
            "/spec/containers",
            present(spec.containers.as_deref()),
            added.before.iter().map(|piece| &*piece.json),
            added.after.iter().map(|piece| &*piece.json),
        );
        patch.surround(
            "/spec/volumes",
            present(spec.volumes.as_deref()),
            [],
            added.volumes.iter().map(|volume| &*volume.json),
        );
        patch.surround(
            "/spec/imagePullSecrets",
            present(spec.image_pull_secrets.as_deref()),
            [],
            added.secrets.iter().map(|secret| secret.json.as_str()),
        );
        if !annotations.is_empty() {
            let annotations = annotations.iter().map(|(key, value)| (*key, value.as_str()));
            let metadata = &self.pod.metadata;
            if !metadata.is_there {
                patch.add("/metadata", "{}");
            }
            let place = metadata.annotations.as_ref().map_or(Present::Absent, |pairs| Present::Len(pairs.len()));
            patch.set_members("/metadata/annotations", place, annotations);
        }
        patch
    }

    /// The record and the annotations of the set, as far as they have another value than the pod has.
    pub(crate) fn annotations_of(&self, set: &CompiledSet) -> Vec<(String, String)> {
        let is_of_set = |key: &str| key == INJECTED_ANNOTATION || set.metadata.iter().any(|piece| piece.key == key);
        let all = self.new_annotations().into_iter().filter(|(key, _)| is_of_set(key));
        all.filter_map(|(key, value)| Some((key.to_owned(), serde_json::from_str(&value).ok()?))).collect()
    }

    /// Annotations with another value than the pod has, as JSON.
    fn new_annotations(&self) -> Vec<(&str, String)> {
        let record = (!self.new_entries.is_empty()).then(|| self.record());
        let default_container = self.default_container().map(str::to_owned);
        let volumes = self.safe_to_evict();
        let changed = self.annotations.changed(&self.pod.metadata).into_iter();
        // Instead of what a set gives, as that is in it.
        let changed = changed.filter(|new| volumes.is_none() || new.key != SAFE_TO_EVICT_ANNOTATION);
        let mut all: Vec<(&str, String)> = changed.map(|new| (new.key, new.value)).collect();
        all.extend(volumes.map(|volumes| (SAFE_TO_EVICT_ANNOTATION, volumes)));
        let own = [(INJECTED_ANNOTATION, record), (DEFAULT_CONTAINER_ANNOTATION, default_container)];
        let own = own.into_iter().filter_map(|(key, value)| Some((key, value?)));
        own.chain(all).map(|(key, value)| (key, quoted(&value))).collect()
    }

    /// The volumes with which the cluster's autoscaler may evict the pod, those of sets among them. Only where the pod names
    /// some: it is up to its author to say so. And where there is room for them, as no pod is refused for it.
    fn safe_to_evict(&self) -> Option<String> {
        let given = self.annotations.value(SAFE_TO_EVICT_ANNOTATION);
        let before = given.or_else(|| self.pod.metadata.annotation(SAFE_TO_EVICT_ANNOTATION))?;
        let mut known: BTreeSet<&str> = before.split(',').collect();
        let mut volumes = before.to_owned();
        for volume in self.ours.empty_dirs.iter().filter(|volume| self.is_empty_dir(volume) && known.insert(volume)) {
            if !volumes.is_empty() {
                volumes.push(',');
            }
            volumes.push_str(volume);
        }
        let more = volumes.len() - before.len();
        (more > 0 && more <= self.room_for_annotations()).then_some(volumes)
    }

    /// Whether the pod has that volume as an `emptyDir` now. One that carries an older form of a set may have another, or none.
    fn is_empty_dir(&self, name: &str) -> bool {
        match self.theirs.volume(name) {
            Some((_, volume)) => is_empty_dir(volume),
            None => self.ours.volumes.contains_key(name),
        }
    }

    /// Bytes that annotations may take beside the record and those that sets give.
    fn room_for_annotations(&self) -> usize {
        // The other brace of the record counts too.
        ANNOTATIONS_MAX_BYTES.saturating_sub(self.annotation_bytes_with(self.record_bytes + 1))
    }

    /// The annotation's new value: the records of other sets as they were, those of the added sets anew.
    fn record(&self) -> String {
        let mut record = String::with_capacity(self.record_bytes + 2);
        record.push('{');
        let mut write = |set: &str, entry: &str| {
            if record.len() > 1 {
                record.push(',');
            }
            push_quoted(&mut record, set);
            record.push(':');
            record.push_str(entry);
        };
        // Both are sorted by set.
        let mut new = self.new_entries.iter().map(|(set, entry)| (*set, entry.as_ref())).peekable();
        for (set, entry) in self.carried.entries() {
            while let Some((before, entry)) = new.next_if(|(new, _)| *new < set) {
                write(before, entry);
            }
            let renewed = new.next_if(|(new, _)| *new == set);
            write(set, renewed.map_or(entry, |(_, renewed)| renewed));
        }
        new.for_each(|(set, entry)| write(set, entry));
        record.push('}');
        record
    }

    /// The pod's own first container, which kubectl takes for `logs`, `exec` and the like. Only where it is no longer the first
    /// of all and the pod does not name one; and where there is room for it, as no pod is refused for a convenience.
    fn default_container(&self) -> Option<&str> {
        let is_named = self.pod.metadata.annotation(DEFAULT_CONTAINER_ANNOTATION).is_some()
            || self.annotations.has(DEFAULT_CONTAINER_ANNOTATION);
        if self.added.before.is_empty() || is_named {
            return None;
        }
        let room = self.room_for_annotations().saturating_sub(DEFAULT_CONTAINER_ANNOTATION.len());
        let containers = self.pod.spec.containers().iter();
        // A body without the mark has no container with it.
        let has_marks = self.body.contains(mark::NAME);
        containers
            .filter(|container| (1..=LABEL_MAX_BYTES).contains(&container.name.len()))
            .filter(|container| !self.ours.containers.contains_key(container.name.as_str()))
            .find(|container| !has_marks || !container.raw(self.body).is_some_and(mark::is_marked_raw))
            .map(|container| container.name.as_str())
            .filter(|name| name.len() <= room)
    }

    fn patch_size(&self) -> usize {
        let added = &self.added;
        let containers: usize = added.containers().map(|piece| piece.json.len() + OPERATION).sum();
        let volumes: usize = added.volumes.iter().map(|volume| volume.json.len() + OPERATION).sum();
        let records: usize = self.new_entries.values().map(|entry| 2 * entry.len() + OPERATION).sum();
        let repairs: usize = added.repairs.iter().map(Repair::bytes).sum();
        containers + volumes + records + repairs + added.app.bytes() + added.secrets.len() * OPERATION + 256
    }
}

fn present<T>(list: Option<&[T]>) -> Present {
    list.map_or(Present::Absent, |list| Present::Len(list.len()))
}
