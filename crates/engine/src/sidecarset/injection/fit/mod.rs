//! Fitting sets to a pod: containers of a set that take something from the pod's own containers.
//!
//! What a pod gets of such a set is known only with the pod at hand. A set that takes nothing is passed on as it is. Everything
//! behind this module works with the fitted set, so that a pod is compared with what injection would give this pod.

mod plan;
mod share;
mod sources;
mod transfer;

pub use plan::{Plan, Source, Transfer};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::limit::values;
use serde_json::Value;
use serde_json::value::RawValue;

use self::share::Shared;
pub(super) use self::sources::{Own, Sources};
use crate::pod::limits;
use crate::pod::view::PodView;
use crate::sidecarset::api::{RawObject, list, text};
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::Clash;
use crate::sidecarset::sameness::{FromPod, clean_path};

/// Warnings about one pod: there may be as many as it has mounts.
const TOLD: usize = 8;

/// More is taken than [`limits::TAKEN_BYTES`] or [`limits::TAKEN_VALUES`].
struct TooMuch;

/// How much more may be decoded of what a pod has.
struct DecodeRoom {
    bytes: usize,
    values: usize,
}

impl DecodeRoom {
    const fn all() -> Self {
        Self { bytes: limits::TAKEN_BYTES, values: limits::TAKEN_VALUES }
    }

    /// Takes note that this is decoded, before it is.
    fn take(&mut self, raw: &RawValue) -> Result<(), TooMuch> {
        self.take_text(raw)?;
        self.take_values(raw)
    }

    /// The same where no more than a text is decoded.
    fn take_text(&mut self, raw: &RawValue) -> Result<(), TooMuch> {
        self.bytes = self.bytes.checked_sub(raw.get().len()).ok_or(TooMuch)?;
        Ok(())
    }

    fn take_values(&mut self, raw: &RawValue) -> Result<(), TooMuch> {
        let text = raw.get();
        self.values = self.values.checked_sub(values(text, self.values)).ok_or(TooMuch)?;
        Ok(())
    }
}

/// Fits sets to one pod.
pub struct Fitting<'p, 's> {
    pod: &'p PodView<'p>,
    sources: Sources<'p, 's>,
    // What there is to share, with sets that are no must and with those that are.
    shared: [Option<Shared<'p>>; 2],
    left: DecodeRoom,
    told: usize,
}

impl<'p, 's> Fitting<'p, 's> {
    /// For a pod, which was read from `body`, and the sets that select it.
    pub fn new(pod: &'p PodView<'p>, body: &'p str, selecting: &[&'s CompiledSet]) -> Self {
        let takes = selecting.iter().any(|set| set.takes_from_pod());
        let sources = Sources::without_additions(pod, body, if takes { selecting } else { &[] });
        Self { pod, sources, shared: [const { None }; 2], left: DecodeRoom::all(), told: 0 }
    }

    /// The set as the pod gets it; `None` where it takes nothing from the pod.
    ///
    /// # Errors
    /// [`Clash`] when no pod can have so much.
    pub fn fit(&mut self, set: &CompiledSet) -> Result<Option<CompiledSet>, Clash> {
        if !set.takes_from_pod() {
            return Ok(None);
        }
        if self.sources.has_longer(set.is_must()) {
            return Err(Clash::too_long(set));
        }
        let mut fitted = set.clone();
        let mut warnings = Vec::new();
        for pieces in [&mut fitted.init_containers, &mut fitted.containers] {
            for piece in pieces.iter_mut() {
                let Some(plan) = piece.plan.take() else { continue };
                *piece = self.piece(set, &plan, piece, &mut warnings).map_err(|TooMuch| too_much(set))?;
            }
        }
        fitted.notes.extend(warnings);
        Ok(Some(fitted))
    }

