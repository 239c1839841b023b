//! What the pod's annotations say it carries already.

use std::borrow::Cow;
use std::collections::BTreeMap;

use admission::{Reason, Text};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::pod::view::Metadata;
use crate::reasons;
use crate::sidecarset::injection::{List, Missing};

/// Our record on a pod: JSON, set name → hash, revision, containers, initContainers.
pub const INJECTED_ANNOTATION: &str = "outrider.dev/injected";

/// OpenKruise's record on a pod: names of sets, joined by commas. Read for migration, never written.
const OPENKRUISE_ANNOTATION: &str = "kruise.io/sidecarset-injected-list";

/// The record of one set.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry<'p> {
    #[serde(borrow)]
    containers: Option<Vec<Text<'p>>>,
    #[serde(borrow)]
    init_containers: Option<Vec<Text<'p>>>,
}

impl Entry<'_> {
    fn lists(&self, container: &str, list: List) -> bool {
        let names = match list {
            List::InitContainers => &self.init_containers,
            List::Containers => &self.containers,
        };
        names.iter().flatten().any(|name| name.as_str() == container)
    }
}

/// What the pod says it carries.
#[derive(Debug, Default)]
pub struct Carried<'p> {
    // Raw, so that entries of other sets are written back as they were.
    raw: BTreeMap<Cow<'p, str>, &'p RawValue>,
    openkruise: Option<&'p str>,
}

impl<'p> Carried<'p> {
    /// Reads the annotations. A record that cannot be read counts as none: the containers it spoke of then have no owner.
    pub fn read(metadata: &'p Metadata<'p>) -> Self {
        let raw = metadata
            .annotation(INJECTED_ANNOTATION)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        Self { raw, openkruise: metadata.annotation(OPENKRUISE_ANNOTATION) }
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
        for (field, names) in [
            ("initContainers", inits.map(|piece| piece.name.as_str()).collect::<Vec<_>>()),
            ("containers", containers.map(|piece| piece.name.as_str()).collect()),
        ] {
            let list = entry.entry(field).or_insert(Value::Null);
            if list.is_null() {
                *list = Value::Array(Vec::new());
            }
            let Value::Array(list) = list else { continue };
            for name in names {
                if !list.iter().any(|listed| listed == name) {
                    list.push(name.into());
                    changed = true;
                }
            }
        }
        changed.then(|| Value::Object(entry).to_string().into())
    }

    /// The set's own entry, with what an older record says of containers that are still in the pod: else nobody would own
    /// them in the next pass, and another set that brings one of that name would decide otherwise then.
    pub(super) fn fresh_entry<'a>(&self, set: &str, entry: &'a str, in_pod: impl Fn(&str) -> bool) -> Cow<'a, str> {
        let old = self.entry(set);
        let names = old.containers.iter().chain(&old.init_containers).flatten();
        let kept: Vec<&str> = names.map(Text::as_str).filter(|name| in_pod(name)).collect();
        if kept.is_empty() {
            return Cow::Borrowed(entry);
        }
        let mut fresh: Map<String, Value> = serde_json::from_str(entry).unwrap_or_default();
        if let Some(Value::Array(list)) = fresh.get_mut("containers") {
            for name in kept {
                if !list.iter().any(|listed| listed == name) {
                    list.push(name.into());
                }
            }
        }
        Cow::Owned(Value::Object(fresh).to_string())
    }

    /// The records as they stand.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &'p str)> {
        self.raw.iter().map(|(set, entry)| (set.as_ref(), entry.get()))
    }

    /// By whose hand the set put the container there, as far as the records go.
    pub(super) fn by(&self, set: &str, container: &str, list: List) -> Option<Reason> {
        if self.entry(set).lists(container, list) {
            return Some(reasons::ALREADY_INJECTED);
        }
        let named = self.openkruise?.split(',').any(|name| name.trim() == set);
        // Our own record knows better who brought the container.
        (named && self.other_owners(set, container).next().is_none()).then_some(reasons::INJECTED_BY_OPENKRUISE)
    }

    /// Other sets whose records list the container. The pod's author may have written them.
    pub(super) fn other_owners<'c>(&'c self, set: &'c str, container: &'c str) -> impl Iterator<Item = &'c str> {
        self.raw.keys().map(AsRef::as_ref).filter(move |other| {
            let entry = self.entry(other);
            *other != set && (entry.lists(container, List::Containers) || entry.lists(container, List::InitContainers))
        })
    }

    fn entry(&self, set: &str) -> Entry<'p> {
        self.raw.get(set).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }
}
