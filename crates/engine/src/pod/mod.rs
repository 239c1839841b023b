//! Deciding on pods: a borrowed view, the rules that leave a pod alone, the pipeline, the legality of the result.
//!
//! Everything here is pure: bytes and a snapshot in, bytes out. No client, no clock, no lock, no await.

pub mod limits;
pub mod mutate;
pub mod older;
pub mod pairs;
pub mod positions;
pub mod select;
pub mod skip;
pub mod validate;
pub mod view;
pub mod volumes;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;

use admission::registry::{MatchPolicy, Rule, Scope};
use admission::{Operation, Registry};

use crate::snapshot::Snapshot;

const RULE: Rule = Rule {
    group: "",
    version: "v1",
    kind: "Pod",
    resource: "pods",
    scope: Scope::Namespaced,
    operations: &[Operation::Create],
    match_policy: MatchPolicy::Equivalent,
    name: "pod.outrider.dev",
};

/// Adds the endpoints `/mutate--v1-pod` and `/validate--v1-pod`.
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.mutating(RULE, mutate::PodMutation).validating(RULE, validate::PodValidation)
}
