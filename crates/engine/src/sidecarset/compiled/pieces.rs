//! The parts of a set, each ready to be spliced into a pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::field::{ErrorList, Path};
use serde_json::{Value, json};

use crate::sidecarset::api::{CONTROL_FIELDS, RawObject, SidecarContainer, SidecarSetSpec};
use crate::sidecarset::canonical;
use crate::sidecarset::hot_upgrade;
use crate::sidecarset::injection::Plan;
use crate::sidecarset::mark;
use crate::sidecarset::needs::Needs;
use crate::sidecarset::platform::Platform;
use crate::sidecarset::pod_security;
use crate::sidecarset::resources::{CompiledDefaults, ResourcesPolicy};
use crate::sidecarset::sameness::Form;

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

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.before.iter_mut().chain(&mut self.after)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.iter().map(|piece| piece.name.as_str()).collect()
    }
}

/// A container ready to be spliced in.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Name.
    pub name: String,
    /// The container as it goes into the pod.
    pub json: Arc<str>,
    /// Image, as the set writes it.
    pub image: String,
    /// For comparing with a container of a pod.
    pub form: Form,
    /// What it asks of the pod.
    pub needs: Needs,
    /// How its resources follow from those of the pod's own containers.
    pub policy: Option<Arc<ResourcesPolicy>>,
    /// What it takes from the pod, if anything. The others are then without it.
    pub plan: Option<Box<Plan>>,
}

impl Piece {
    /// A container as it goes into the pod.
    pub fn of(object: &RawObject) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let json = json_of(object).into();
        Self {
            name: text("name"),
            image: text("image"),
            form: Form::of(object, &json),
            needs: Needs::of(object),
            json,
            policy: None,
            plan: None,
        }
    }

    /// Gives up what is shared with other pieces.
    pub(super) fn detach(&mut self) {
        self.json = Arc::from(&*self.json);
        self.form.detach(&self.json);
        self.policy = self.policy.as_deref().cloned().map(Arc::new);
    }

    /// The same piece with another container.
    #[must_use]
    pub fn with(&self, object: &RawObject) -> Self {
        Self { policy: self.policy.clone(), plan: self.plan.clone(), ..Self::of(object) }
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
    pub json: Box<str>,
    /// For comparing with another volume of that name: JSON with sorted keys.
    pub canonical: Box<str>,
    /// Whether it is an empty directory of the pod's own.
    pub is_empty_dir: bool,
    /// The claim that it refers to.
    pub claim: Option<Box<str>>,
    /// Whether a claim is made for it.
    pub is_ephemeral: bool,
}

impl VolumePiece {
    /// A volume of a set.
    pub fn of(volume: &RawObject) -> Self {
        let canonical = canonical::strict_volume(volume.clone());
        let claim = canonical.get("persistentVolumeClaim").and_then(|claim| claim.get("claimName")?.as_str());
        Self {
            name: volume.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            json: json_of(volume).into(),
            is_empty_dir: canonical.keys().all(|field| matches!(field.as_str(), "name" | "emptyDir")),
            claim: claim.map(Into::into),
            is_ephemeral: canonical.get("ephemeral").is_some_and(Value::is_object),
            canonical: canonical::sorted_json(&Value::Object(canonical)).into(),
        }
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

fn json_of(object: &RawObject) -> String {
    serde_json::to_string(object).unwrap_or_default()
}

/// The side of the pod's own containers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

/// The containers of one list. Those that do not say otherwise go to the side `default`.
pub(super) fn pieces(
    list: Option<&[SidecarContainer]>,
    default: Side,
    fillings: &Fillings,
    path: &Path,
    errors: &mut ErrorList,
) -> Pieces {
    let mut pieces = Pieces::default();
    for (index, container) in list.unwrap_or_default().iter().enumerate() {
        let side = match container.text("podInjectPolicy") {
            "BeforeAppContainer" => Side::Before,
            "AfterAppContainer" => Side::After,
            _ => default,
        };
        let of_side = match side {
            Side::Before => &mut pieces.before,
            Side::After => &mut pieces.after,
        };
        of_side.extend(pieces_of(container, fillings, &path.index(index), errors));
    }
    pieces
}

/// What is filled into every container of a set.
pub(super) struct Fillings {
    pub(super) defaults: CompiledDefaults,
    // None where security contexts stay as written.
    pub(super) security: Option<Platform>,
}

/// One, or with a hot upgrade two.
fn pieces_of(container: &SidecarContainer, fillings: &Fillings, path: &Path, errors: &mut ErrorList) -> Vec<Piece> {
    let policy = container.0.get("resourcesPolicy").filter(|policy| !canonical::is_empty(policy));
    let policy = policy.and_then(|policy| ResourcesPolicy::read(policy, &path.child("resourcesPolicy"), errors));
    let policy = policy.map(Arc::new);
    let mut object = container.0.clone();
    for field in CONTROL_FIELDS {
        object.remove(field);
    }
    mark::mark(&mut object);
    if policy.is_none() {
        fillings.defaults.fill(&mut object);
    }
    if let Some(platform) = fillings.security {
        pod_security::complete(&mut object, platform);
    }
    let piece = |object: &RawObject, last: usize| Piece {
        plan: Plan::of(container, last).map(Box::new),
        policy: policy.clone(),
        ..Piece::of(object)
    };
    match hot_upgrade::pair(container, &object) {
        Some(pair) => pair.iter().map(|object| piece(object, hot_upgrade::VARIABLES.len())).collect(),
        None => vec![piece(&object, 0)],
    }
}

/// The pull secrets, each once.
pub(super) fn secret_pieces(spec: &SidecarSetSpec) -> Vec<SecretPiece> {
    let mut seen = BTreeSet::new();
    let secrets = spec.image_pull_secrets.iter().flatten().filter(|secret| seen.insert(secret.name.as_str()));
    secrets
        .map(|secret| SecretPiece { name: secret.name.clone(), json: json!({"name": secret.name}).to_string() })
        .collect()
}
