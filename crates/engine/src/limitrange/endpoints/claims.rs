//! Claims.

use admission::registry::MatchCondition;
use admission::{Findings, ObjectLimit, Request, Unserved, Validating};

use super::pods::refuse;
use super::scope::concerned;
use crate::plugins::amounts::{Amounts, amounts};
use crate::plugins::forbidden;
use crate::plugins::pod_facts::PodFacts;
use crate::reasons;
use crate::snapshot::Snapshot;

/// What a claim asks for is changed by few updates: without us claims are bound and finalizers removed all the same.
pub const CONDITIONS: &[MatchCondition] = &[MatchCondition {
    name: concat!(api_domain!(), "/resources-change"),
    expression: "request.operation == 'CREATE' || (!has(oldObject.metadata.deletionTimestamp) && \
                 (has(object.spec.resources) ? [object.spec.resources] : []) != (has(oldObject.spec.resources) ? [oldObject.spec.resources] : []))",
}];

/// The endpoint.
pub struct ClaimValidation;

impl Validating<Snapshot> for ClaimValidation {
    /// What is read of a pod is where a claim has it as well.
    type Object<'a> = PodFacts<'a>;

    /// What is read of an object is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, PodFacts<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some((claim, old)) = findings.stored(request) else { return Ok(()) };
        let asked = requests(claim);
        if old.is_some_and(|old| old.metadata.deletion_timestamp.is_some() || requests(old) == asked) {
            return Ok(());
        }
        let mut concerned = concerned(snapshot, &request.namespace)?;
        findings.warnings.append(&mut concerned.warnings);
        concerned.ranges.retain(|range| range.bounds_claims());
        for range in concerned.ranges {
            request.deadline.check()?;
            findings.reason = reasons::ALLOWED;
            if let Some(why) = range.check_claim(&asked) {
                let name = claim.metadata.said_name(&request.name);
                refuse(&range.name, forbidden("persistentvolumeclaims", name, &why), request, findings);
                break;
            }
        }
        Ok(())
    }
}

fn requests(claim: &PodFacts<'_>) -> Amounts {
    amounts(claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests))
}
