//! The read model without a cluster: sets and namespaces from manifests.

mod error;
mod sorting;

pub use self::error::{Error, Unusable};
pub use self::sorting::{FoundNamespace, misspelt_set};

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::Registry;
use admission::field::ErrorList;
use serde::Deserialize;
use serde_json::Value;

use self::sorting::Sorted;
use crate::limitrange;
use crate::limitrange::compiled::CompiledRange;
use crate::offline::admit::{self, Admitted, Creation, Questions};
use crate::offline::manifest::Manifest;
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::index::PluginIndex;
use crate::plugins::placement::Placement;
use crate::plugins::validation;
use crate::podsecurityprofile;
use crate::podsecurityprofile::compiled::CompiledProfile;
use crate::sidecarset::allow_list::AllowList;
use crate::sidecarset::api::{KIND, SidecarSet};
use crate::sidecarset::compiled::{CompiledSet, is_canary};
use crate::sidecarset::index::SetIndex;
use crate::sidecarset::size;
use crate::snapshot::collection::Collection as _;
use crate::snapshot::configuration::{ALLOW_LIST_KEY, CONFIG_MAP, Configuration, ConfigurationMap, ConfigurationMaps};
use crate::snapshot::namespace::{KnownNamespace, Namespaces};
use crate::snapshot::pinned::{self, PinnedForms};
use crate::snapshot::revisions::{Revision, RevisionIndex};
use crate::snapshot::scope::ByName;
use crate::snapshot::{Exclusion, Snapshot};

/// How unknown fields are treated, as by kubectl's flag of that name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Validate {
    /// An unknown field is an error.
    #[default]
    Strict,
    /// An unknown field is a warning: it may be newer than this build.
    Warn,
}

/// A read model from manifests.
#[derive(Debug)]
pub struct Loaded {
    /// What decisions are taken from.
    pub snapshot: Snapshot,
    /// What a user should know. Each starts with `file:line` where it is about an object.
    pub warnings: Vec<String>,
    /// Whether there is any set, plugin, range or profile.
    pub has_sets: bool,
}

/// How manifests become a read model.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Where no pod is touched.
    pub exclusion: &'a Arc<Exclusion>,
    /// The webhooks that each set goes through.
    pub registry: &'a Registry<Snapshot>,
    /// Every other `apiVersion` and `kind` of ours, with a space in between: those are left out, and what is like one is a slip.
    pub other_types: &'a [String],
    /// How unknown fields are treated.
    pub validate: Validate,
    /// The minor version of Kubernetes that pods are meant for; the newest where it is not known.
    pub minor_version: Option<u32>,
}

/// Makes the read model.
///
/// Every set and every plugin goes through its defaulting and its validating webhook first, as in a cluster. Objects of other kinds are
/// left out.
///
/// # Errors
/// All that is wrong in all manifests.
pub fn load(manifests: &[Manifest], reading: Reading<'_>) -> Result<Loaded, Unusable> {
    let Reading { exclusion, registry, other_types, validate, minor_version } = reading;
    let Sorted {
        namespaces,
        sets,
        plugins,
        ranges,
        profiles,
        quotas,
        classes,
        nodes,
        accounts,
        revisions,
        configuration,
        mut warnings,
        mut errors,
        ..
    } = Sorted::of(manifests, other_types, validate);
    let empty = Snapshot {
        namespaces: Arc::new(known_namespaces(namespaces, &mut warnings)),
        quotas: Arc::new(quotas),
        storage_classes: Arc::new(classes),
        nodes: Arc::new(nodes),
        service_accounts: Arc::new(accounts),
        revisions: Arc::new(RevisionIndex::build(revisions.iter().map(|(_, revision)| Arc::clone(revision)))),
        configuration: self::configuration(configuration, &mut warnings),
        exclusion: Arc::clone(exclusion),
        minor_version,
        ..Snapshot::default()
    };
    let compiled = compile_all(&sets, registry, &empty, (&mut errors, &mut warnings));
    check_revisions(&revisions, &compiled, &mut warnings);
    let switched_on = each_admitted(&plugins, (registry, &empty), &mut errors, compile_plugin);
    let bounding = each_admitted(&ranges, (registry, &empty), &mut errors, compile_range);
    let judging = each_admitted(&profiles, (registry, &empty), &mut errors, compile_profile);
    let uid = |set: &CompiledSet| sets.get(&set.name).and_then(|it| it.value.pointer("/metadata/uid")?.as_str());
    let with_uids = compiled.iter().map(|set| (set, uid(set).unwrap_or_default()));
    let pinned = Arc::new(PinnedForms::default().next(with_uids, &empty.revisions));
    let (sets_index, plugin_index) = (SetIndex::build(compiled), PluginIndex::build(switched_on));
    let limit_ranges = Arc::new(ByName::build(bounding));
    let snapshot = Snapshot {
        generation: 1,
        sets: Arc::new(sets_index),
        plugins: Arc::new(plugin_index),
        limit_ranges,
        security_profiles: Arc::new(ByName::build(judging)),
        pinned,
        ..empty
    };
    if errors.is_empty() {
        among_themselves((&sets, &plugins), (registry, &snapshot), &mut errors, &mut warnings);
    }
    if !errors.is_empty() {
        return Err(Unusable { errors, warnings });
    }
    let has_sets = [&sets, &plugins, &ranges, &profiles].into_iter().any(|all| !all.is_empty());
    Ok(Loaded { snapshot, warnings, has_sets })
}

