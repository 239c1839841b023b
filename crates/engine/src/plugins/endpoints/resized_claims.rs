//! Claims that grow, under `PersistentVolumeClaimResize`.

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::entries::Group;
use super::report::Report;
use super::scope::{binds, cannot_tell, concerned, refuse_unread};
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::persistent_volume_claim_resize::{Resize, SizedFacts};
use crate::plugins::{Plugin, forbidden};
use crate::pod::decoded::Decoded;
use crate::pod::limits::object_too_large;
use crate::reasons;
use crate::snapshot::Snapshot;

const CLAIMS: &[Resource] =
    &[Resource { group: "", version: "v1", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" }];

/// What a claim asks for is changed by few updates: without us claims are bound and finalizers removed all the same.
const RESIZES: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/resources-change"),
    expression: "has(object.spec.resources) && (!has(oldObject.spec.resources) || object.spec.resources != oldObject.spec.resources)",
};

/// Changes of what a claim asks for.
pub const RULE: Rule = Rule {
    suffix: "persistentvolumeclaimresize",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[RESIZES],
    ..Rule::new(concat!("persistentvolumeclaimresize.policy.", api_domain!()), CLAIMS, &[Operation::Update])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "persistentvolumeclaimresize-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("persistentvolumeclaimresize-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct ClaimResizeValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for ClaimResizeValidation {
    type Object<'a> = Decoded<SizedFacts<'a>>;

    /// What is read of an object is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<SizedFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some((new, Some(old))) = findings.stored(request) else { return Ok(()) };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::PersistentVolumeClaimResize, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        findings.warnings.extend(concerned.warnings);
        if concerned.plugins.is_empty() {
            return Ok(());
        }
        let (new, old) = match (new.whole(), old.whole()) {
            (Ok(new), Ok(old)) => (new, old),
            (Err(exceeded), _) | (_, Err(exceeded)) => {
                refuse_unread(&concerned.plugins, object_too_large(exceeded), findings);
                return Ok(());
            }
        };
        let resize = Resize::of(new, old);
        if matches!(resize, Resize::ByClass(_))
            && let Some(why) = snapshot.storage_classes.unknown(snapshot.namespaces_may_appear)
        {
            // Who is exempt, or only reports, keeps no claim waiting.
            if snapshot.namespaces_may_appear && binds(&concerned.plugins) {
                return Err(Unserved::NotReady(why.to_owned()));
            }
            findings.warnings.extend(cannot_tell(&concerned.plugins, why));
            return Ok(());
        }
        let name = new.said_name(&request.name);
        let found = resize.check(&snapshot.storage_classes);
        let found = found.map_err(|why| forbidden("persistentvolumeclaims", name, why));
        let mut report = Report::default();
        report.judge(concerned.plugins, request, |_| Ok(found.clone()))?;
        report.finish(findings);
        Ok(())
    }
}
