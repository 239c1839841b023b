//! What containers get that leave requests or limits open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use admission::format::Quantity;
use admission::patch::{PatchWriter, Present, quoted};
use admission::raw::{ObjectWriter, members};
use admission::{Deadline, Unserved};
use serde_json::value::RawValue;

use super::compiled::CompiledRange;
use crate::plugins::change::List;
use crate::plugins::pod_facts::{Container, PodFacts};
use crate::plugins::work;
use crate::sidecarset::expression::Resource;
use crate::sidecarset::resources::OwnDefaults;

/// The annotation that says what was filled in, as the API server's own plugin writes it.
pub const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// A pod that grows by more is larger than any that is stored.
const MAX_GROWTH: usize = 3 << 20;

/// The first range, by name, that says something about a resource.
type Firsts<'r> = BTreeMap<&'r str, (&'r Quantity, &'r str)>;

/// What a resize may change (`validatePodResize` of k8s.io/kubernetes/pkg/apis/core/validation).
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// What is filled in.
#[derive(Debug, Clone, Default)]
pub struct Defaults<'r> {
    limits: Firsts<'r>,
    requests: Firsts<'r>,
}

/// What was filled in.
#[derive(Debug, Default)]
pub struct Filled<'r> {
    /// The change.
    pub patch: PatchWriter,
    /// Names of the ranges that it comes from.
    pub by: BTreeSet<&'r str>,
    texts: String,
    // Of one change after the other.
    json: String,
}

/// With what is filled in, the pod is larger than any that is stored.
#[derive(Debug)]
pub struct TooLarge;

impl<'r> Defaults<'r> {
    /// Those of these ranges.
    pub fn of(ranges: &[&'r Arc<CompiledRange>]) -> Self {
        let mut defaults = Self::default();
        for range in ranges {
            let pairs = [(&mut defaults.limits, &range.limits), (&mut defaults.requests, &range.requests)];
            for (firsts, amounts) in pairs {
                for (name, amount) in amounts {
                    firsts.entry(name).or_insert((amount, &range.name));
                }
            }
        }
        defaults
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty()
    }

    /// What the pod's own containers get, for sets that compute with it.
    pub fn of_own_containers(&self) -> OwnDefaults {
        let amounts = |firsts: &Firsts<'_>| {
            Resource::ALL.map(|resource| firsts.get(resource.name()).map(|(amount, _)| resource.nanos(amount)))
        };
        OwnDefaults { limits: amounts(&self.limits), requests: amounts(&self.requests) }
    }

