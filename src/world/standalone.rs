//! The read model without a cluster: sets and namespaces from files, and what changes when the files change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use admission::Registry;
use serde::Deserialize;
use serde_json::Value;

use crate::admit::{self, AdmitError, Admitted, Creation, Status};
use crate::manifest::{self, Fingerprint, Identity, Manifest, identity};
use crate::sidecarset::api::{GROUP, KIND, SidecarSet};
use crate::sidecarset::compiled::{CompileError, CompiledSet, NAMESPACE_NAME_LABEL};
use crate::sidecarset::index::SetIndex;
use crate::world::Snapshot;
use crate::world::namespace::Namespaces;
use crate::world::snapshot::Exclusion;

/// Why manifests give no read model. Each text starts with the file and, where there is one, the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files that cannot be read as manifests.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// A set that the webhooks refuse, as they would in a cluster.
    #[error("{origin}: {}", told(.status))]
    Refused {
        /// `file:line`.
        origin: String,
        /// What the user of a cluster would be told.
        status: Box<Status>,
    },
    /// A set that the webhooks cannot decide on.
    #[error("{origin}: SidecarSet {name:?}: {error}")]
    Undecided {
        /// `file:line`.
        origin: String,
        /// Name of the set.
        name: String,
        /// Why.
        error: AdmitError,
    },
    /// An object whose fields have the wrong shape.
    #[error("{origin}: {kind} cannot be read: {error}")]
    Undecodable {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// What the decoder found.
        error: serde_json::Error,
    },
    /// A set that cannot be injected.
    #[error("{origin}: {error}")]
    Uncompilable {
        /// `file:line`.
        origin: String,
        /// What is wrong.
        error: CompileError,
    },
    /// An object without a name.
    #[error("{origin}: {kind} has no name: write metadata.name")]
    Nameless {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The same object twice; a cluster would keep one of them.
    #[error("{origin}: {kind} {name:?} is there twice, first at {first}: remove one, or give it another name")]
    Twice {
        /// `file:line`.
        origin: String,
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// `file:line` of the first.
        first: String,
    },
    /// A version of ours that no build serves, or not this one.
    #[error("{origin}: {api_version} SidecarSet is not served: write apiVersion: {API_VERSION}")]
    Version {
        /// `file:line`.
        origin: String,
        /// The `apiVersion` as written.
        api_version: String,
    },
}

/// The message, with a line for each fault where there are several.
fn told(status: &Status) -> String {
    let causes = &status.details.causes;
    if causes.len() < 2 {
        return status.message.clone();
    }
    // The message of an invalid object is its name and all faults in brackets; here each gets a line.
    let head = status.message.split(": [").next().unwrap_or_default();
    let lines = causes.iter().map(|cause| format!("\n  {}: {}", cause.field, cause.message));
    std::iter::once(format!("{head}:")).chain(lines).collect()
}

/// A read model from files.
#[derive(Debug)]
pub struct Loaded {
    /// What decisions are taken from.
    pub snapshot: Snapshot,
    /// What a user should know. Each starts with `file:line` where it is about an object.
    pub warnings: Vec<String>,
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
) -> Result<Loaded, Vec<Error>> {
    let manifests = manifest::load(paths).map_err(|errors| errors.into_iter().map(Error::from).collect::<Vec<_>>())?;
    let mut loading = Loading::default();
    for manifest in &manifests {
        loading.sort(manifest);
    }
    let Loading { namespaces, sets, mut warnings, mut errors } = loading;
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
        warnings.extend(found.into_iter().flatten());
    }
    if sets.is_empty() && errors.is_empty() {
        warnings.push(if paths.is_empty() {
            format!("no {API_VERSION} SidecarSet: name files or folders that hold some with --manifests")
        } else {
            format!("no {API_VERSION} SidecarSet in {}", listed(paths))
        });
    }
    if errors.is_empty() { Ok(Loaded { snapshot, warnings }) } else { Err(errors) }
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