    fn piece(
        &mut self,
        set: &CompiledSet,
        plan: &Plan,
        piece: &Piece,
        warnings: &mut Vec<String>,
    ) -> Result<Piece, TooMuch> {
        let mut object = piece.object();
        let mut container = Container::new(set, plan, &object);
        self.transfer(&mut container)?;
        self.share(&mut container)?;
        for warning in container.warnings {
            if self.told < TOLD {
                self.told += 1;
                warnings.push(warning);
            }
        }
        let taken = container.taken;
        let mut needs = piece.needs.clone();
        needs.has_devices |= !taken.volume_devices.is_empty();
        insert(&mut object, "env", plan.last, &taken.env);
        insert(&mut object, "volumeMounts", 0, &taken.volume_mounts);
        insert(&mut object, "volumeDevices", 0, &taken.volume_devices);
        let json: Arc<str> = Value::Object(object.clone()).to_string().into();
        let form = piece.form.with(&object, json.len(), &taken);
        let (name, image, policy) = (piece.name.clone(), piece.image.clone(), piece.policy.clone());
        Ok(Piece { name, json, image, form, needs, policy, plan: None })
    }
}

fn too_much(set: &CompiledSet) -> Clash {
    let text = "what its containers take from those of the pod (transferEnv, shareVolumePolicy) exceeds 3 MiB or 20,000 \
                values; make the pod's environment or its lists of mounts smaller";
    Clash::illegal(set, "spec.containers", text)
}

/// Puts elements into a list, so many from its end.
fn insert(object: &mut RawObject, field: &str, behind: usize, elements: &[Value]) {
    if elements.is_empty() {
        return;
    }
    let list = object.entry(field).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Value::Array(list) = list {
        let at = list.len().saturating_sub(behind);
        list.splice(at..at, elements.iter().cloned());
    }
}

/// A container of a set while it is fitted.
struct Container<'c> {
    set: &'c CompiledSet,
    plan: &'c Plan,
    object: &'c RawObject,
    taken: FromPod,
    // By name, the container's own and those that were taken.
    variables: BTreeMap<String, Value>,
    // Variables of a container of the pod, by its position, that have been decided on.
    decided: BTreeSet<(usize, String)>,
    warnings: Vec<String>,
}

impl<'c> Container<'c> {
    fn new(set: &'c CompiledSet, plan: &'c Plan, object: &'c RawObject) -> Self {
        let own = list(object.get("env")).map(|variable| (text(variable, "name").to_owned(), variable.clone()));
        Self {
            set,
            plan,
            object,
            taken: FromPod::default(),
            variables: own.collect(),
            decided: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a variable, unless the container has one of that name.
    fn add_variable(&mut self, name: &str, variable: Value) {
        if !self.variables.contains_key(name) {
            self.variables.insert(name.to_owned(), variable.clone());
            self.taken.env.push(variable);
        }
    }

    fn warn(&mut self, message: &str) {
        if self.warnings.len() < TOLD {
            let name = self.object.get("name").and_then(Value::as_str).unwrap_or_default();
            self.warnings.push(format!("container {name:?} of SidecarSet {:?}: {message}", self.set.name));
        }
    }

    /// Where the container has mounts and devices of its own.
    fn own_paths(&self) -> BTreeSet<String> {
        let mounts = list(self.object.get("volumeMounts")).map(|mount| text(mount, "mountPath"));
        let devices = list(self.object.get("volumeDevices")).map(|device| text(device, "devicePath"));
        mounts.chain(devices).map(|path| same_path(path).to_owned()).collect()
    }

    /// Names of the volumes in one of the container's lists.
    fn own_names(&self, field: &str) -> BTreeSet<String> {
        list(self.object.get(field)).map(|item| text(item, "name").to_owned()).collect()
    }

    fn is_privileged(&self) -> bool {
        let context = self.object.get("securityContext");
        context.and_then(|context| context.get("privileged")).is_some_and(|it| *it == true)
    }
}

/// The spelling of a path by which two are one: a slash at its end makes no difference.
fn same_path(path: &str) -> &str {
    clean_path(path).unwrap_or(path)
}
