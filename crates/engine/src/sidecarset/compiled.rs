//! A SidecarSet in ready-to-splice form, made when the set changes, not when a pod arrives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use admission::field::{Error, ErrorList, Path};
use admission::format::Selector;
use admission::format::selector::LabelSelector;
use serde_json::{Value, json};

use crate::sidecarset::api::{CONTROL_FIELDS, RawObject, SidecarContainer, SidecarSet, SidecarSetSpec};
use crate::sidecarset::canonical;
use crate::sidecarset::hot_upgrade;
use crate::sidecarset::injection::{List, Plan};
use crate::sidecarset::mark;
use crate::sidecarset::metadata::{self, AnnotationPiece};
use crate::sidecarset::needs::{Needs, volume_names};
pub use crate::sidecarset::platform::Platform;
use crate::sidecarset::sameness::{AllowedChanges, Form};

/// The label that every namespace carries with its own name.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A set that cannot be compiled.
#[derive(Debug, Clone, thiserror::Error)]
#[error("SidecarSet {name:?} cannot be used: {errors}")]
pub struct CompileError {
    /// Name of the set.
    pub name: String,
    /// What is wrong with it.
    pub errors: ErrorList,
}

/// A set, compiled.
#[derive(Debug, Clone)]
pub struct CompiledSet {
    /// Name.
    pub name: String,
    /// `metadata.generation`; 0 offline.
    pub generation: i64,
    /// Annotations of the set.
    pub annotations: BTreeMap<String, String>,
    /// The spec that it was compiled from.
    pub spec: Arc<SidecarSetSpec>,
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
    pub allowed: AllowedChanges,
    /// Injection is paused.
    pub paused: bool,
    /// Where the containers run.
    pub platform: Platform,
    /// Init containers.
    pub init_containers: Pieces,
    /// Containers.
    pub containers: Pieces,
    /// Volumes that the containers mount, in order of use.
    pub volumes: Vec<VolumePiece>,
    /// Pull secrets.
    pub secrets: Vec<SecretPiece>,
    /// Annotations that pods get.
    pub metadata: Vec<AnnotationPiece>,
    /// Sentences that whoever creates a pod with the set should see: what became of the set for this pod.
    pub notes: Vec<String>,
    /// Identifies what is injected, over restarts and versions.
    pub hash: String,
    /// The set's entry in the pod's annotation, as JSON.
    pub entry: String,
}

/// Which namespaces a set reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceScope {
    /// Every namespace.
    All,
    /// The namespace of this name.
    Named(String),
    /// Namespaces by label.
    Selected {
        /// The selector.
        selector: Selector,
        /// Whether every condition is about the namespace's name, which is known without having seen the namespace.
        by_name_alone: bool,
    },
}

/// `spec.clashPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnClash {
    /// The pod is refused.
    Refuse,
    /// The pod goes without the set.
    Skip,
}

/// Containers by the side of the pod's own that they go to.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    /// In front.
    pub before: Vec<Piece>,
    /// Behind.
    pub after: Vec<Piece>,
}

impl Pieces {
    /// All, those in front first.
    pub fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.before.iter().chain(&self.after)
    }

    fn names(&self) -> Vec<&str> {
        self.iter().map(|piece| piece.name.as_str()).collect()
    }
}

/// A container ready to be spliced in.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Name.
    pub name: String,
    /// The container as it goes into the pod.
    pub json: String,
    /// Image.
    pub image: String,
    /// For comparing with a container of a pod.
    pub form: Form,
    /// What it asks of the pod.
    pub needs: Needs,
    /// What it takes from the pod, if anything. The others are then without it.
    pub plan: Option<Box<Plan>>,
}