/// The namespaces, with a warning for each annotation that cannot be read.
fn known_namespaces(found: BTreeMap<String, FoundNamespace>, warnings: &mut Vec<String>) -> Namespaces {
    let mut known = Namespaces::default();
    for (name, FoundNamespace { origin, labels, annotations }) in found {
        known.insert_annotated(name.clone(), labels, annotations);
        let placement = known.known(&name).and_then(KnownNamespace::placement);
        let faults = placement.into_iter().flat_map(Placement::faults).map(|(key, fault)| {
            format!("{origin}: Namespace {name:?}: annotation {key} cannot be read by AdmissionPlugins: {fault}")
        });
        warnings.extend(faults);
    }
    known
}

/// Warns of revisions that no pod would get: they are written by hand more often than in a cluster.
fn check_revisions(revisions: &[(&str, Arc<Revision>)], sets: &[Arc<CompiledSet>], warnings: &mut Vec<String>) {
    let sets: BTreeMap<&str, &Arc<CompiledSet>> = sets.iter().map(|set| (set.name.as_str(), set)).collect();
    for (origin, revision) in revisions {
        let set = sets.get(&*revision.set).map(|set| -> &CompiledSet { set });
        if let Err(fault) = pinned::check(revision, set) {
            warnings.push(format!("{origin}: ControllerRevision {:?}: {fault}", revision.name));
        }
    }
}

