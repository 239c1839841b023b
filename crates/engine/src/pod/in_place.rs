//! How a running pod takes the current form of a set that it carries: by new images, requests, limits and annotations, or not at all.
//!
//! Of a container in a running pod the API server lets only the image change, and cpu and memory by a sub-resource. So the pod is given
//! these as the set has them, and then judged as a new one would be: what it differs in beyond these only a new pod can take.

use std::collections::BTreeSet;

use admission::Unserved;
use serde_json::Value;

use crate::pod::decoded::Decoded;
use crate::pod::hot_upgrade::HotUpgrade;
use crate::pod::older_amounts::left_over;
use crate::pod::resize::{self, NewAmounts};
use crate::pod::select::{Fitted, Selection, fitted, injection, selected};
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::hot_upgrade;
use crate::sidecarset::injection::{AmountsSource, INJECTED_ANNOTATION, Injection, List};
use crate::sidecarset::resources::OwnDefaults;
use crate::sidecarset::sameness::is_image_of;
use crate::snapshot::Snapshot;

/// What rollouts write down of a pod that they change: what its containers were before. A new pod has none.
pub const STATE_ANNOTATION: &str = "outrider.dev/sidecarset-inplace-update-state";

/// Before this minor version a kubelet does not restart a native sidecar whose image changes: nothing would come of the change, and the
/// rollout would wait for ever. Nodes may be older than the API server, which is all that is known here.
const RESTARTS_NATIVE_SIDECARS: u32 = 32;

/// What has to change in a pod so that it carries the current form of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InPlace {
    /// This, and the pod runs on meanwhile.
    Change(Change),
    /// Something that only a new pod can take; what it is.
    NewPodOnly(String),
    /// None: `OpenKruise` put the set there.
    OpenKruise,
}

/// A change of a running pod. Empty for one that carries the set's current form and records it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Containers that get another image, which restarts them.
    pub images: Vec<NewImage>,
    /// Containers that get other requests and limits.
    pub resources: Vec<NewAmounts>,
    /// Annotations with their new values, the record [`INJECTED_ANNOTATION`] among them.
    pub annotations: Vec<(String, String)>,
    /// Containers that have their new image, now or before, and take over from others once they serve: the change is half of a hot
    /// upgrade, and [`hand_over`] is the other half.
    pub hand_over: BTreeSet<String>,
}

impl Change {
    /// Whether nothing is to be changed.
    pub const fn is_empty(&self) -> bool {
        self.images.is_empty() && self.resources.is_empty() && self.annotations.is_empty()
    }

    /// Whether a container restarts for it.
    pub fn restarts(&self) -> bool {
        !self.images.is_empty() || self.resources.iter().any(|new| new.restarts)
    }
}

/// A container's new image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImage {
    /// The list in the pod's spec: `initContainers` or `containers`.
    pub list: &'static str,
    /// Name of the container.
    pub container: String,
    /// The image that the container is to run, as the set writes it.
    pub image: String,
}

