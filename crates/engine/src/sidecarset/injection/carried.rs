//! What the pod's annotations say it carries already.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use admission::patch::quoted;
use admission::{Reason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::pod::view::Metadata;
use crate::reasons;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{List, Missing};

/// Our record on a pod: JSON, set name → hash, revision, containers, initContainers.
pub const INJECTED_ANNOTATION: &str = "outrider.dev/injected";

/// OpenKruise's record on a pod: names of sets, joined by commas. Read for migration, never written.
const OPENKRUISE_ANNOTATION: &str = "kruise.io/sidecarset-injected-list";

/// The record of one set.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Entry<'p> {
    #[serde(borrow)]
    containers: Option<Vec<Text<'p>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<Text<'p>>>,
}

admission::only_objects!(Entry<'p>);

/// The record of a set that selects the pod, its names sorted.
#[derive(Debug, Default)]
struct Listed<'p> {
    containers: BTreeSet<Text<'p>>,
    init_containers: BTreeSet<Text<'p>>,
}

/// Who the records say brought a container. The pod's author may have written them.
#[derive(Debug, Default)]
struct Owners<'p, 's> {
    // Any two: one of them is not the set that is decided about.
    any: Vec<Text<'p>>,
    selecting: Vec<&'s CompiledSet>,
}

/// What the pod says it carries, read once for all sets that select the pod. Names that none of them brings are passed over.
#[derive(Debug, Default)]
pub struct Carried<'p, 's> {
    // Raw, so that entries of other sets are written back as they were.
    raw: BTreeMap<Text<'p>, &'p RawValue>,
    listed: BTreeMap<&'s str, Listed<'p>>,
    owners: BTreeMap<&'s str, Owners<'p, 's>>,
    openkruise: BTreeSet<&'p str>,
}

