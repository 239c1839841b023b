//! Profiles on pods: the stage of new ones, and the endpoint for those that change.

mod stage;
mod update;

pub use self::stage::PodSecurityProfiles;

use std::sync::Arc;

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Phase, Registry, Resource, Rule};
use admission::reply::Count;
use admission::{Denial, Operation, Reason, Request, Unserved};

use super::choose::{Case, Choice, choose};
use super::compiled::CompiledProfile;
use super::judge::FilledIn;
use super::pod::Pod;
use crate::demand::Demand;
use crate::plugins::forbidden;
use crate::pod::PODS;
use crate::reasons;
use crate::snapshot::Snapshot;
use crate::snapshot::scope;

/// Key of the audit annotation with the profile that decided: `<object>=<reason code>`.
pub const AUDIT: &str = "profile";

/// The name of the API server's plugin, in metrics.
const PLUGIN: &str = "PodSecurityPolicy";

const EPHEMERAL_CONTAINERS: &[Resource] =
    &[Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" }];

/// Labels, annotations and finalizers are no matter, and must not depend on us.
const SPEC_CHANGES: MatchCondition =
    MatchCondition { name: concat!(api_domain!(), "/spec-changes"), expression: "object.spec != oldObject.spec" };

/// Pods that change.
const UPDATES: Rule = rule(concat!("podsecurityprofiles.policy.", api_domain!()), PODS);
/// Ephemeral containers.
const EPHEMERAL: Rule =
    rule(concat!("podsecurityprofiles-ephemeralcontainers.policy.", api_domain!()), EPHEMERAL_CONTAINERS);

const fn rule(name: &'static str, resources: &'static [Resource]) -> Rule {
    Rule {
        suffix: "podsecurityprofiles",
        failure_policy: FailurePolicy::Chosen,
        namespaces: Namespaces::NotExcluded,
        on_demand: true,
        match_conditions: &[SPEC_CHANGES],
        ..Rule::new(name, resources, &[Operation::Update])
    }
}

/// Adds the endpoints beside that of new pods.
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(UPDATES, update::UpdateValidation).validating(EPHEMERAL, update::UpdateValidation)
}

/// The entries that profiles need beside that of new pods.
pub fn demands(snapshot: &Snapshot) -> Vec<Demand> {
    let mut profiles = snapshot.security_profiles.iter();
    let Some(first) = profiles.next() else { return Vec::new() };
    let namespaces = first.namespaces.clone().filter(|_| profiles.all(|other| other.namespaces == first.namespaces));
    let demand = |rule| Demand { namespaces: namespaces.clone(), ..Demand::of(Phase::Validating, rule) };
    [UPDATES, EPHEMERAL].map(demand).into()
}

type Concerned<'s> = scope::Concerned<'s, CompiledProfile>;

/// The profiles of a namespace.
fn concerned<'s>(snapshot: &'s Snapshot, namespace: &str) -> Result<Concerned<'s>, Unserved> {
    scope::concerned(snapshot, namespace, snapshot.security_profiles.iter())
}

/// What came of a pod.
struct Decided {
    /// The profile that allows it and what it fills in, or why it is refused.
    result: Result<(String, FilledIn), (Reason, Denial)>,
    /// What the audit log gets.
    audit: Option<String>,
    count: Count,
}

/// Decides on a pod.
fn decide<O>(
    pod: &Pod<'_>,
    profiles: &[&Arc<CompiledProfile>],
    may_change: bool,
    request: &Request<'_, O>,
) -> Result<Decided, Unserved> {
    let count = |verdict| Count { by: PLUGIN, mode: "Enforce", verdict };
    Ok(match choose(Case { pod, profiles, may_change }, request)? {
        Choice::Allowed { profile, change } => {
            let code = if may_change { reasons::PLUGIN_CHANGED } else { reasons::ALLOWED };
            let verdict = if may_change { "changed" } else { "allowed" };
            Decided {
                audit: Some(format!("{profile}={}", code.as_str())),
                result: Ok((profile, change)),
                count: count(verdict),
            }
        }
        Choice::Refused(text) => {
            let message = forbidden("pods", pod.said_name(&request.name), &text);
            let refusal = (reasons::PLUGIN_DENIED, Denial::forbidden(request, message));
            Decided { result: Err(refusal), audit: None, count: count("denied") }
        }
        Choice::TooLarge => {
            let message = "the pod is too large: with what a PodSecurityProfile fills in, it holds more than any API server stores; make it smaller";
            let refusal = (Reason::TOO_LARGE, Denial::too_large(message));
            Decided { result: Err(refusal), audit: None, count: count("denied") }
        }
    })
}
