//! What a container of a set has from the pod's own containers.
//!
//! The order does not matter: the pod's containers may have come in another one, or changed, since the set's was injected.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{CompiledAllowedChanges, settled};
use crate::sidecarset::api::{RawObject, text};

/// What a container takes from the pod's own containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FromPod {
    /// Variables that `transferEnv` copies.
    pub env: Vec<Value>,
    /// Mounts of volumes, as `shareVolumePolicy` copies them.
    pub volume_mounts: Vec<Value>,
    /// Block devices, as `shareVolumeDevicePolicy` copies them.
    pub volume_devices: Vec<Value>,
}

/// The lists, and by which field their elements are known.
const LISTS: [(&str, &str); 3] = [("env", "name"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")];

/// The same, in a form that can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FromPodForm([BTreeMap<String, Element>; 3]);

#[derive(Debug, Clone, PartialEq)]
struct Element {
    settled: Value,
    json: String,
}

impl FromPodForm {
    pub(super) fn of(taken: &FromPod) -> Self {
        let lists = [&taken.env, &taken.volume_mounts, &taken.volume_devices];
        let mut container = RawObject::new();
        for ((field, _), elements) in LISTS.iter().zip(lists) {
            container.insert((*field).to_owned(), json!(elements));
        }
        let mut settled = settled::container(container);
        let mut form = Self::default();
        for (((field, key), elements), map) in LISTS.iter().zip(lists).zip(&mut form.0) {
            let Some(Value::Array(settled)) = settled.remove(*field) else { continue };
            let pairs = settled.into_iter().zip(elements);
            let named = pairs.map(|(settled, element)| (text(element, key).to_owned(), (settled, element.to_string())));
            *map = named.map(|(name, (settled, json))| (name, Element { settled, json })).collect();
        }
        form
    }

    /// To find it in the container `found`.
    pub(super) fn expected(&self, found: &RawObject) -> Expected<'_> {
        let lists = LISTS.iter().zip(&self.0).map(|((field, _), elements)| {
            let is_there = found.get(*field).is_some_and(Value::is_array);
            ExpectedList { elements, seen: BTreeSet::new(), differing: Vec::new(), is_there }
        });
        Expected(lists.collect())
    }
}

/// What of it was found in a container.
pub(super) struct Expected<'t>(Vec<ExpectedList<'t>>);

struct ExpectedList<'t> {
    elements: &'t BTreeMap<String, Element>,
    seen: BTreeSet<&'t str>,
    differing: Vec<(usize, &'t str)>,
    is_there: bool,
}

impl<'t> Expected<'t> {
    /// Whether something of the list is expected.
    pub(super) fn has(&self, field: &str) -> bool {
        self.list(field).is_some_and(|list| !list.elements.is_empty())
    }

    fn list(&self, field: &str) -> Option<&ExpectedList<'t>> {
        self.0.get(LISTS.iter().position(|(name, _)| *name == field)?)
    }

    /// Whether an element of the list is one that is expected, though perhaps with another value. Each is so once.
    pub(super) fn take(&mut self, field: &str, position: usize, element: &Value) -> bool {
        let Some(at) = LISTS.iter().position(|(name, _)| *name == field) else { return false };
        let (Some(list), Some((_, key))) = (self.0.get_mut(at), LISTS.get(at)) else { return false };
        let Some((name, expected)) = list.elements.get_key_value(text(element, key)) else { return false };
        if !list.seen.insert(name) {
            return false;
        }
        if expected.settled != *element {
            list.differing.push((position, &expected.json));
        }
        true
    }

    /// What was not found, or with another value.
    pub(super) fn lacking(self, allowed: &CompiledAllowedChanges) -> Lacking {
        let lists = LISTS.iter().zip(self.0).filter_map(|((field, _), list)| {
            let may_lack = |name: &str| match *field {
                "env" => allowed.variable(name),
                "volumeMounts" => allowed.mount_path(name),
                _ => false,
            };
            let missing =
                list.elements.iter().filter(|(name, _)| !list.seen.contains(name.as_str()) && !may_lack(name));
            let (names, add): (Vec<_>, Vec<_>) = missing.map(|(name, it)| (name.clone(), it.json.clone())).unzip();
            let replace: Vec<_> = list.differing.iter().map(|(at, json)| (*at, (*json).to_owned())).collect();
            let first = names.into_iter().next();
            let lacking = LackingInList { field, first, is_there: list.is_there, replace, add };
            (!lacking.replace.is_empty() || !lacking.add.is_empty()).then_some(lacking)
        });
        Lacking { lists: lists.collect() }
    }
}

/// What a container of a pod lacks of what its set takes from the pod's own containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lacking {
    /// By list of the container.
    pub lists: Vec<LackingInList>,
}

/// What one list of a container lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingInList {
    /// The list.
    pub field: &'static str,
    first: Option<String>,
    /// The container has the list.
    pub is_there: bool,
    /// Elements with another value, by position, and what they are to be as JSON.
    pub replace: Vec<(usize, String)>,
    /// Elements that are not there, as JSON.
    pub add: Vec<String>,
}

impl Lacking {
    /// Whether nothing is lacking.
    pub const fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// The first that is lacking, such as `env[MODE]`.
    pub fn first(&self) -> Option<String> {
        let list = self.lists.first()?;
        let position = || list.replace.first().map(|(at, _)| at.to_string());
        Some(format!("{}[{}]", list.field, list.first.clone().or_else(position).unwrap_or_default()))
    }
}
