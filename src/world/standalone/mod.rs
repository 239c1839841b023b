//! The read model without a cluster: sets and namespaces from files, and what changes when the files change.

mod error;
mod sorting;

pub use self::error::{Error, Unusable};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use admission::Registry;
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::Value;

use self::sorting::Sorted;
use crate::admit::{self, Admitted, Creation};
use crate::manifest::{self, Fingerprint, Manifest};
use crate::sidecarset::api::{KIND, SidecarSet};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::index::SetIndex;
use crate::world::Snapshot;
use crate::world::namespace::Namespaces;
use crate::world::snapshot::Exclusion;

const API_VERSION: &str = <SidecarSet as k8s_openapi::Resource>::API_VERSION;

/// What is done about fields that nobody knows, as kubectl's flag of that name has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Validate {
    /// An unknown field is an error.
    #[default]
    Strict,
    /// An unknown field is a warning: it may be newer than this build.
    Warn,
}

/// A read model from files.
#[derive(Debug)]
pub struct Loaded {
    /// What decisions are taken from.
    pub snapshot: Snapshot,
    /// What a user should know. Each starts with `file:line` where it is about an object.
    pub warnings: Vec<String>,
    /// Says so where there is no set at all.
    pub no_set: Option<String>,
}

/// Reads the files once.
///
/// Every set goes through the defaulting and the validating webhook first, as in a cluster. Objects of other kinds are left out.
///
/// # Errors
/// All that is wrong in all files.
pub fn load(
    paths: &[PathBuf],
    exclusion: &Arc<Exclusion>,
    registry: &Registry<Snapshot>,
    validate: Validate,
) -> Result<Loaded, Unusable> {
    let manifests = manifest::load(paths)
        .map_err(|errors| Unusable { errors: errors.into_iter().map(Error::from).collect(), warnings: Vec::new() })?;
    let Sorted { namespaces, sets, mut warnings, mut errors, .. } = Sorted::of(&manifests, validate);
    let mut known = Namespaces::default();
    for (name, (_, labels)) in namespaces {
        known.insert(name, labels);
    }
    let empty = Snapshot { namespaces: Arc::new(known), exclusion: Arc::clone(exclusion), ..Snapshot::default() };
    let compiled =
        each(&sets, &mut errors, |name, manifest| compile(&admit(name, manifest, registry, &empty)?.object, manifest));
    let snapshot = Snapshot { generation: 1, sets: Arc::new(SetIndex::build(compiled)), ..empty };
    if errors.is_empty() {
        // Once more, now that every set is known: what two of them mean for each other.
        let found = each(&sets, &mut errors, |name, manifest| {
            let allowed = admit(name, manifest, registry, &snapshot)?;
            let origin = &manifest.source;
            Ok(allowed.warnings.iter().map(|w| format!("{origin}: SidecarSet {name:?}: {w}")).collect::<Vec<_>>())
        });
        for warning in found.into_iter().flatten() {
            // The webhook warns of unknown fields too.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    if !errors.is_empty() {
        return Err(Unusable { errors, warnings });
    }
    Ok(Loaded { snapshot, warnings, no_set: sets.is_empty().then(|| no_set(paths)) })
}

/// The namespaces among objects, with their labels; objects of other kinds are left out.
///
/// # Errors
/// All that is wrong with them.
pub fn namespaces(manifests: &[Manifest], validate: Validate) -> Result<FoundNamespaces, Unusable> {
    let Sorted { namespaces, warnings, errors, .. } = Sorted::of(manifests, validate);
    if errors.is_empty() { Ok(FoundNamespaces { namespaces, warnings }) } else { Err(Unusable { errors, warnings }) }
}

/// Namespaces of manifests.
#[derive(Debug)]
pub struct FoundNamespaces {
    /// By name, with the place that each came from, and its labels.
    pub namespaces: BTreeMap<String, (String, BTreeMap<String, String>)>,
    /// What a user should know. Each starts with `file:line`.
    pub warnings: Vec<String>,
}

fn no_set(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        format!("no {API_VERSION} SidecarSet: name files or folders that hold some with --manifests")
    } else {
        format!("no {API_VERSION} SidecarSet in {}", listed(paths))
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn each<T>(
    sets: &BTreeMap<String, &Manifest>,
    errors: &mut Vec<Error>,
    mut of: impl FnMut(&str, &Manifest) -> Result<T, Error>,
) -> Vec<T> {
    let mut found = Vec::new();
    for (name, manifest) in sets {
        match of(name, manifest) {
            Ok(value) => found.push(value),
            Err(error) => errors.push(error),
        }
    }
    found
}

fn admit(
    name: &str,
    manifest: &Manifest,
    registry: &Registry<Snapshot>,
    snapshot: &Snapshot,
) -> Result<admit::Allowed, Error> {
    let origin = manifest.source.clone();
    let creation = Creation { namespace: "", object: &manifest.value };
    match admit::create(registry, &creation, snapshot) {
        Ok(Admitted::Allowed(allowed)) => Ok(*allowed),
        Ok(Admitted::Refused { status, .. }) => Err(Error::Refused { origin, status }),
        Err(error) => Err(Error::Undecided { origin, name: name.to_owned(), error }),
    }
}

fn compile(object: &Value, manifest: &Manifest) -> Result<Arc<CompiledSet>, Error> {
    let origin = || manifest.source.clone();
    let set =
        SidecarSet::deserialize(object).map_err(|error| Error::Undecodable { origin: origin(), kind: KIND, error })?;
    CompiledSet::compile(&set).map(Arc::new).map_err(|error| Error::Uncompilable { origin: origin(), error })
}

/// Files, read again when they change.
pub struct Standalone {
    paths: Vec<PathBuf>,
    exclusion: Arc<Exclusion>,
    registry: Registry<Snapshot>,
    validate: Validate,
    fingerprint: Option<Fingerprint>,
    generation: u64,
}

impl Standalone {
    /// Reads nothing yet.
    pub fn new(paths: Vec<PathBuf>, exclusion: Exclusion, registry: Registry<Snapshot>, validate: Validate) -> Self {
        Self { paths, exclusion: Arc::new(exclusion), registry, validate, fingerprint: None, generation: 0 }
    }

    /// Reads the files if they have changed since the last call, or at the first one. `None` means no change. A state that
    /// could not be used is not tried again until something changes.
    pub fn reload(&mut self) -> Option<Result<Loaded, Unusable>> {
        // Looked at before reading: a write in between shows as a change the next time.
        let fingerprint = manifest::fingerprint(&self.paths);
        if self.fingerprint.as_ref() == Some(&fingerprint) {
            return None;
        }
        self.fingerprint = Some(fingerprint);
        Some(load(&self.paths, &self.exclusion, &self.registry, self.validate).map(|mut loaded| {
            self.generation += 1;
            loaded.snapshot.generation = self.generation;
            loaded
        }))
    }
}