    /// Fills in what a new pod leaves open, and says so in its annotation.
    ///
    /// # Errors
    /// [`Unserved::OutOfTime`] when the deadline passes. Inside: [`TooLarge`].
    pub fn fill(&self, pod: &PodFacts<'_>, deadline: Deadline<'_>) -> Result<Result<Filled<'r>, TooLarge>, Unserved> {
        let mut filled = Filled::default();
        for (list, what) in [(List::Containers, "container"), (List::Init, "init container")] {
            if self.fill_list(pod, list, what, |_| true, deadline, &mut filled)?.is_err() {
                return Ok(Err(TooLarge));
            }
        }
        if !filled.texts.is_empty() {
            let text = quoted(&format!("LimitRanger plugin set: {}", filled.texts));
            let present = pod.metadata.annotations.as_ref().map_or(Present::Absent, |all| Present::Len(all.len()));
            if !pod.metadata.is_there {
                filled.patch.add("/metadata", "{}");
            }
            filled.patch.set_members("/metadata/annotations", present, [(ANNOTATION, text.as_str())]);
        }
        Ok(Ok(filled))
    }

    /// Fills in what a pod leaves open that is resized: nothing else of it can be changed, and the API server refuses a resize of other
    /// resources than these.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn fill_resized(
        &self,
        pod: &PodFacts<'_>,
        deadline: Deadline<'_>,
    ) -> Result<Result<Filled<'r>, TooLarge>, Unserved> {
        let (mut filled, mut resizable) = (Filled::default(), self.clone());
        resizable.limits.retain(|name, _| RESIZABLE.contains(name));
        resizable.requests.retain(|name, _| RESIZABLE.contains(name));
        for (list, chosen) in [(List::Containers, (|_| true) as fn(&Container<'_>) -> bool), (List::Init, is_sidecar)] {
            if resizable.fill_list(pod, list, "", chosen, deadline, &mut filled)?.is_err() {
                return Ok(Err(TooLarge));
            }
        }
        Ok(Ok(filled))
    }

    fn fill_list(
        &self,
        pod: &PodFacts<'_>,
        list: List,
        what: &str,
        chosen: impl Fn(&Container<'_>) -> bool,
        deadline: Deadline<'_>,
        filled: &mut Filled<'r>,
    ) -> Result<Result<(), TooLarge>, Unserved> {
        let containers = pod.spec.as_ref().map(|spec| spec.list(list)).unwrap_or_default();
        let mut pointer = String::new();
        for (index, container) in containers.iter().enumerate().filter(|(_, container)| chosen(container)) {
            deadline.check()?;
            work::done(self.limits.len() + self.requests.len());
            pointer.clear();
            // Writing to a String cannot fail.
            let _ = write!(pointer, "/spec/{}/{index}/resources", list.field());
            self.fill_container(&mut pointer, container, what, filled);
            if filled.patch.len() + filled.texts.len() > MAX_GROWTH {
                return Ok(Err(TooLarge));
            }
        }
        Ok(Ok(()))
    }

    /// `mergeContainerResources`. A request that is open while the limit is not becomes the limit: the API server has not filled that in
    /// yet for containers that were just added.
    fn fill_container(&self, pointer: &mut String, container: &Container<'_>, what: &str, filled: &mut Filled<'r>) {
        let resources = container.resources.as_ref();
        let own = [resources.and_then(|all| all.requests), resources.and_then(|all| all.limits)];
        let [own_requests, own_limits] = own.map(|list| self.named(list));
        let requests = missing(&self.requests, |name| own_requests.contains(name) || own_limits.contains(name));
        let limits = missing(&self.limits, |name| own_limits.contains(name));
        let fields = [("requests", own[0], &requests), ("limits", own[1], &limits)];
        let json = &mut filled.json;
        if resources.is_some() {
            let end = pointer.len();
            for (field, own, missing) in fields.iter().filter(|(_, _, missing)| !missing.is_empty()) {
                json.clear();
                merged(json, *own, missing);
                pointer.push('/');
                pointer.push_str(field);
                filled.patch.add(pointer, json);
                pointer.truncate(end);
            }
        } else if !requests.is_empty() || !limits.is_empty() {
            json.clear();
            let mut object = ObjectWriter::begin(json);
            for (field, _, missing) in fields.iter().filter(|(_, _, missing)| !missing.is_empty()) {
                merged(object.value_of(field), None, missing);
            }
            object.end();
            filled.patch.add(pointer, json);
        }
        for (word, set) in [("request", &requests), ("limit", &limits)] {
            if set.is_empty() {
                continue;
            }
            filled.by.extend(set.iter().map(|(_, _, by)| *by));
            let mut separator = if filled.texts.is_empty() { "" } else { "; " };
            for (name, ..) in set {
                filled.texts.extend([separator, name]);
                separator = ", ";
            }
            filled.texts.extend([" ", word, " for ", what, " ", container.name.as_str()]);
        }
    }

    /// The resources that a list names, of those that are filled in.
    fn named(&self, list: Option<&RawValue>) -> BTreeSet<&'r str> {
        let mut named = BTreeSet::new();
        if let Some(list) = list {
            members(list, |key, _| {
                let known = [&self.requests, &self.limits].into_iter().find_map(|all| all.get_key_value(key.name()));
                named.extend(known.map(|(name, _)| *name));
            });
        }
        named
    }
}

/// Whether an init container keeps running.
pub fn is_sidecar(container: &Container<'_>) -> bool {
    container.restart_policy.as_str() == "Always"
}

fn missing<'r>(firsts: &Firsts<'r>, is_there: impl Fn(&str) -> bool) -> Vec<(&'r str, &'r Quantity, &'r str)> {
    let missing = firsts.iter().filter(|(name, _)| !is_there(name));
    missing.map(|(name, (amount, by))| (*name, *amount, *by)).collect()
}

/// A list with more in it.
fn merged(out: &mut String, own: Option<&RawValue>, more: &[(&str, &Quantity, &str)]) {
    let mut object = ObjectWriter::begin(out);
    if let Some(own) = own {
        members(own, |key, value| object.copy(&key, value));
    }
    for (name, amount, _) in more {
        object.put(name, &quoted(&amount.to_string()));
    }
    object.end();
}
