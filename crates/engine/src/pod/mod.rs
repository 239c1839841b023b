//! Deciding on pods: a borrowed view, the rules that leave a pod alone, the pipeline, the legality of the result.
//!
//! Everything here is pure: bytes and a snapshot in, bytes out. No client, no clock, no lock, no await.

pub mod after_creation;
pub mod anew;
pub mod borrowed_map;
pub mod decoded;
pub mod explain;
mod hot_upgrade;
pub mod in_place;
pub mod limits;
pub mod mutate;
pub mod older;
mod older_amounts;
pub mod owners;
pub mod positions;
pub mod resize;
pub mod select;
pub mod skip;
pub mod stages;
pub mod validate;
pub mod view;
pub mod volumes;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;

use admission::registry::{FailurePolicy, Namespaces, Resource, Rule};
use admission::{Operation, Registry};

use self::stages::Stages;
use crate::snapshot::Snapshot;

/// The resource of pods.
pub const PODS: &[Resource] = &[Resource { group: "", version: "v1", resource: "pods", kind: "Pod" }];

/// Name of the entries for new pods.
pub const ENTRY: &str = concat!("pod.", api_domain!());

/// They are what keeps a cluster alive, so namespaces are excluded, and the administrator chooses what happens to them when
/// no replica answers.
const RULE: Rule = Rule {
    failure_policy: FailurePolicy::Chosen,
    namespaces: Namespaces::NotExcluded,
    definitions: &[concat!("sidecarsets.apps.", api_domain!())],
    ..Rule::new(ENTRY, PODS, &[Operation::Create])
};

/// Adds the endpoints `/mutate--v1-pod` and `/validate--v1-pod`: sets, and then these stages.
pub fn register(registry: Registry<Snapshot>, stages: Stages) -> Registry<Snapshot> {
    registry
        .mutating(RULE, mutate::PodMutation { stages: stages.clone() })
        .validating(RULE, validate::PodValidation { stages })
        .validating(after_creation::RULE, after_creation::PodUpdateValidation)
}
