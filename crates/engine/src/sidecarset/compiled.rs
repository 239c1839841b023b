//! A SidecarSet in ready-to-splice form, made when the set changes, not when a pod arrives.

mod entry;
mod pieces;
mod reach;

pub use entry::revision_name;
pub use pieces::{Piece, Pieces, SecretPiece, VolumePiece};
pub use reach::{NAMESPACE_NAME_LABEL, NamespaceScope};

use admission::field::{Error, ErrorList, Path};
use admission::format::Selector;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use self::pieces::{Fillings, Side, pieces, secret_pieces};
use self::reach::{check_reach, compile_selector, scope};
use crate::sidecarset::api::{
    ANNOTATION_PREFIXES, RawObject, SidecarContainer, SidecarSet, SidecarSetSpec, UpdateStrategy,
};
use crate::sidecarset::app_containers::AppPiece;
use crate::sidecarset::canonical;
use crate::sidecarset::hot_upgrade::{self, Pair};
use crate::sidecarset::injection::List;
use crate::sidecarset::metadata::{self, AnnotationPiece};
use crate::sidecarset::needs::volume_names;
use crate::sidecarset::overrides::CompiledOverrides;
use crate::sidecarset::packed::Packed;
use crate::sidecarset::pin::{Pin, versions_in_metadata};
use crate::sidecarset::platform;
pub use crate::sidecarset::platform::Platform;
use crate::sidecarset::resources::CompiledDefaults;
use crate::sidecarset::sameness::CompiledAllowedChanges;
use crate::sidecarset::vocabulary::{
    JOB_INJECT, JOB_SKIP, PLATFORM_WINDOWS, REVISION_HISTORY_LIMIT, SECURITY_COMPLETE,
};

/// A set that cannot be compiled.
#[derive(Debug, Clone, thiserror::Error)]
#[error("SidecarSet {name:?} cannot be used: {errors}")]
pub struct CompileError {
    /// Name of the set.
    pub name: String,
    /// What is wrong with it.
    pub errors: ErrorList,
}

/// A set, ready to decide: its selectors are parsed, and what it adds is JSON already.
#[derive(Debug, Clone)]
pub struct CompiledSet {
    /// Name.
    pub name: String,
    /// `metadata.generation`; 0 offline.
    pub generation: i64,
    /// Annotations of the set that people steer it by: those under OpenKruise's prefix and ours.
    pub annotations: BTreeMap<String, String>,
    // The spec as JSON: decoded it would take ten times as much.
    spec: Packed,
    /// Names of containers and volumes that are in the spec and not in pods.
    pub unused_names: Box<[Box<str>]>,
    /// Position among the sets of one pod.
    pub order: i32,
    /// Which pods.
    pub selector: Selector,
    /// Which namespaces.
    pub scope: NamespaceScope,
    /// What a clash does.
    pub on_clash: OnClash,
    /// Whether a pod may opt out.
    pub may_opt_out: bool,
    /// What of it may be another in a pod.
    pub allowed: CompiledAllowedChanges,
    /// Injection is paused.
    pub paused: bool,
    /// The older revision that new pods get.
    pub pin: Option<Box<Pin>>,
    /// The sets whose place it takes as their canary.
    pub bases: Box<[Box<str>]>,
    /// Where the containers run.
    pub platform: Platform,
    /// Init containers in the order of the set, native sidecars among them.
    pub init_containers: Pieces,
    /// Containers, those that go before the pod's own among them.
    pub containers: Pieces,
    /// Those of its containers that are upgraded by a second one.
    pub pairs: Box<[Pair]>,
    /// Volumes that the containers mount, in order of use.
    pub volumes: Vec<VolumePiece>,
    /// Pull secrets.
    pub secrets: Vec<SecretPiece>,
    /// What the pod's own containers get.
    pub app_containers: Vec<AppPiece>,
    /// Annotations that pods get.
    pub metadata: Vec<AnnotationPiece>,
    /// What a pod may change for itself.
    pub pod_overrides: Option<Box<CompiledOverrides>>,
    /// What pods that end get.
    pub job_pods: JobPods,
    /// For containers that lack requests or limits.
    pub resource_defaults: CompiledDefaults,
    /// Sentences for the user who creates a pod with the set: what the set did for this pod.
    pub notes: Vec<String>,
    /// The user's own name for this form: `spec.customVersion`, or OpenKruise's label for it.
    pub custom_version: Option<Box<str>>,
    /// How many revisions are kept, `spec.revisionHistoryLimit`.
    pub revision_history_limit: usize,
    /// Identifies what is injected, over restarts and versions.
    pub hash: String,
}