/// How a pod of this namespace takes the current form of the set of this name.
///
/// # Errors
/// [`Unserved`] when it cannot be decided which sets select the pod.
pub fn in_place(pod: &Value, namespace: &str, set: &str, snapshot: &Snapshot) -> Result<InPlace, Unserved> {
    // What the set has for this pod may depend on the pod.
    let change = with_set(pod, namespace, set, snapshot, |injection, compiled| {
        if injection.carried().has(&compiled.name) {
            let change = containers_of(pod, compiled, &injection, snapshot.resizes_pods)?;
            return without_effect(&change, snapshot.minor_version).map_or(Ok(Some(change)), Err);
        } else if compiled.may_opt_out && injection.carried().is_by_openkruise(&compiled.name) {
            // Of a must anybody could write it to keep the set as it is: as at admission, it counts for nothing.
            return Ok(None);
        }
        Err(format!("the pod has no record of the set in its annotation {INJECTED_ANNOTATION}"))
    })?;
    let change = match change {
        Ok(Some(change)) => change,
        Ok(None) => return Ok(InPlace::OpenKruise),
        Err(why) => return Ok(InPlace::NewPodOnly(why)),
    };
    let mut changed = pod.clone();
    for new in &change.images {
        for container in containers_named(&mut changed, new.list, &new.container) {
            container.insert("image".to_owned(), new.image.as_str().into());
        }
    }
    for new in &change.resources {
        containers_named(&mut changed, new.list, &new.container).for_each(|container| new.apply(container));
    }
    let annotations = with_set(&changed, namespace, set, snapshot, |mut injection, compiled| {
        let missing = injection.examine(compiled).map_err(|clash| clash.text)?;
        if missing.is_by_openkruise() {
            return Ok(None);
        }
        let is_older = injection.carried().has_older(compiled);
        let of_older_form = || {
            let hash = injection.carried().hash_of(&compiled.name).filter(|_| is_older)?;
            injection.differing_in_app(compiled).or_else(|| left_over(&changed, compiled, hash, snapshot))
        };
        let no_resize = || if change.resources.is_empty() { None } else { resize::why_not(pod, &changed) };
        if let Some(why) = missing.for_new_pods_only().or_else(of_older_form).or_else(no_resize) {
            return Err(why);
        }
        injection.add_missing(compiled, missing);
        let annotations = injection.annotations_of(compiled);
        // Of a set without containers there is nothing in the pod to compare with.
        if is_older && annotations.is_empty() {
            return Err("whether the pod has the current form cannot be read from it".to_owned());
        }
        Ok(Some(annotations))
    })?;
    Ok(match annotations {
        Ok(Some(annotations)) => {
            let annotations = change.annotations.into_iter().chain(annotations).collect();
            InPlace::Change(Change { annotations, ..change })
        }
        Ok(None) => InPlace::OpenKruise,
        Err(why) => InPlace::NewPodOnly(why),
    })
}

/// The second half of a hot upgrade: the containers of the set that were `started`, and serve by now, take over from the others of
/// their pairs. Empty where nothing is left to do. None where the pod is left as it is: as the set does not select it any more, or as it
/// has an older form of a must, into which only the current form may come.
///
/// # Errors
/// [`Unserved`] when it cannot be decided which sets select the pod.
pub fn hand_over(
    pod: &Value,
    namespace: &str,
    set: &str,
    started: &BTreeSet<String>,
    snapshot: &Snapshot,
) -> Result<Option<Change>, Unserved> {
    let change = with_set(pod, namespace, set, snapshot, |injection, compiled| {
        let is_older = injection.carried().has_older(compiled);
        let listed: BTreeSet<&str> = injection.carried().containers(&compiled.name).map(|(_, name)| name).collect();
        let started = started.iter().filter(|name| listed.contains(name.as_str())).cloned().collect();
        if is_older && compiled.is_must() {
            return Err("the pod has an older form".to_owned());
        }
        Ok(HotUpgrade::of(pod).handed_over(compiled, &started))
    })?;
    Ok(change.ok())
}

