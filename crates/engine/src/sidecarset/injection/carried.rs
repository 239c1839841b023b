//! What the pod's annotations say it carries already.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use admission::patch::quoted_len;
use admission::{Reason, Text};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::pod::limits::{self, at_most};
use crate::pod::view::Metadata;
use crate::reasons;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::List;

/// Our record on a pod: JSON, set name → hash, revision, containers, initContainers.
pub const INJECTED_ANNOTATION: &str = "outrider.dev/injected";

/// Bytes of our record on a pod that rollouts read: of one that is longer they read nothing.
pub const RECORD_MAX_BYTES: usize = 32 * 1024;

/// OpenKruise's record on a pod: names of sets, joined by commas. Read for migration, never written.
const OPENKRUISE_ANNOTATION: &str = "kruise.io/sidecarset-injected-list";

/// Every record of a pod by its set, of so many sets at most beside those that are known. Raw, so that entries of other sets are written
/// back as they were.
fn records<'t>(
    text: &'t str,
    known: &BTreeMap<&str, &CompiledSet>,
    others: usize,
) -> Result<BTreeMap<Text<'t>, &'t RawValue>, serde_json::Error> {
    struct Entries<'k>(&'k BTreeMap<&'k str, &'k CompiledSet>, usize);
    impl<'de> Visitor<'de> for Entries<'_> {
        type Value = BTreeMap<Text<'de>, &'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("records by set")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let Self(known, others) = self;
            // What is written for a known one must not be the one that is too many when it is read again.
            let mut left = [known.len(), others];
            let mut records = Vec::new();
            while let Some(record) = map.next_entry::<Text<'de>, _>()? {
                let left = &mut left[usize::from(!known.contains_key(record.0.as_str()))];
                *left = left.checked_sub(1).ok_or_else(|| A::Error::custom("more sets than a pod carries"))?;
                records.push(record);
            }
            Ok(records.into_iter().collect())
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let records = deserializer.deserialize_map(Entries(known, others))?;
    deserializer.end()?;
    Ok(records)
}

/// Whether the record of a set may name containers. A search is cheaper than reading it. Escapes can spell a key in many ways.
fn names_containers(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() > r#"{"containers":[]}"#.len() && (text.contains("ontainers") || text.contains('\\'))
}

/// The record of one set.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct RecordEntry<'p> {
    #[serde(borrow)]
    hash: Option<Text<'p>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::RECORDED_NAMES }>")]
    containers: Option<Vec<Text<'p>>>,
    #[serde(borrow, deserialize_with = "at_most::<_, _, { limits::RECORDED_NAMES }>")]
    init_containers: Option<Vec<Text<'p>>>,
}

impl RecordEntry<'_> {
    fn names(&self) -> usize {
        [&self.containers, &self.init_containers].into_iter().flatten().map(Vec::len).sum()
    }

    /// Whether it says of what form the set is, or what it put there. A record of ours says one of them at least.
    fn says_something(&self) -> bool {
        self.names() > 0 || self.hash.as_ref().is_some_and(|hash| !hash.as_str().is_empty())
    }
}

admission::only_objects!(RecordEntry<'p>);

/// The record of a set that selects the pod, its names sorted.
#[derive(Debug, Default)]
struct Listed<'p> {
    hash: String,
    containers: BTreeSet<Text<'p>>,
    init_containers: BTreeSet<Text<'p>>,
}

/// Sets whose records list a container, two at most: one of them is not the set that is decided about. The pod's author may have
/// written them.
#[derive(Debug, Default)]
struct ContainerOwners<'p>(Vec<Text<'p>>);

/// The owners of an init container and of a container of one name.
#[derive(Debug, Default)]
struct OwnersByList<'p> {
    init_containers: ContainerOwners<'p>,
    containers: ContainerOwners<'p>,
}

impl<'p> OwnersByList<'p> {
    const fn of(&self, list: List) -> &ContainerOwners<'p> {
        match list {
            List::InitContainers => &self.init_containers,
            List::Containers => &self.containers,
        }
    }

    const fn of_mut(&mut self, list: List) -> &mut ContainerOwners<'p> {
        match list {
            List::InitContainers => &mut self.init_containers,
            List::Containers => &mut self.containers,
        }
    }
}

