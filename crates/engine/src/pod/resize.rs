//! Other requests and limits for the containers of a running pod, which the API server takes by the sub-resource `resize` alone.
//!
//! It refuses what would give the pod another class of quality of service, and pods of nodes that cannot resize
//! (`ValidatePodResize` in `k8s.io/kubernetes/pkg/apis/core/validation`). Both are found here first, so that the pod's condition has the
//! cause in plain words.

use std::collections::BTreeMap;

use admission::format::Quantity;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::List;
use crate::sidecarset::resources::set_amount;
use crate::sidecarset::sameness::amounts_as_stored;

/// The resources of which a container may have other amounts while it runs.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
/// Requests and limits, as fields.
const PARTS: [&str; 2] = ["limits", "requests"];

/// A container's new requests and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAmounts {
    /// The list in the pod's spec: `initContainers` or `containers`.
    pub list: &'static str,
    /// Name of the container.
    pub container: String,
    /// `limits` and `requests`, with the amounts that are others than before.
    pub resources: Value,
    /// The container restarts for it, as its `resizePolicy` says.
    pub restarts: bool,
}

impl NewAmounts {
    /// Those that a container of a pod needs so that it has what the set gives; nothing where it has that. What the set leaves open stays,
    /// and what cannot be resized is left to be found by comparing.
    pub(super) fn of(set: &CompiledSet, piece: &Piece, list: List, container: &Value) -> Option<Self> {
        let runs = list == List::Containers || piece.needs.is_native_sidecar;
        if !runs || set.allowed.field("resources") {
            return None;
        }
        let (ours, found) = (amounts_as_stored(&piece.object()), amounts_as_stored(container.as_object()?));
        let mut changed = RawObject::new();
        let mut names = Vec::new();
        for part in PARTS {
            let amount = |resources: &RawObject, name: &str| resources.get(part)?.get(name).cloned();
            for name in RESIZABLE {
                let Some(wanted) = amount(&ours, name).filter(|wanted| Some(wanted) != amount(&found, name).as_ref())
                else {
                    continue;
                };
                set_amount(&mut changed, part, name, wanted);
                names.push(name);
            }
        }
        let resources = changed.remove("resources")?;
        let policies = container.get("resizePolicy").and_then(Value::as_array).into_iter().flatten();
        let mut restarting = policies.filter(|policy| policy.get("restartPolicy") == Some(&json!("RestartContainer")));
        let restarts = restarting.any(|policy| {
            policy.get("resourceName").and_then(Value::as_str).is_some_and(|resource| names.contains(&resource))
        });
        Some(Self { list: list.field(), container: piece.name.clone(), resources, restarts })
    }

    /// Gives the container the amounts.
    pub(super) fn apply(&self, container: &mut RawObject) {
        for part in PARTS {
            let amounts = self.resources.get(part).and_then(Value::as_object).into_iter().flatten();
            amounts.for_each(|(name, amount)| set_amount(container, part, name, amount.clone()));
        }
    }
}

/// Why a pod cannot become `changed` while it runs, if it cannot. They differ in requests and limits of containers.
pub(super) fn why_not(pod: &Value, changed: &Value) -> Option<String> {
    if let Some(container) = first_running(pod).filter(|status| status.get("resources").is_none_or(Value::is_null)) {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        return Some(format!(
            "its requests and limits cannot change while it runs: its node does not report those of container {name:?} in the pod's status"
        ));
    }
    let (before, after) = (QosClass::of(pod), QosClass::of(changed));
    (before != after).then(|| {
        format!(
            "with other requests and limits the pod would be {after:?}, and its QoS class {before:?} may not change while it runs"
        )
    })
}

/// By which the API server sees whether the node can resize (`isPodResizeRequestSupported`).
fn first_running(pod: &Value) -> Option<&Value> {
    let mut statuses = pod.get("status")?.get("containerStatuses")?.as_array()?.iter();
    statuses.find(|status| status.get("state").and_then(|state| state.get("running")).is_some_and(Value::is_object))
}

/// A pod's class of quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QosClass {
    BestEffort,
    Burstable,
    Guaranteed,
}

impl QosClass {
    /// By the containers of a pod (`ComputePodQOS` in `k8s.io/kubernetes/pkg/apis/core/v1/helper/qos`). One with resources as a whole has
    /// its class by these alone, so that it stays whatever its containers get.
    fn of(pod: &Value) -> Self {
        let Some(spec) = pod.get("spec").filter(|spec| !has_amounts(spec)) else { return Self::Burstable };
        let (mut totals, mut are_all_limited) = ([BTreeMap::new(), BTreeMap::new()], true);
        let lists = ["containers", "initContainers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
        for container in lists.flatten().filter_map(Value::as_object) {
            let resources = amounts_as_stored(container);
            for (part, total) in PARTS.into_iter().zip(&mut totals) {
                let counted = RESIZABLE.into_iter().filter_map(|name| {
                    let amount = Quantity::deserialize(resources.get(part)?.get(name)?).ok()?;
                    (!amount.is_zero()).then_some((name, amount))
                });
                let mut found = 0;
                for (name, amount) in counted {
                    found += 1;
                    total.entry(name).or_insert(Quantity::ZERO).add(&amount);
                }
                are_all_limited &= part != "limits" || found == RESIZABLE.len();
            }
        }
        let [limits, requests] = totals;
        if limits.is_empty() && requests.is_empty() {
            Self::BestEffort
        } else if are_all_limited && limits == requests {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}

fn has_amounts(spec: &Value) -> bool {
    let amounts = |part| spec.get("resources").and_then(|resources| resources.get(part)?.as_object());
    PARTS.into_iter().filter_map(amounts).any(|amounts| !amounts.is_empty())
}