impl Piece {
    /// A container as it goes into the pod.
    pub fn of(object: &RawObject, plan: Option<Plan>) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            image: text("image"),
            form: Form::of(object),
            needs: Needs::of(object),
            json: Value::Object(object.clone()).to_string(),
            plan: plan.map(Box::new),
        }
    }

    /// The container as it goes into the pod.
    pub fn object(&self) -> RawObject {
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// A volume ready to be spliced in.
#[derive(Debug, Clone)]
pub struct VolumePiece {
    /// Name.
    pub name: String,
    /// The volume as it goes into the pod.
    pub json: String,
    /// For comparing with another volume of that name.
    pub canonical: RawObject,
}

impl VolumePiece {
    /// A volume of a set.
    pub fn of(volume: &RawObject) -> Self {
        Self {
            name: volume.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            json: Value::Object(volume.clone()).to_string(),
            canonical: canonical::strict_volume(volume.clone()),
        }
    }

    /// Whether it is an empty directory of the pod's own.
    pub fn is_empty_dir(&self) -> bool {
        self.canonical.keys().all(|field| matches!(field.as_str(), "name" | "emptyDir"))
    }
}

/// A pull secret ready to be spliced in.
#[derive(Debug, Clone)]
pub struct SecretPiece {
    /// Name.
    pub name: String,
    /// The reference as it goes into the pod.
    pub json: String,
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
        require_names(spec, &path, &mut errors);
        check_reach(spec, &path, &mut errors);
        if name.is_empty() {
            errors.push(Error::required(&Path::new("metadata").child("name"), ""));
        }
        if !errors.is_empty() {
            return Err(CompileError { name, errors });
        }
        let used = used_volumes(spec);
        let hash = canonical::hash(spec, &used);
        let init_containers = pieces(spec.init_containers.as_deref(), Side::After);
        let containers = pieces(spec.containers.as_deref(), Side::Before);
        Ok(Self {
            generation: set.metadata.generation.unwrap_or_default(),
            annotations: set.metadata.annotations.clone().unwrap_or_default(),
            order: spec.order.unwrap_or_default(),
            selector,
            scope,
            on_clash: if spec.clash_policy.as_deref() == Some("Skip") { OnClash::Skip } else { OnClash::Refuse },
            may_opt_out: spec.opt_out.as_deref() != Some("Denied"),
            allowed: AllowedChanges::of(spec.allowed_changes.as_ref()),
            paused: spec.injection_strategy.as_ref().and_then(|strategy| strategy.paused).unwrap_or_default(),
            platform: platform(spec),
            volumes: used.into_iter().map(VolumePiece::of).collect(),
            secrets: secret_pieces(spec),
            entry: entry(&name, &hash, &containers, &init_containers),
            init_containers,
            containers,
            metadata: metadata::annotations(spec).into_iter().chain(hot_upgrade::annotations(spec)).collect(),
            notes: Vec::new(),
            hash,
            spec: Arc::new(spec.clone()),
            name,
        })
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

fn compile_selector(selector: Option<&LabelSelector>, errors: &mut ErrorList) -> Selector {
    match selector.map(LabelSelector::compile) {
        Some(Ok(selector)) => selector,
        Some(Err(found)) => {
            errors.extend(found);
            Selector::default()
        }
        None => Selector::default(),
    }
}

fn scope(spec: &SidecarSetSpec, errors: &mut ErrorList) -> NamespaceScope {
    match (&spec.namespace, &spec.namespace_selector) {
        (Some(name), _) if !name.is_empty() => NamespaceScope::Named(name.clone()),
        (_, Some(selector)) => {
            let selector = compile_selector(Some(selector), errors);
            let by_name_alone = selector.requirements().iter().all(|term| term.key() == NAMESPACE_NAME_LABEL);
            NamespaceScope::Selected { selector, by_name_alone }
        }
        _ => NamespaceScope::All,
    }
}

/// A set never reaches every pod of the cluster: `spec.selector`, `spec.namespace` or `spec.namespaceSelector` narrows it.
fn check_reach(spec: &SidecarSetSpec, path: &Path, errors: &mut ErrorList) {
    let selects_all = |selector: &Option<LabelSelector>| selector.as_ref().is_none_or(LabelSelector::is_empty);
    let has_namespace = spec.namespace.as_ref().is_some_and(|name| !name.is_empty());
    if selects_all(&spec.selector) && selects_all(&spec.namespace_selector) && !has_namespace {
        let detail = "an empty selector needs a namespace or a namespaceSelector beside it";
        errors.push(Error::required(&path.child("selector"), detail));
    }
    if has_namespace && spec.namespace_selector.is_some() {
        errors.push(Error::forbidden(&path.child("namespace"), "may not be specified together with namespaceSelector"));
    }
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

/// Containers with `windowsOptions` run on Windows; everything else is taken for Linux, which the pod API has no field for.
fn platform(spec: &SidecarSetSpec) -> Platform {
    let windows = all_containers(spec).any(|container| {
        container
            .0
            .get("securityContext")
            .and_then(|context| context.get("windowsOptions"))
            .is_some_and(Value::is_object)
    });
    if windows { Platform::Windows } else { Platform::Linux }
}

fn all_containers(spec: &SidecarSetSpec) -> impl Iterator<Item = &SidecarContainer> {
    spec.init_containers.iter().flatten().chain(spec.containers.iter().flatten())
}

/// The volumes that the containers' own mounts, devices and variables name, in order of use, each once.
fn used_volumes(spec: &SidecarSetSpec) -> Vec<&RawObject> {
    let mut unused: HashMap<&str, &RawObject> = HashMap::new();
    for volume in spec.volumes.iter().flatten() {
        if let Some(name) = volume.get("name").and_then(Value::as_str) {
            // The first of two with one name, which validation refuses.
            unused.entry(name).or_insert(volume);
        }
    }
    all_containers(spec)
        .flat_map(|container| volume_names(&container.0))
        .filter_map(|name| unused.remove(name))
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

fn pieces(list: Option<&[SidecarContainer]>, default: Side) -> Pieces {
    let mut pieces = Pieces::default();
    for container in list.unwrap_or_default() {
        let side = match container.text("podInjectPolicy") {
            "BeforeAppContainer" => Side::Before,
            "AfterAppContainer" => Side::After,
            _ => default,
        };
        let of_side = match side {
            Side::Before => &mut pieces.before,
            Side::After => &mut pieces.after,
        };
        of_side.extend(pieces_of(container));
    }
    pieces
}

/// One, or with a hot upgrade two.
fn pieces_of(container: &SidecarContainer) -> Vec<Piece> {
    let mut object = container.0.clone();
    for field in CONTROL_FIELDS {
        object.remove(field);
    }
    mark::mark(&mut object);
    match hot_upgrade::pair(container, &object) {
        Some(pair) => {
            let plan = || Plan::of(container, hot_upgrade::VARIABLES.len());
            pair.iter().map(|object| Piece::of(object, plan())).collect()
        }
        None => vec![Piece::of(&object, Plan::of(container, 0))],
    }
}

fn secret_pieces(spec: &SidecarSetSpec) -> Vec<SecretPiece> {
    let mut seen = BTreeSet::new();
    let secrets = spec.image_pull_secrets.iter().flatten().filter(|secret| seen.insert(secret.name.as_str()));
    secrets
        .map(|secret| SecretPiece { name: secret.name.clone(), json: json!({"name": secret.name}).to_string() })
        .collect()
}

fn entry(name: &str, hash: &str, containers: &Pieces, init_containers: &Pieces) -> String {
    let digits = hash.rsplit(':').next().unwrap_or_default();
    json!({
        "hash": hash,
        "revision": format!("{name}-{digits}"),
        "containers": containers.names(),
        "initContainers": init_containers.names(),
    })
    .to_string()
}

#[cfg(test)]
#[path = "compiled_tests.rs"]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