/// `spec.clashPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnClash {
    /// The pod is refused.
    Refuse,
    /// The pod goes without the set.
    Skip,
}

/// `spec.jobPods`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPods {
    /// The containers as native sidecars, which end with the pod's own.
    NativeSidecar,
    /// Nothing.
    Skip,
    /// What other pods get.
    Inject,
}

impl JobPods {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some(JOB_SKIP) => Self::Skip,
            Some(JOB_INJECT) => Self::Inject,
            _ => Self::NativeSidecar,
        }
    }
}

impl CompiledSet {
    /// Compiles a set.
    ///
    /// # Errors
    /// When a selector is not valid, or a container has no name or another's. Validation compiles each set, so that none is accepted
    /// that cannot be used; but an object may have been stored while the webhook was away.
    pub fn compile(set: &SidecarSet) -> Result<Self, CompileError> {
        let name = set.metadata.name.clone().unwrap_or_default();
        let spec = &set.spec;
        let mut errors = ErrorList::default();
        let path = Path::new("spec");
        let selector = compile_selector(spec.selector.as_ref(), &mut errors);
        let scope = scope(spec, &mut errors);
        let pin = Pin::of(spec, &mut errors).map(Box::new);
        require_names(spec, &path, &mut errors);
        check_reach(spec, &path, &mut errors);
        let fillings = Fillings {
            defaults: CompiledDefaults::of(spec.resource_defaults.as_ref()),
            security: (spec.pod_security.as_deref() == Some(SECURITY_COMPLETE)).then(|| platform(spec)),
        };
        let [init_containers, containers] = both_lists(spec, &fillings, &path, &mut errors);
        if name.is_empty() {
            errors.push(Error::required(&Path::new("metadata").child("name"), ""));
        }
        if !errors.is_empty() {
            return Err(CompileError { name, errors });
        }
        let used = used_volumes(spec);
        let hash = canonical::hash(spec, &used);
        let in_pods = containers.iter().chain(init_containers.iter()).map(|piece| Arc::clone(&piece.json));
        let packed = Packed::of(&serde_json::to_string(spec).unwrap_or_default(), in_pods);
        Ok(Self {
            generation: set.metadata.generation.unwrap_or_default(),
            annotations: set.metadata.annotations.iter().flatten().filter(steers).map(owned).collect(),
            order: spec.order.unwrap_or_default(),
            selector,
            scope,
            on_clash: if spec.clash_policy.as_deref() == Some("Skip") { OnClash::Skip } else { OnClash::Refuse },
            may_opt_out: spec.opt_out.as_deref() != Some("Denied"),
            allowed: CompiledAllowedChanges::of(spec.allowed_changes.as_ref()),
            paused: spec.injection_strategy.as_ref().and_then(|strategy| strategy.paused).unwrap_or_default(),
            pin,
            bases: bases(|key| set.metadata.annotations.as_ref()?.get(key).map(String::as_str))
                .map(Into::into)
                .collect(),
            platform: platform(spec),
            unused_names: unused_names(spec, &used, [&containers, &init_containers]),
            volumes: used.into_iter().map(VolumePiece::of).collect(),
            secrets: secret_pieces(spec),
            init_containers,
            containers,
            pairs: hot_upgrade::pairs(spec),
            pod_overrides: spec.pod_overrides.as_ref().map(|written| Box::new(CompiledOverrides::of(written))),
            job_pods: JobPods::of(spec.job_pods.as_deref()),
            resource_defaults: fillings.defaults,
            app_containers: AppPiece::all(spec.app_containers.as_ref()),
            metadata: metadata::annotations(spec).into_iter().chain(hot_upgrade::annotations(spec)).collect(),
            notes: Vec::new(),
            custom_version: custom_version(set).map(Into::into),
            revision_history_limit: history_limit(spec),
            hash,
            spec: packed,
            name,
        })
    }

