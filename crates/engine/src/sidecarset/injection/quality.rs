//! The pod's class of quality of service, which decides when the kubelet pins CPUs and which pods it kills first
//! (`ComputePodQOS` in `k8s.io/kubernetes/pkg/apis/core/v1/helper/qos`).

use admission::format::Quantity;
use serde_json::value::RawValue;

use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::legality::amounts;
use crate::sidecarset::injection::{Injection, Missing};
use crate::sidecarset::needs::Needs;

/// The resources that the class follows from.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// A sentence where the pod is Guaranteed without what is missing of the set, and is not with it.
pub(super) fn warning<'s>(
    injection: &Injection<'_, 's>,
    set: &'s CompiledSet,
    missing: &Missing<'s>,
) -> Option<String> {
    let spoils = |needs: &Needs| !is_guaranteed(|name| (needs.requests.get(name), needs.limits.get(name)));
    let piece = missing.containers().find(|piece| spoils(&piece.needs))?;
    if injection.ours.spoils_guaranteed || !*injection.theirs.is_guaranteed.get_or_init(|| is_pod_guaranteed(injection))
    {
        return None;
    }
    Some(format!(
        "with SidecarSet {:?} the pod is no longer Guaranteed (its CPUs are not pinned): container {:?} lacks limits of cpu and \
         memory that equal its requests; write them, or spec.resourceDefaults",
        set.name, piece.name
    ))
}

fn is_guaranteed<'a>(amount: impl Fn(&str) -> (Option<&'a Quantity>, Option<&'a Quantity>)) -> bool {
    COUNTED.into_iter().all(|name| {
        let (request, limit) = amount(name);
        limit.is_some_and(|limit| !limit.is_zero()) && request == limit
    })
}

/// Whether the pod is Guaranteed as it came. One with resources as a whole has its class by these alone.
fn is_pod_guaranteed(injection: &Injection<'_, '_>) -> bool {
    let spec = &injection.pod.spec;
    let counted = COUNTED.into();
    if spec.resources.is_some_and(|raw| {
        let (requests, limits) = amounts(raw, &counted);
        !requests.is_empty() || !limits.is_empty()
    }) {
        return false;
    }
    let containers = || spec.init_containers().iter().chain(spec.containers());
    // Most pods have a container without limits, and a search is cheaper than reading quantities. Escapes can spell a key in many ways.
    let may_have_limits = |raw: &RawValue| raw.get().contains("limits") || raw.get().contains('\\');
    containers().next().is_some()
        && containers().all(|container| container.resources.is_some_and(may_have_limits))
        && containers().all(|container| {
            container.resources.is_some_and(|raw| {
                let (requests, limits) = amounts(raw, &counted);
                is_guaranteed(|name| (requests.get(name).or_else(|| limits.get(name)), limits.get(name)))
            })
        })
}