impl<'p, 's> Carried<'p, 's> {
    /// Reads the annotations. A record that cannot be read counts as none: the containers it spoke of then have no owner.
    pub fn read(metadata: &'p Metadata<'p>, selecting: &[&'s CompiledSet]) -> Self {
        let mut carried = Self::default();
        let record = metadata.annotation(INJECTED_ANNOTATION);
        let openkruise = metadata.annotation(OPENKRUISE_ANNOTATION);
        if record.is_none() && openkruise.is_none() {
            return carried;
        }
        let sets: BTreeMap<&str, &'s CompiledSet> = selecting.iter().map(|set| (set.name.as_str(), *set)).collect();
        let named = openkruise.into_iter().flat_map(|list| list.split(',')).map(str::trim);
        carried.openkruise = named.filter(|name| sets.contains_key(name)).collect();
        carried.raw = record.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        if !carried.raw.is_empty() {
            carried.read_entries(&sets);
        }
        carried
    }

    fn read_entries(&mut self, sets: &BTreeMap<&'s str, &'s CompiledSet>) {
        let pieces = sets.values().flat_map(|set| set.pieces());
        self.owners = pieces.map(|piece| (piece.name.as_str(), Owners::default())).collect();
        for (name, raw) in &self.raw {
            let Ok(entry) = serde_json::from_str::<Entry<'p>>(raw.get()) else { continue };
            let set = sets.get_key_value(name.as_str()).map(|(name, set)| (*name, *set));
            for container in entry.containers.iter().chain(&entry.init_containers).flatten() {
                if let Some(owners) = self.owners.get_mut(container.as_str()) {
                    owners.add(name, set.map(|(_, set)| set));
                }
            }
            if let Some((name, _)) = set {
                let sorted = |names: Option<Vec<Text<'p>>>| names.into_iter().flatten().collect();
                let listed =
                    Listed { containers: sorted(entry.containers), init_containers: sorted(entry.init_containers) };
                self.listed.insert(name, listed);
            }
        }
    }

    /// Whether there is a record of the set.
    pub fn has(&self, set: &str) -> bool {
        self.raw.contains_key(set)
    }

    /// Whether the record of the set is this text already.
    pub(super) fn says(&self, set: &str, entry: &str) -> bool {
        self.raw.get(set).is_some_and(|raw| raw.get() == entry)
    }

    /// The record of the set with the names of what is missing added to it; `None` when it names all of that already.
    ///
    /// Hash and revision stay: they are those of the containers that are there, and the controller is to see them as old.
    pub(super) fn entry_with<'a>(&self, set: &str, missing: &Missing<'_>) -> Option<Cow<'a, str>> {
        let raw = self.raw.get(set)?;
        let mut entry: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
        let inits = missing.init_before.iter().chain(&missing.init_after);
        let containers = missing.before.iter().chain(&missing.after);
        let mut changed = false;
        let known = self.listed.get(set);
        for (field, names) in [
            ("initContainers", inits.map(|piece| piece.name.as_str()).collect::<Vec<_>>()),
            ("containers", containers.map(|piece| piece.name.as_str()).collect()),
        ] {
            let list = entry.entry(field).or_insert(Value::Null);
            if list.is_null() {
                *list = Value::Array(Vec::new());
            }
            let Value::Array(list) = list else { continue };
            // What is missing of a set has different names.
            for name in names.into_iter().filter(|name| !known.is_some_and(|known| known.of(field).contains(*name))) {
                list.push(name.into());
                changed = true;
            }
        }
        changed.then(|| Value::Object(entry).to_string().into())
    }

    /// The set's own entry, with what an older record says of containers that are still in the pod: else nobody would own
    /// them in the next pass, and another set that brings one of that name would decide otherwise then.
    pub(super) fn fresh_entry<'a>(&self, set: &str, entry: &'a str, in_pod: impl Fn(&str) -> bool) -> Cow<'a, str> {
        let Some(old) = self.listed.get(set) else { return Cow::Borrowed(entry) };
        let names: BTreeSet<&str> = old.containers.union(&old.init_containers).map(Text::as_str).collect();
        let kept: Vec<&str> = names.into_iter().filter(|name| in_pod(name)).collect();
        if kept.is_empty() {
            return Cow::Borrowed(entry);
        }
        let mut fresh: Map<String, Value> = serde_json::from_str(entry).unwrap_or_default();
        if let Some(Value::Array(list)) = fresh.get_mut("containers") {
            let own: BTreeSet<String> = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            list.extend(kept.into_iter().filter(|name| !own.contains(*name)).map(Value::from));
        }
        Cow::Owned(Value::Object(fresh).to_string())
    }

    /// Bytes that the record of the set takes in the annotation now, as [`Self::entry_bytes`] counts them.
    pub(super) fn bytes_of(&self, set: &str) -> usize {
        self.raw.get(set).map_or(0, |raw| Self::entry_bytes(set, raw.get()))
    }

    /// Bytes that all records take in the annotation now.
    pub(super) fn bytes(&self) -> usize {
        self.raw.iter().map(|(name, raw)| Self::entry_bytes(name, raw.get())).sum()
    }

    /// An entry with its colon and a comma or brace.
    pub(super) fn entry_bytes(set: &str, entry: &str) -> usize {
        quoted(set).len() + entry.len() + 2
    }

    /// The records as they stand.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &'p str)> {
        self.raw.iter().map(|(set, entry)| (set.as_str(), entry.get()))
    }

    /// By whose hand the set put the container there, as far as the records go.
    pub(super) fn by(&self, set: &str, container: &str, list: List) -> Option<Reason> {
        if self.listed.get(set).is_some_and(|listed| listed.of(list.field()).contains(container)) {
            return Some(reasons::ALREADY_INJECTED);
        }
        let named = self.openkruise.contains(set);
        // Our own record knows better who brought the container.
        (named && self.other_owner(set, container).is_none()).then_some(reasons::INJECTED_BY_OPENKRUISE)
    }

    /// Another set whose record lists the container.
    pub(super) fn other_owner(&self, set: &str, container: &str) -> Option<&str> {
        let owners = self.owners.get(container)?;
        owners.any.iter().map(Text::as_str).find(|other| *other != set)
    }

    /// Other sets that select the pod and whose records list the container.
    pub(super) fn other_selecting_owners(&self, set: &str, container: &str) -> impl Iterator<Item = &'s CompiledSet> {
        let owners = self.owners.get(container).map(|owners| owners.selecting.as_slice()).unwrap_or_default();
        owners.iter().copied().filter(move |other| other.name != set)
    }
}

impl<'p> Listed<'p> {
    fn of(&self, field: &str) -> &BTreeSet<Text<'p>> {
        if field == "initContainers" { &self.init_containers } else { &self.containers }
    }
}

impl<'p, 's> Owners<'p, 's> {
    fn add(&mut self, name: &Text<'p>, set: Option<&'s CompiledSet>) {
        if self.any.len() < 2 && self.any.last() != Some(name) {
            self.any.push(name.clone());
        }
        // The names of one set come one after the other.
        if let Some(set) = set
            && self.selecting.last().is_none_or(|last| last.name != set.name)
        {
            self.selecting.push(set);
        }
    }
}