    /// The spec that it was compiled from, decoded anew each time.
    pub fn spec(&self) -> SidecarSetSpec {
        serde_json::from_str(&self.spec.text()).unwrap_or_default()
    }

    /// Its update strategy, decoded anew each time; the rest of the spec is skipped.
    pub fn update_strategy(&self) -> UpdateStrategy {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Only {
            update_strategy: Option<UpdateStrategy>,
        }
        serde_json::from_str::<Only>(&self.spec.text()).unwrap_or_default().update_strategy.unwrap_or_default()
    }

    /// The same as JSON.
    pub fn spec_value(&self) -> Value {
        serde_json::from_str(&self.spec.text()).unwrap_or_default()
    }

    /// A copy that shares no memory with the set.
    #[must_use]
    pub fn detached(&self) -> Self {
        let mut copy = self.clone();
        copy.init_containers.iter_mut().chain(copy.containers.iter_mut()).for_each(Piece::detach);
        let in_pods: Vec<&Arc<str>> =
            copy.containers.iter().chain(copy.init_containers.iter()).map(|piece| &piece.json).collect();
        copy.spec.detach(&in_pods);
        copy
    }

    /// The set's entry in the pod's annotation, as JSON with sorted keys. Written anew each time, so that no set keeps it.
    pub fn entry(&self) -> String {
        entry::entry(&self.name, &self.hash, &self.containers, &self.init_containers)
    }

    /// Containers that run at the same time as the pod's own: all but plain init containers.
    pub fn running(&self) -> impl Iterator<Item = &Piece> {
        self.init_containers.iter().filter(|piece| piece.needs.is_native_sidecar).chain(self.containers.iter())
    }

    /// Whether no pod may go without the set: neither by opting out nor because it clashes.
    pub const fn is_must(&self) -> bool {
        !self.may_opt_out && matches!(self.on_clash, OnClash::Refuse)
    }

    /// The containers of the set that go to a list of the pod.
    pub(crate) const fn pieces_of(&self, list: List) -> &Pieces {
        match list {
            List::InitContainers => &self.init_containers,
            List::Containers => &self.containers,
        }
    }

    /// Whether what a pod gets of the set depends on the pod.
    pub fn takes_from_pod(&self) -> bool {
        self.pieces().any(|piece| piece.plan.is_some())
    }

    /// Every container of the set, init containers first.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.init_containers.iter().chain(self.containers.iter())
    }
}

/// The init containers and the containers.
fn both_lists(spec: &SidecarSetSpec, fillings: &Fillings, path: &Path, errors: &mut ErrorList) -> [Pieces; 2] {
    let init_containers = spec.init_containers.as_deref();
    let init_containers = pieces(init_containers, Side::After, fillings, &path.child("initContainers"), errors);
    let containers = pieces(spec.containers.as_deref(), Side::Before, fillings, &path.child("containers"), errors);
    [init_containers, containers]
}

/// Every container needs a name, and one that no other container of the pod has, init containers among them.
fn require_names(spec: &SidecarSetSpec, path: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
        for (index, container) in list.iter().flatten().enumerate() {
            let at = path.child(field).index(index).child("name");
            let name = container.name();
            if name.is_empty() {
                errors.push(Error::required(&at, ""));
            }
            for name in hot_upgrade::names_in_pod(container).into_iter().filter(|name| !name.is_empty()) {
                if seen.contains(&name) {
                    errors.push(Error::duplicate(&at, &name));
                }
                seen.insert(name);
            }
            if hot_upgrade::is_hot(&container.0) && hot_upgrade::empty_image(&container.0).is_empty() {
                let at = path.child(field).index(index).child("upgradeStrategy").child("hotUpgradeEmptyImage");
                errors.push(Error::required(&at, ""));
            }
        }
    }
}

