//! Claims.

use admission::registry::MatchCondition;
use admission::{Findings, ObjectLimit, Reason, Request, Unserved, Validating};

use super::pods::{refuse, usage};
use super::scope::concerned;
use crate::limitrange::bounds::Usage;
use crate::limitrange::compiled::CompiledRange;
use crate::limitrange::judgement::Judgement;
use crate::plugins::endpoints::pods::staying;
use crate::plugins::forbidden;
use crate::plugins::pod_facts::PodFacts;
use crate::pod::decoded::Decoded;
use crate::pod::limits;
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
    type Object<'a> = Decoded<PodFacts<'a>>;

    /// What is read of an object is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        let Some((claim, old)) = staying(request, findings) else { return Ok(()) };
        if old.is_some() && limits::keeps(request.body, &["spec", "resources"]) {
            return Ok(());
        }
        let concerned = concerned(snapshot, &request.namespace, CompiledRange::bounds_claims)?;
        if concerned.objects.is_empty() && concerned.warnings.is_empty() {
            return Ok(());
        }
        let claim = match claim.whole() {
            Ok(claim) => claim,
            Err(exceeded) => {
                findings.denial = Some((Reason::TOO_LARGE, limits::object_too_large(exceeded)));
                return Ok(());
            }
        };
        let asked = of_claim(claim);
        // One that was too large asked for something else.
        let old = old.and_then(|old| old.whole().ok());
        if old.is_some_and(|old| of_claim(old).requests == asked.requests) {
            return Ok(());
        }
        findings.warnings.extend(concerned.warnings);
        if concerned.objects.is_empty() {
            return Ok(());
        }
        findings.reason = reasons::ALLOWED;
        if let Some(refusal) = Judgement::of(&concerned.objects).of_claim(&asked) {
            let name = claim.metadata.said_name(&request.name);
            let message = forbidden("persistentvolumeclaims", name, &refusal.text);
            refuse(refusal.by, message, request, findings);
        }
        Ok(())
    }
}

fn of_claim(claim: &PodFacts<'_>) -> Usage {
    usage(claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()), |_| true)
}
