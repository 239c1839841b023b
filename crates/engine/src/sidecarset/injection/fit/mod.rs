//! Fitting sets to a pod: containers of a set that take something from the pod's own containers.
//!
//! What a pod gets of such a set is known only with the pod at hand. A set that takes nothing is passed on as it is. Everything
//! behind this module works with the fitted set, so that a pod is compared with what injection would give this pod.

mod plan;
mod share;
mod sources;
mod transfer;

pub use plan::{Plan, Source, Transfer};

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use admission::Reason;
use serde_json::Value;

use self::share::Shared;
use self::sources::Sources;
use crate::pod::view::PodView;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::{Clash, Injection, Missing};
use crate::sidecarset::sameness::Taken;

/// Bytes that all sets together take from the containers of a pod and give to theirs. An API server stores no pod of that size:
/// etcd's limit is 1.5 MiB. Without a limit a long list of the pod's would be copied into as many containers as sets have.
const MAX_TAKEN: usize = 3 * 1024 * 1024;

/// Warnings about one pod: there may be as many as it has mounts.
const TOLD: usize = 8;

/// A set as it is injected into one pod.
#[derive(Debug)]
pub struct Fitted<'s> {
    /// The set.
    pub set: Cow<'s, CompiledSet>,
    warnings: Vec<String>,
    clash: Option<Clash>,
}

impl<'s> Fitted<'s> {
    /// A set that takes nothing from the pod, or goes into none.
    pub const fn as_is(set: &'s CompiledSet) -> Self {
        Self { set: Cow::Borrowed(set), warnings: Vec::new(), clash: None }
    }

    /// Adds what the pod lacks of the set.
    ///
    /// # Errors
    /// As [`Injection::add`], and when the set cannot be fitted to the pod.
    pub fn add_to(&'s self, injection: &mut Injection<'_, 's>) -> Result<Reason, Clash> {
        let missing = self.examine(injection)?;
        Ok(injection.add_missing(&self.set, missing))
    }

    /// What the pod lacks of the set.
    ///
    /// # Errors
    /// As [`Injection::examine`], and when the set cannot be fitted to the pod.
    pub fn examine(&'s self, injection: &Injection<'_, 's>) -> Result<Missing<'s>, Clash> {
        if let Some(clash) = &self.clash {
            return Err(clash.clone());
        }
        let mut missing = injection.examine(&self.set)?;
        if !missing.is_empty() {
            missing.warnings.extend(self.warnings.iter().cloned());
        }
        Ok(missing)
    }
}

/// Fits the sets that select a pod, which was read from `body`; those that do not go into it are passed on as they are.
pub fn fit<'s>(pod: &PodView<'_>, body: &str, selecting: &[(&'s CompiledSet, bool)]) -> Vec<Fitted<'s>> {
    if !selecting.iter().any(|(set, goes_in)| *goes_in && set.takes_from_pod()) {
        return selecting.iter().map(|(set, _)| Fitted::as_is(set)).collect();
    }
    let sets: Vec<&CompiledSet> = selecting.iter().map(|(set, _)| *set).collect();
    let mut fitting = Fitting {
        pod,
        sources: Sources::new(pod, body, &sets),
        shared: [const { None }; 2],
        left: MAX_TAKEN,
        told: 0,
    };
    let fitted = |(set, goes_in): &(&'s CompiledSet, bool)| {
        if *goes_in && set.takes_from_pod() { fitting.set(set) } else { Fitted::as_is(set) }
    };
    selecting.iter().map(fitted).collect()
}

/// More is taken than [`MAX_TAKEN`].
struct TooMuch;

struct Fitting<'p, 's> {
    pod: &'p PodView<'p>,
    sources: Sources<'p, 's>,
    // What there is to share, with sets that are no must and with those that are.
    shared: [Option<Shared>; 2],
    left: usize,
    told: usize,
}

impl<'p> Fitting<'p, '_> {
    fn set<'s>(&mut self, set: &'s CompiledSet) -> Fitted<'s> {
        let mut fitted = set.clone();
        let mut warnings = Vec::new();
        for pieces in [&mut fitted.init_containers, &mut fitted.containers] {
            for piece in pieces.before.iter_mut().chain(&mut pieces.after) {
                let Some(plan) = piece.plan.take() else { continue };
                match self.piece(set, &plan, piece, &mut warnings) {
                    Ok(own) => *piece = own,
                    Err(TooMuch) => {
                        let clash = Some(Clash::illegal(set, "spec.containers", TOO_MUCH));
                        return Fitted { set: Cow::Borrowed(set), warnings: Vec::new(), clash };
                    }
                }
            }
        }
        Fitted { set: Cow::Owned(fitted), warnings, clash: None }
    }

    fn piece(
        &mut self,
        set: &CompiledSet,
        plan: &Plan,
        piece: &Piece,
        warnings: &mut Vec<String>,
    ) -> Result<Piece, TooMuch> {
        let mut container = Container::new(set, plan, &piece.name);
        self.transfer(&mut container)?;
        self.share(&mut container)?;
        for warning in container.warnings {
            if self.told < TOLD {
                self.told += 1;
                warnings.push(warning);
            }
        }
        let taken = container.taken;
        let mut object = plan.object.clone();
        extend(&mut object, "env", taken.env.iter().chain(&plan.last));
        extend(&mut object, "volumeMounts", taken.volume_mounts.iter());
        extend(&mut object, "volumeDevices", taken.volume_devices.iter());
        let mut needs = piece.needs.clone();
        needs.has_devices |= !taken.volume_devices.is_empty();
        Ok(Piece {
            name: piece.name.clone(),
            image: piece.image.clone(),
            form: piece.form.with(&object, &taken),
            needs,
            json: Value::Object(object).to_string(),
            plan: None,
        })
    }

    /// Takes note that so many bytes are taken.
    fn take(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(bytes).ok_or(TooMuch)?;
        Ok(())
    }
}

const TOO_MUCH: &str = "what its containers take from those of the pod (transferEnv, shareVolumePolicy) exceeds 3 MiB, and no API \
                        server stores a pod of that size; make the pod's environment or its lists of mounts smaller";

fn extend<'v>(object: &mut RawObject, field: &str, elements: impl Iterator<Item = &'v Value>) {
    let mut elements = elements.peekable();
    if elements.peek().is_none() {
        return;
    }
    let list = object.entry(field).or_insert(Value::Null);
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    if let Value::Array(list) = list {
        list.extend(elements.cloned());
    }
}

/// A container of a set while it is fitted.
struct Container<'c> {
    set: &'c CompiledSet,
    plan: &'c Plan,
    name: &'c str,
    taken: Taken,
    // By name, the container's own and those that were taken.
    variables: BTreeMap<String, Value>,
    // Variables of a container of the pod, by its position, that have been decided on.
    decided: BTreeSet<(usize, String)>,
    warnings: Vec<String>,
}

impl<'c> Container<'c> {
    fn new(set: &'c CompiledSet, plan: &'c Plan, name: &'c str) -> Self {
        let own = plan.own_variables().map(|variable| (plan::text(variable, "name").to_owned(), variable.clone()));
        Self {
            set,
            plan,
            name,
            taken: Taken::default(),
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

    fn warn(&mut self, text: &str) {
        if self.warnings.len() < TOLD {
            self.warnings.push(format!("container {:?} of SidecarSet {:?}: {text}", self.name, self.set.name));
        }
    }
}
