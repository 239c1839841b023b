//! `spec.appContainers`: variables and mounts for the pod's own containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::sidecarset::api::{AppContainers, RawObject};
use crate::sidecarset::canonical::canonical_container;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::references::references;
use crate::sidecarset::sameness::clean_path;

/// One entry, ready to be spliced in.
#[derive(Debug, Clone)]
pub struct AppPiece {
    // None where all containers are meant.
    names: Option<BTreeSet<String>>,
    init_containers: bool,
    /// A variable that a container has already is changed.
    pub overwrites: bool,
    /// Variables, each name once.
    pub env: Vec<Variable>,
    /// Mounts, each path once.
    pub mounts: Vec<Mount>,
}

/// A variable for containers of the pod.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// The variable as it goes into a container.
    pub json: String,
    // For comparing.
    canonical: Value,
}

/// A mount for containers of the pod.
#[derive(Debug, Clone)]
pub struct Mount {
    /// Path in the container, in one spelling.
    pub path: String,
    /// Name of the volume.
    pub volume: String,
    /// The mount as it goes into a container.
    pub json: String,
}

impl AppPiece {
    /// Those of a set.
    pub fn all(written: Option<&Vec<AppContainers>>) -> Vec<Self> {
        written.into_iter().flatten().map(Self::of).collect()
    }

    fn of(written: &AppContainers) -> Self {
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        let env = written.env.iter().flatten().map(Variable::of);
        let mounts = written.volume_mounts.iter().flatten().map(Mount::of);
        Self {
            names: written.container_names.as_ref().map(|names| names.iter().cloned().collect()),
            init_containers: written.init_containers.unwrap_or_default(),
            overwrites: written.overwrite_env.unwrap_or_default(),
            // The first of two with one name, which validation refuses.
            env: env.filter(|variable| names.insert(variable.name.clone())).collect(),
            mounts: mounts.filter(|mount| paths.insert(mount.path.clone())).collect(),
        }
    }

    /// Names of the containers that the entry is about; `None` where all of the pod's own are meant.
    pub const fn names(&self) -> Option<&BTreeSet<String>> {
        self.names.as_ref()
    }

    /// Whether the entry is about the pod's container of that name.
    pub fn is_about(&self, name: &str, is_init: bool) -> bool {
        (self.init_containers || !is_init) && self.names.as_ref().is_none_or(|names| names.contains(name))
    }
}

/// The variables of the pod's containers that entries of a set overwrite.
pub fn overwritten(pieces: &[AppPiece]) -> impl Iterator<Item = &Variable> {
    pieces.iter().filter(|piece| piece.overwrites).flat_map(|piece| &piece.env)
}

impl Variable {
    fn of(written: &RawObject) -> Self {
        Self {
            name: text(written, "name").to_owned(),
            json: Value::Object(written.clone()).to_string(),
            canonical: canonical_variable(written.clone()),
        }
    }

    /// Names of the variables that its value refers to. Read each time: they can take many times the value's memory.
    pub fn references(&self) -> Vec<&str> {
        references(self.canonical.pointer("/0/value").and_then(Value::as_str).unwrap_or_default())
    }

    /// Whether a container's variable of that name has the same value, from the same source.
    pub fn is_same(&self, found: &str) -> bool {
        // What the API server fills in is short.
        const MORE: usize = 1024;
        found.len() <= self.json.len() * 8 + MORE
            && serde_json::from_str(found).is_ok_and(|found| canonical_variable(found) == self.canonical)
    }

    /// Whether another set's variable has the same value.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Mount {
    fn of(written: &RawObject) -> Self {
        let path = text(written, "mountPath");
        Self {
            path: clean_path(path).unwrap_or(path).to_owned(),
            volume: text(written, "name").to_owned(),
            json: Value::Object(written.clone()).to_string(),
        }
    }
}

fn text<'m>(map: &'m RawObject, field: &str) -> &'m str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn canonical_variable(variable: RawObject) -> Value {
    let container = Map::from_iter([("env".to_owned(), Value::Array(vec![Value::Object(variable)]))]);
    canonical_container(&container, "").remove("env").unwrap_or_default()
}

/// What sets add to the pod's own containers, by name: nothing that is taken from these, as it was not the pod's.
#[derive(Debug, Default)]
pub struct Additions<'s> {
    variables: BTreeMap<&'s str, Vec<(&'s Variable, bool)>>,
    mounts: BTreeMap<&'s str, BTreeSet<&'s str>>,
}

impl<'s> Additions<'s> {
    /// Those of sets.
    pub fn of(sets: impl Iterator<Item = &'s CompiledSet>) -> Self {
        let mut additions = Self::default();
        for piece in sets.flat_map(|set| &set.app_containers) {
            for variable in &piece.env {
                additions.variables.entry(&variable.name).or_default().push((variable, piece.overwrites));
            }
            for mount in &piece.mounts {
                additions.mounts.entry(&mount.path).or_default().insert(&mount.volume);
            }
        }
        additions
    }

    /// Whether no set adds anything.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.mounts.is_empty()
    }

    /// Whether a set adds the variable, or would overwrite it.
    pub fn has_variable(&self, name: &str, json: &str) -> bool {
        let of_name = self.variables.get(name).into_iter().flatten();
        of_name.into_iter().any(|(variable, overwrites)| *overwrites || variable.is_same(json))
    }

    /// Whether a set adds the mount.
    pub fn has_mount(&self, path: &str, volume: &str) -> bool {
        let path = clean_path(path).unwrap_or(path);
        self.mounts.get(path).is_some_and(|volumes| volumes.contains(volume))
    }
}
