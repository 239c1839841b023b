//! The read model without a cluster, from files, and what changes when the files change.

pub use crate::validate::Validate;
pub use engine::offline::model::{Error, FoundNamespace, FoundNamespaces, Unusable};

use std::io::Read;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::thread;

use admission::Registry;
use engine::limitrange::api as limits;
use engine::offline::manifest;
use engine::offline::model::{self, Reading};
use engine::plugins::api as plugins;
use engine::podsecurityprofile::api as profiles;
use engine::sidecarset::api::{API_VERSION, GROUP, KIND};
use engine::snapshot::{Exclusion, Snapshot};

use crate::input::{self, Fingerprint, Manifest, identity};
use crate::kind::Kind;
use crate::kinds::workshop;

/// Every `apiVersion` and `kind` of the workshop, with a space in between.
static WORKSHOP_TYPES: LazyLock<Vec<String>> = LazyLock::new(|| workshop().flat_map(Kind::types).collect());

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
/// Every set goes through the defaulting and the validating webhook first, as in a cluster with an API server of `minor_version`; the
/// newest where it is not known. Objects of other kinds are left out.
///
/// # Errors
/// All that is wrong in all files.
pub fn load(
    paths: &[PathBuf],
    exclusion: &Arc<Exclusion>,
    registry: &Registry<Snapshot>,
    validate: Validate,
    minor_version: Option<u32>,
) -> Result<Loaded, Unusable> {
    let manifests = input::load(paths).map_err(unreadable)?;
    of(&manifests, paths, exclusion, registry, validate, minor_version)
}

/// The same of files of which `-` is stdin, and of objects that come from elsewhere.
///
/// # Errors
/// As [`load`].
pub fn load_or_stdin(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    more: Vec<Manifest>,
    exclusion: &Arc<Exclusion>,
    registry: &Registry<Snapshot>,
    validate: Validate,
    minor_version: Option<u32>,
) -> Result<Loaded, Unusable> {
    let mut manifests = input::load_or_stdin(paths, stdin).map_err(unreadable)?;
    manifests.extend(more);
    of(&manifests, paths, exclusion, registry, validate, minor_version)
}

fn unreadable(errors: Vec<input::Error>) -> Unusable {
    Unusable { errors: errors.into_iter().map(Error::from).collect(), warnings: Vec::new() }
}

/// The same of objects that were read from these paths.
///
/// # Errors
/// All that is wrong with them.
pub fn of(
    manifests: &[Manifest],
    paths: &[PathBuf],
    exclusion: &Arc<Exclusion>,
    registry: &Registry<Snapshot>,
    validate: Validate,
    minor_version: Option<u32>,
) -> Result<Loaded, Unusable> {
    let reading =
        Reading { exclusion, registry, other_types: &WORKSHOP_TYPES, validate: validate.into(), minor_version };
    let model::Loaded { snapshot, warnings, has_sets } = model::load(manifests, reading)?;
    Ok(Loaded { snapshot, warnings, no_set: (!has_sets).then(|| no_set(paths)) })
}

/// Whether an object is meant as a set, a plugin, a range or a profile, in whatever version.
pub fn is_set(manifest: &Manifest) -> bool {
    identity(&manifest.value).is_ok_and(|identity| {
        let types = [
            (GROUP, KIND),
            (plugins::GROUP, plugins::KIND),
            (limits::GROUP, limits::KIND),
            (profiles::GROUP, profiles::KIND),
        ];
        types.contains(&(identity.group(), identity.kind.as_str()))
    })
}

/// The namespaces among objects, with their labels; objects of other kinds are left out.
///
/// # Errors
/// All that is wrong with them.
pub fn namespaces(manifests: &[Manifest], validate: Validate) -> Result<FoundNamespaces, Unusable> {
    model::namespaces(manifests, &WORKSHOP_TYPES, validate.into())
}

/// Says that there is no set in these paths, and nothing else that decides.
pub fn no_set(paths: &[PathBuf]) -> String {
    let nothing = format!("no SidecarSet ({API_VERSION}), AdmissionPlugin, ClusterLimitRange or PodSecurityProfile");
    if paths.is_empty() {
        format!("{nothing}: name files or folders that hold some with --manifests")
    } else {
        format!("{nothing} in {}", listed(paths))
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| input::name(path)).collect::<Vec<_>>().join(", ")
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
        // Read before the content: a write in between shows as a change the next time.
        let fingerprint = input::fingerprint(&self.paths);
        if self.fingerprint.as_ref() == Some(&fingerprint) {
            return None;
        }
        if self.fingerprint.replace(fingerprint).is_none() {
            self.make_what_stays();
        }
        let read = apart(|| load(&self.paths, &self.exclusion, &self.registry, self.validate, None));
        Some(read.map(|original| {
            self.generation += 1;
            let snapshot = Snapshot { generation: self.generation, ..original.snapshot.detached() };
            let (warnings, no_set) = (original.warnings.clone(), original.no_set.clone());
            // What this thread frees, it would keep for its own next allocations.
            apart(|| drop(original));
            Loaded { snapshot, warnings, no_set }
        }))
    }

    /// Reads a set, so that what is made once for all sets, such as their schema, is not made [`apart`].
    fn make_what_stays(&self) {
        const SET: &str = "{apiVersion: apps.outrider.dev/v1alpha1, kind: SidecarSet, metadata: {name: a}, \
                           spec: {selector: {matchLabels: {a: a}}, containers: [{name: a, image: a}], volumes: [{name: a}]}}\n---\n\
                           {apiVersion: v1, kind: Namespace, metadata: {name: a}}";
        let objects = manifest::parse("", SET).unwrap_or_default();
        drop(of(&objects, &[], &self.exclusion, &self.registry, self.validate, None));
    }
}

/// Does `work` in a thread of its own. glibc allocates for each thread apart, and gives memory back once nothing above it is used: reading
/// thousands of manifests takes several times what is kept of them. What is kept is copied by the caller, so that it does not lie
/// scattered between.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| resume_unwind(panic))
}