/// What the pod says it carries, read once for all sets that select the pod. Names that none of them brings are passed over.
#[derive(Debug, Default)]
pub struct Carried<'p, 's> {
    raw: BTreeMap<Text<'p>, &'p RawValue>,
    listed: BTreeMap<&'s str, Listed<'p>>,
    owners: BTreeMap<&'s str, OwnersByList<'p>>,
    // Sets that select the pod, and whose record is none that we write.
    forged: BTreeSet<&'s str>,
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
        carried.raw = record.and_then(|text| records(text, &sets, limits::OTHER_SETS).ok()).unwrap_or_default();
        if !carried.raw.is_empty() {
            carried.read_entries(&sets);
        }
        carried
    }

    fn read_entries(&mut self, sets: &BTreeMap<&'s str, &'s CompiledSet>) {
        let pieces = sets.values().flat_map(|set| set.pieces());
        self.owners = pieces.map(|piece| (piece.name.as_str(), OwnersByList::default())).collect();
        let mut left = limits::RECORDED_NAMES;
        // The pod's author may add names to the records of other sets: those of musts are read first.
        let rank = |(name, _): &(&Text<'p>, &&'p RawValue)| match sets.get(name.as_str()) {
            Some(set) if set.is_must() => 0,
            Some(_) => 1,
            None => 2,
        };
        let mut entries: Vec<_> = self.raw.iter().collect();
        entries.sort_by_key(rank);
        for (name, raw) in entries {
            if !names_containers(raw) && !sets.contains_key(name.as_str()) {
                continue;
            }
            let entry = serde_json::from_str::<RecordEntry<'p>>(raw.get()).ok().filter(RecordEntry::says_something);
            let Some(entry) = entry else {
                self.forged.extend(sets.get_key_value(name.as_str()).map(|(name, _)| *name));
                continue;
            };
            let Some(rest) = left.checked_sub(entry.names()) else { break };
            left = rest;
            let selecting = sets.get_key_value(name.as_str());
            // Such a record is written anew, of what the set brings: what else it claims is forged, and gone in a second pass. One of an
            // older form stays where the pod has a container of it.
            let current =
                selecting.filter(|(_, set)| entry.hash.as_ref().is_some_and(|hash| hash.as_str() == set.hash));
            let brought =
                current.map(|(_, set)| set.pieces().map(|piece| piece.name.as_str()).collect::<BTreeSet<_>>());
            let listed = [(List::Containers, &entry.containers), (List::InitContainers, &entry.init_containers)];
            let listed =
                listed.into_iter().flat_map(|(list, names)| names.iter().flatten().map(move |name| (list, name)));
            for (list, container) in listed {
                let is_forged = brought.as_ref().is_some_and(|brought| !brought.contains(container.as_str()));
                if let Some(owners) = self.owners.get_mut(container.as_str()).filter(|_| !is_forged) {
                    owners.of_mut(list).add(name);
                }
            }
            if let Some((name, _)) = selecting {
                let sorted = |names: Option<Vec<Text<'p>>>| names.into_iter().flatten().collect();
                let listed = Listed {
                    hash: entry.hash.unwrap_or_default().to_string(),
                    containers: sorted(entry.containers),
                    init_containers: sorted(entry.init_containers),
                };
                self.listed.insert(name, listed);
            }
        }
    }

    /// Whether there is no record, or none that is read.
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether there is a record of the set. One that says nothing is none: the pod's author wrote it.
    pub fn has(&self, set: &str) -> bool {
        self.raw.contains_key(set) && !self.forged.contains(set)
    }

    /// Whether `OpenKruise` says that it put the set, which selects the pod, there.
    pub(crate) fn is_by_openkruise(&self, set: &str) -> bool {
        self.openkruise.contains(set)
    }

    /// Whether two pods have the same record of a set, as it is written.
    pub(crate) fn is_as_in(&self, other: &Self, set: &str) -> bool {
        self.raw.get(set).map(|raw| raw.get()) == other.raw.get(set).map(|raw| raw.get())
    }

    /// Whether the record of the set is this text already.
    pub(crate) fn says(&self, set: &str, entry: &str) -> bool {
        self.raw.get(set).is_some_and(|raw| raw.get() == entry)
    }

    /// Whether there is a record of the set, of another form than the set has now.
    pub(crate) fn has_older(&self, set: &CompiledSet) -> bool {
        self.has(&set.name) && !self.is_current(set)
    }

    fn is_current(&self, set: &CompiledSet) -> bool {
        self.listed.get(set.name.as_str()).is_some_and(|listed| listed.hash == set.hash)
    }

    /// The hash of the form that the record of the set is of.
    pub(crate) fn hash_of(&self, set: &str) -> Option<&str> {
        self.listed.get(set).map(|listed| listed.hash.as_str())
    }

    /// The containers that the record of the set lists.
    pub(crate) fn containers(&self, set: &str) -> impl Iterator<Item = (List, &str)> {
        self.listed.get(set).into_iter().flat_map(Listed::containers)
    }

    /// The record of the set without its hash, where that is the current one.
    pub(super) fn entry_without_hash<'a>(&self, set: &CompiledSet) -> Option<Cow<'a, str>> {
        let raw = self.raw.get(set.name.as_str()).filter(|_| self.is_current(set))?;
        let mut entry: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
        for field in ["hash", "revision"] {
            entry.remove(field);
        }
        Some(Value::Object(entry).to_string().into())
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
        quoted_len(set) + entry.len() + 2
    }

    /// The records as they are.
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
        (named && self.other_owner(set, container, list).is_none()).then_some(reasons::INJECTED_BY_OPENKRUISE)
    }

    /// Another set whose record lists the container in this list.
    pub(super) fn other_owner(&self, set: &str, container: &str, list: List) -> Option<&str> {
        let owners = self.owners.get(container)?.of(list);
        owners.0.iter().map(Text::as_str).find(|other| *other != set)
    }
}

impl<'p> Listed<'p> {
    fn containers(&self) -> impl Iterator<Item = (List, &str)> {
        let inits = self.init_containers.iter().map(|name| (List::InitContainers, name.as_str()));
        inits.chain(self.containers.iter().map(|name| (List::Containers, name.as_str())))
    }

    fn of(&self, field: &str) -> &BTreeSet<Text<'p>> {
        if field == "initContainers" { &self.init_containers } else { &self.containers }
    }
}

impl<'p> ContainerOwners<'p> {
    fn add(&mut self, name: &Text<'p>) {
        if self.0.len() < 2 && self.0.last() != Some(name) {
            self.0.push(name.clone());
        }
    }
}