/// Admits sets and plugins once more, now that every one is known: what two of them mean for each other.
fn among_themselves(
    (sets, plugins): (&BTreeMap<String, &Manifest>, &BTreeMap<String, &Manifest>),
    (registry, snapshot): (&Registry<Snapshot>, &Snapshot),
    errors: &mut Vec<Error>,
    warnings: &mut Vec<String>,
) {
    let mut of_kind = |objects, kind, is_left_out: fn(&Manifest) -> bool| {
        let found = each(objects, errors, |name, manifest| {
            if is_left_out(manifest) {
                return Ok(Vec::new());
            }
            let allowed = admit(name, manifest, registry, snapshot)?;
            let origin = &manifest.source;
            Ok(allowed.warnings.iter().map(|w| format!("{origin}: {kind} {name:?}: {w}")).collect::<Vec<_>>())
        });
        for warning in found.into_iter().flatten() {
            // The webhook warns of unknown fields too.
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    };
    of_kind(sets, "SidecarSet", |manifest| stored_larger(manifest).is_some());
    of_kind(plugins, "AdmissionPlugin", |_| false);
}

/// Every set, compiled: canaries last, as they are admitted only beside their bases.
fn compile_all(
    sets: &BTreeMap<String, &Manifest>,
    registry: &Registry<Snapshot>,
    empty: &Snapshot,
    (errors, warnings): (&mut Vec<Error>, &mut Vec<String>),
) -> Vec<Arc<CompiledSet>> {
    let mut decided = |name: &str, manifest: &Manifest, snapshot: &Snapshot| match stored_larger(manifest) {
        Some(why) => {
            warnings.push(format!(
                "{}: SidecarSet {name:?}: {why}; it is injected as it is stored, and no change of its spec is accepted until it is smaller",
                manifest.source
            ));
            compile(&manifest.value, manifest)
        }
        None => compile(&admit(name, manifest, registry, snapshot)?.object, manifest),
    };
    let all = sets.iter().map(|(name, manifest)| (name.clone(), *manifest));
    let (canaries, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        all.partition(|(_, manifest)| is_canary(&manifest.value));
    let mut compiled = each(&others, errors, |name, manifest| decided(name, manifest, empty));
    let beside = Snapshot { sets: Arc::new(SetIndex::build(compiled.iter().cloned())), ..empty.clone() };
    compiled.extend(each(&canaries, errors, |name, manifest| decided(name, manifest, &beside)));
    compiled
}

/// Why a set of a cluster could not be written today, where it is larger than that: an older build let it through, and the server of the
/// cluster injects it.
fn stored_larger(manifest: &Manifest) -> Option<String> {
    let spec = manifest.value.get("spec").filter(|_| manifest.is_stored)?;
    size::beyond(spec).map(|(list, found, most)| match list {
        Some(list) => format!("spec.{list} has {found} elements, and at most {most} may be written"),
        None => format!("its spec has {found} values, and at most {most} may be written"),
    })
}

fn configuration(map: Option<(String, ConfigurationMap)>, warnings: &mut Vec<String>) -> Arc<Configuration> {
    let mut maps = ConfigurationMaps::default();
    let Some((origin, map)) = map else { return maps.view() };
    maps.apply(&map);
    let configuration = maps.view();
    if let AllowList::Unreadable(error) = &configuration.allow_list {
        warnings.push(format!("{origin}: ConfigMap {CONFIG_MAP:?}: data.{ALLOW_LIST_KEY}: cannot be used: {error}"));
    }
    configuration
}

/// The namespaces among objects, with their labels; objects of other kinds are left out. `other_types` as in [`Reading`].
///
/// # Errors
/// All that is wrong with them.
pub fn namespaces(
    manifests: &[Manifest],
    other_types: &[String],
    validate: Validate,
) -> Result<FoundNamespaces, Unusable> {
    let Sorted { namespaces, warnings, errors, .. } = Sorted::of(manifests, other_types, validate);
    if errors.is_empty() { Ok(FoundNamespaces { namespaces, warnings }) } else { Err(Unusable { errors, warnings }) }
}

/// Namespaces of manifests.
#[derive(Debug)]
pub struct FoundNamespaces {
    /// By name.
    pub namespaces: BTreeMap<String, FoundNamespace>,
    /// What a user should know. Each starts with `file:line`.
    pub warnings: Vec<String>,
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

/// Objects as their webhooks admit them, compiled.
fn each_admitted<T>(
    objects: &BTreeMap<String, &Manifest>,
    (registry, empty): (&Registry<Snapshot>, &Snapshot),
    errors: &mut Vec<Error>,
    compile: fn(&Value, &Manifest) -> Result<T, Error>,
) -> Vec<T> {
    each(objects, errors, |name, manifest| compile(&admit(name, manifest, registry, empty)?.object, manifest))
}

fn admit(
    name: &str,
    manifest: &Manifest,
    registry: &Registry<Snapshot>,
    snapshot: &Snapshot,
) -> Result<admit::Allowed, Error> {
    let origin = manifest.source.clone();
    let creation = Creation { namespace: "", object: &manifest.value, questions: Questions::Open };
    match admit::create(registry, &creation, snapshot) {
        Ok(Admitted::Allowed(allowed)) => Ok(*allowed),
        Ok(Admitted::Refused { status, .. }) => {
            let kind = manifest.value.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            Err(Error::Refused { origin, kind, name: name.to_owned(), status })
        }
        Err(error) => Err(Error::Undecided { origin, name: name.to_owned(), error }),
    }
}

fn compile_plugin(object: &Value, manifest: &Manifest) -> Result<Arc<CompiledPlugin>, Error> {
    let compiled = validation::compile(object).map(Arc::new);
    compiled.map_err(|faults| wrong_shape(object, manifest, crate::plugins::api::KIND, &faults))
}

fn compile_range(object: &Value, manifest: &Manifest) -> Result<Arc<CompiledRange>, Error> {
    let compiled = limitrange::validation::compile(object).map(Arc::new);
    compiled.map_err(|faults| wrong_shape(object, manifest, limitrange::api::KIND, &faults))
}

fn compile_profile(object: &Value, manifest: &Manifest) -> Result<Arc<CompiledProfile>, Error> {
    let compiled = podsecurityprofile::validation::compile(object).map(Arc::new);
    compiled.map_err(|faults| wrong_shape(object, manifest, podsecurityprofile::api::KIND, &faults))
}

fn wrong_shape(object: &Value, manifest: &Manifest, kind: &'static str, faults: &ErrorList) -> Error {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    Error::WrongShape { origin: manifest.source.clone(), kind, name, faults: faults.to_string() }
}

fn compile(object: &Value, manifest: &Manifest) -> Result<Arc<CompiledSet>, Error> {
    let origin = || manifest.source.clone();
    let set =
        SidecarSet::deserialize(object).map_err(|error| Error::Undecodable { origin: origin(), kind: KIND, error })?;
    CompiledSet::compile(&set).map(Arc::new).map_err(|error| Error::Uncompilable { origin: origin(), error })
}