/// The operating system that the set says, which defaulting has filled in; else that of its containers.
fn platform(spec: &SidecarSetSpec) -> Platform {
    let word = spec.platform.as_deref().filter(|word| !word.is_empty());
    let is_windows = || spec.all_containers().any(|container| platform::is_for_windows(&container.0));
    if word.map_or_else(is_windows, |word| word == PLATFORM_WINDOWS) { Platform::Windows } else { Platform::Linux }
}

/// The volumes that the containers' own mounts, devices and variables name, in order of use, each once.
pub(super) fn used_volumes(spec: &SidecarSetSpec) -> Vec<&RawObject> {
    let mut unused: HashMap<&str, &RawObject> = HashMap::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(name) = volume.get("name").and_then(Value::as_str) {
            // The first of two with one name, which validation refuses.
            unused.entry(name).or_insert(volume);
        }
    }
    // In the shape of a container.
    let of_app = spec.app_containers.iter().flatten().map(|entry| {
        let fields = [("env", &entry.env), ("volumeMounts", &entry.volume_mounts)];
        fields.map(|(field, list)| (field.to_owned(), json!(list))).into_iter().collect::<RawObject>()
    });
    let of_app: Vec<RawObject> = of_app.collect();
    let containers = spec.all_containers().map(|container| &container.0).chain(&of_app);
    containers.flat_map(volume_names).filter_map(|name| unused.remove(name)).collect()
}

/// Whether an annotation of a set steers it. Others may be as long as the set, as the one that `kubectl apply` writes.
fn steers((key, _): &(&String, &String)) -> bool {
    ANNOTATION_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// The sets that a set is the canary of, by OpenKruise's annotations and by ours.
pub(crate) fn bases<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let base = move |prefix: &str| {
        let is_canary = annotation(&format!("{prefix}sidecarset-canary")) == Some("true");
        annotation(&format!("{prefix}sidecarset-base")).filter(|base| is_canary && !base.is_empty())
    };
    ANNOTATION_PREFIXES.into_iter().filter_map(base)
}

fn custom_version(set: &SidecarSet) -> Option<&str> {
    let written = set.spec.custom_version.as_deref().filter(|version| !version.is_empty());
    let of = |map: &str, key: &str| {
        let map = if map == "labels" { &set.metadata.labels } else { &set.metadata.annotations };
        map.as_ref()?.get(key).map(String::as_str)
    };
    written.or_else(|| versions_in_metadata(of).next().map(|(_, _, version)| version))
}

/// Whether a set, as it is written, is a canary.
pub fn is_canary(set: &Value) -> bool {
    let annotations = set.pointer("/metadata/annotations");
    bases(|key| annotations?.get(key)?.as_str()).next().is_some()
}

fn owned((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

/// Names in the spec of containers that have other names in pods, and of volumes that nothing mounts.
fn unused_names(spec: &SidecarSetSpec, used: &[&RawObject], pieces: [&Pieces; 2]) -> Box<[Box<str>]> {
    let in_pods: BTreeSet<&str> = pieces.into_iter().flat_map(Pieces::names).collect();
    let containers = spec.all_containers().map(SidecarContainer::name).filter(|name| !in_pods.contains(name));
    let name_of = |volume: &RawObject| volume.get("name").and_then(Value::as_str).map(str::to_owned);
    let used: BTreeSet<String> = used.iter().filter_map(|volume| name_of(volume)).collect();
    let volumes = spec.volumes.iter().flatten().filter_map(name_of).filter(|name| !used.contains(name));
    containers.map(str::to_owned).chain(volumes).map(Into::into).collect()
}

/// Negative ones are refused by validation; at least the newest stays.
fn history_limit(spec: &SidecarSetSpec) -> usize {
    usize::try_from(spec.revision_history_limit.unwrap_or(REVISION_HISTORY_LIMIT)).unwrap_or(1)
}

#[cfg(test)]
#[path = "compiled_tests.rs"]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