/// Calls `f` with the pod and the set as the pod gets it; says why it gets none.
fn with_set<T>(
    pod: &Value,
    namespace: &str,
    set: &str,
    snapshot: &Snapshot,
    f: impl for<'p, 's> FnOnce(Injection<'p, 's>, &'s CompiledSet) -> Result<T, String>,
) -> Result<Result<T, String>, Unserved> {
    let text = pod.to_string();
    let Ok(view) = serde_json::from_str::<Decoded<PodView<'_>>>(&text) else {
        return Ok(Err("the pod cannot be read".to_owned()));
    };
    let (Ok(mut all), Ok(view)) = (selected(&view, namespace, snapshot)?, view.whole()) else {
        return Ok(Err("the pod is too large".to_owned()));
    };
    for (candidate, selection) in &mut all {
        // Whether new pods are injected is another question.
        if candidate.name == set && matches!(selection, Selection::Skipped(reason, _) if *reason == reasons::SET_PAUSED)
        {
            *selection = Selection::Selected;
        }
    }
    let amounts = (AmountsSource::Computed(OwnDefaults::default()), Some(view));
    let Fitted { sets, selections, .. } = fitted(view, &text, all, amounts, snapshot);
    let found = sets.iter().zip(&selections).find(|(candidate, _)| candidate.name == set);
    let Some((compiled, selection)) = found else {
        return Ok(Err("the set does not select the pod".to_owned()));
    };
    Ok(match selection {
        Selection::Selected => {
            let mut injection = injection(view, &text, &sets, &selections);
            // As at creation: what an earlier set of the pod does to its annotations, a later one does not undo.
            for earlier in sets.iter().take_while(|candidate| candidate.name != set) {
                if injection.carried().has(&earlier.name) {
                    injection.claim(earlier);
                }
            }
            f(injection, compiled)
        }
        Selection::Skipped(_, why) => Err(why.clone()),
        Selection::Unfit(clash) => Err(clash.text.clone()),
        Selection::Unbound => Err("the pod does not say that it runs on the set's operating system".to_owned()),
    })
}

/// The images, requests and limits that containers of the set in the pod have to get. A container that the record does not list is left
/// alone.
fn containers_of(
    pod: &Value,
    set: &CompiledSet,
    injection: &Injection<'_, '_>,
    resizes: bool,
) -> Result<Change, String> {
    let recorded = injection.carried().containers(&set.name);
    let listed: BTreeSet<(&str, &str)> = recorded.map(|(list, name)| (list.field(), name)).collect();
    let in_pairs: BTreeSet<String> = set.pairs.iter().flat_map(|pair| hot_upgrade::names(&pair.name)).collect();
    let mut change = HotUpgrade::of(pod).begun(set);
    for list in [List::InitContainers, List::Containers] {
        for piece in set.pieces_of(list).iter() {
            let name = piece.name.as_str();
            let Some(now) = container(pod, list, name) else {
                return Err(format!("container {name:?} is missing"));
            };
            if !listed.contains(&(list.field(), name)) {
                return Err(format!("container {name:?} is not the set's, as the pod's record says"));
            }
            change.resources.extend(NewAmounts::of(set, piece, list, now).filter(|_| resizes));
            let image = now.get("image").and_then(Value::as_str).unwrap_or_default();
            if in_pairs.contains(name) || is_image_of(&piece.image, image, &set.allowed) {
                continue;
            }
            if list == List::InitContainers && !piece.needs.is_native_sidecar {
                return Err(format!("init container {name:?} has run already"));
            }
            change.images.push(NewImage { list: list.field(), container: name.to_owned(), image: piece.image.clone() });
        }
    }
    Ok(change)
}

/// Why a kubelet as old as the API server would not carry out the change.
fn without_effect(change: &Change, minor_version: Option<u32>) -> Option<String> {
    let minor = minor_version.filter(|minor| *minor < RESTARTS_NATIVE_SIDECARS)?;
    let native = change.images.iter().find(|new| new.list == List::InitContainers.field())?;
    Some(format!("Kubernetes 1.{minor} does not restart the native sidecar {:?} for another image", native.container))
}

fn container<'v>(pod: &'v Value, list: List, name: &str) -> Option<&'v Value> {
    let containers = pod.get("spec")?.get(list.field())?.as_array()?;
    containers.iter().find(|container| container.get("name").and_then(Value::as_str) == Some(name))
}

fn containers_named<'v>(pod: &'v mut Value, list: &str, name: &str) -> impl Iterator<Item = &'v mut RawObject> {
    let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
    let containers = containers.into_iter().flatten().filter_map(Value::as_object_mut);
    containers.filter(move |container| container.get("name").and_then(Value::as_str) == Some(name))
}
