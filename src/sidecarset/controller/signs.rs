//! What pods show of evictions: of those that this leader has asked for, and of those of earlier ones.

use std::collections::HashSet;

use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::workload::TEMPLATE_HASH_LABEL;

use crate::sidecarset::controller::memory::OVERDUE_AFTER;
use crate::sidecarset::controller::pods::PodIndex;
use crate::sidecarset::controller::record::PodRecord;

/// Whether the pod serves, with the containers that it asks for.
pub fn serves(pod: &PodRecord) -> bool {
    pod.active && pod.ready && pod.unsettled.is_empty()
}

/// Whether the pods of the workload are of two templates: its controller is replacing them itself, and which of its new pods are in the
/// place of evicted ones could not be found out.
pub fn is_rolling(pods: &PodIndex, owner: u64) -> bool {
    let active = pods.of_workload(owner).filter(|(_, pod)| pod.active);
    let mut templates = active.filter_map(|(_, pod)| template(pod));
    let first = templates.next();
    templates.any(|other| Some(other) != first)
}

fn template(pod: &PodRecord) -> Option<&str> {
    pod.labels.iter().find_map(|(key, value)| (key == TEMPLATE_HASH_LABEL).then_some(value))
}

/// Whether the pod of a workload ends that cannot have the set's form.
pub fn is_ending(set: &CompiledSet, pod: &PodRecord) -> bool {
    let lacks_it = || pod.is_refused_others && pod.hash_of(&set.name).is_none() && set.selector.matches(&pod.labels);
    pod.is_terminating && pod.facts.owner != 0 && (pod.is_refused(&set.name) || lacks_it())
}

/// Whether a workload replaces the pod when it is evicted.
pub const fn is_replaced(pod: &PodRecord) -> bool {
    pod.facts.owner != 0 && !pod.facts.ends
}

/// Whether pods that an earlier leader may have evicted for the set end, or new ones do not serve yet that may be in the place of some: of
/// its form, or whatever they have of a workload with pods that cannot have it.
pub fn is_awaited(set: &CompiledSet, pods: &PodIndex) -> bool {
    let is_new =
        |pod: &PodRecord| pod.active && is_replaced(pod) && !serves(pod) && !pod.facts.is_older_than(OVERDUE_AFTER);
    let mut owners = HashSet::new();
    for (_, pod) in pods.carrying_or_ending(&set.name) {
        if is_ending(set, pod) || (is_new(pod) && pod.hash_of(&set.name) == Some(&*set.hash)) {
            return true;
        }
        if pod.facts.owner != 0 && pod.is_refused(&set.name) {
            owners.insert(pod.facts.owner);
        }
    }
    owners.into_iter().any(|owner| pods.of_workload(owner).any(|(_, pod)| is_new(pod)))
}