/// Objects by what they are.
#[derive(Default)]
struct Loading<'m> {
    namespaces: BTreeMap<String, (String, BTreeMap<String, String>)>,
    sets: BTreeMap<String, &'m Manifest>,
    warnings: Vec<String>,
    errors: Vec<Error>,
}

const NAMESPACE: &str = "Namespace";

const API_VERSION: &str = <SidecarSet as k8s_openapi::Resource>::API_VERSION;

#[derive(Deserialize)]
struct LabelledObject {
    metadata: Labelled,
}

#[derive(Deserialize)]
struct Labelled {
    labels: Option<BTreeMap<String, String>>,
}

impl<'m> Loading<'m> {
    fn sort(&mut self, manifest: &'m Manifest) {
        let origin = &manifest.source;
        let Ok(identity) = identity(&manifest.value) else {
            // Its name is not a string: nothing that can be looked up.
            tracing::debug!(origin, "Left out: an object without a readable name");
            return;
        };
        match (identity.group(), identity.kind.as_str()) {
            ("", NAMESPACE) => self.namespace(manifest, identity),
            (GROUP, KIND) if identity.api_version != API_VERSION => {
                self.errors.push(Error::Version { origin: origin.clone(), api_version: identity.api_version });
            }
            (GROUP, KIND) => self.set(manifest, identity),
            (_, KIND) => self.warnings.push(format!(
                "{origin}: {} SidecarSet {:?} is left out: to have it injected by Outrider, write apiVersion: {API_VERSION}",
                identity.api_version, identity.name
            )),
            _ => tracing::debug!(origin, kind = identity.kind, name = identity.name, "Left out: not a kind that is read"),
        }
    }

    fn set(&mut self, manifest: &'m Manifest, identity: Identity) {
        let origin = manifest.source.clone();
        if identity.name.is_empty() {
            return self.errors.push(Error::Nameless { origin, kind: KIND });
        }
        if let Some(first) = self.sets.get(&identity.name) {
            let first = first.source.clone();
            return self.errors.push(Error::Twice { origin, kind: KIND, name: identity.name, first });
        }
        self.sets.insert(identity.name, manifest);
    }

    fn namespace(&mut self, manifest: &Manifest, identity: Identity) {
        let (origin, name) = (manifest.source.clone(), identity.name);
        if name.is_empty() {
            return self.errors.push(Error::Nameless { origin, kind: NAMESPACE });
        }
        if let Some(first) = self.namespaces.get(&name) {
            let first = first.0.clone();
            return self.errors.push(Error::Twice { origin, kind: NAMESPACE, name, first });
        }
        match LabelledObject::deserialize(&manifest.value) {
            Ok(object) => {
                let mut labels = object.metadata.labels.unwrap_or_default();
                labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name.clone());
                self.namespaces.insert(name, (origin, labels));
            }
            Err(error) => self.errors.push(Error::Undecodable { origin, kind: NAMESPACE, error }),
        }
    }
}

/// Files, read again when they change.
pub struct Standalone {
    paths: Vec<PathBuf>,
    exclusion: Arc<Exclusion>,
    registry: Registry<Snapshot>,
    fingerprint: Option<Fingerprint>,
    generation: u64,
}

impl Standalone {
    /// Reads nothing yet.
    pub fn new(paths: Vec<PathBuf>, exclusion: Exclusion, registry: Registry<Snapshot>) -> Self {
        Self { paths, exclusion: Arc::new(exclusion), registry, fingerprint: None, generation: 0 }
    }

    /// Reads the files if they have changed since the last call, or at the first one. `None` means no change. A state that
    /// could not be used is not tried again until something changes.
    pub fn reload(&mut self) -> Option<Result<Loaded, Vec<Error>>> {
        // Looked at before reading: a write in between shows as a change the next time.
        let fingerprint = manifest::fingerprint(&self.paths);
        if self.fingerprint.as_ref() == Some(&fingerprint) {
            return None;
        }
        self.fingerprint = Some(fingerprint);
        Some(load(&self.paths, &self.exclusion, &self.registry).map(|mut loaded| {
            self.generation += 1;
            loaded.snapshot.generation = self.generation;
            loaded
        }))
    }
}
