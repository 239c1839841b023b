//! `ExtendedResourceToleration`: who asks for an extended resource tolerates the taint of its nodes.

use std::borrow::Cow;
use std::collections::HashSet;

use super::change::{List, PodChange, Tolerations};
use super::pod_facts::{Resources, Spec};
use super::toleration::{EXISTS, NO_SCHEDULE, Tolerated, Toleration};
use crate::pod::limits;
use crate::resource_name::is_extended;

/// What is to be changed in a pod that is new, or changed: tolerations are only added, one more at most than a pod may have, by which one
/// sees that they are too many.
pub fn change<'a>(spec: &Spec<'a>) -> PodChange<'a> {
    let mut resources: Vec<Cow<'a, str>> = Vec::new();
    for container in [List::Containers, List::Init].into_iter().flat_map(|list| spec.list(list)) {
        // The API server makes requests of limits that have none, and has not done so yet for containers that were just added.
        let lists = container.resources.iter().flat_map(Resources::lists);
        for list in lists.flatten() {
            admission::raw::members(list, |key, _| {
                // Those of Kubernetes' own have no domain. Many containers may ask for the same, which is checked once.
                if key.name().contains('/') {
                    resources.push(key.into_name());
                }
            });
        }
    }
    resources.sort_unstable();
    resources.dedup();
    resources.retain(|resource| is_extended(resource));
    if resources.is_empty() {
        return PodChange::default();
    }
    let present: HashSet<[&str; 4]> = spec.tolerations().iter().map(|one| parts(&one.toleration)).collect();
    let missing: Vec<Tolerated<'a>> = resources
        .into_iter()
        .filter(|resource| present.is_empty() || !present.contains(&[resource, EXISTS, "", NO_SCHEDULE]))
        .take(limits::TOLERATIONS + 1)
        .map(|resource| Toleration::exists(resource, NO_SCHEDULE, None).into())
        .collect();
    PodChange { tolerations: Tolerations::Added(missing), ..PodChange::default() }
}

/// By which tolerations are one (`MatchToleration` of k8s.io/api/core/v1).
fn parts<'t>(one: &'t Toleration<'_>) -> [&'t str; 4] {
    [&one.key, &one.operator, &one.value, &one.effect]
}
