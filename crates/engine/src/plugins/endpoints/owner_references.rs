//! Objects of any kind under `OwnerReferencesPermissionEnforcement`.

use std::sync::Arc;

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule, Scope};
use admission::{Denial, Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::entries::Group;
use super::report::Report;
use super::scope::{binds, cannot_tell, concerned_anywhere, refuse_unread};
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::plugins::owner_references::{OwnedFacts, REFERENCES, is_left_alone, judge};
use crate::reasons;
use crate::snapshot::Snapshot;

/// Sub-resources as well: owners can be changed through some of them.
const EVERYTHING: &[Resource] = &[Resource { group: "*", version: "*", resource: "*/*", kind: "*" }];

/// Conditions without which every write in the cluster would be a call, and the cluster could not start again without us. The lists
/// are those of [`crate::plugins::owner_references`].
const CONDITIONS: &[MatchCondition] = &[
    MatchCondition {
        name: concat!(api_domain!(), "/left-alone"),
        expression: concat!(
            "!((request.resource.group + '/' + request.resource.resource) in ['/events', \
             'authentication.k8s.io/selfsubjectreviews', 'authentication.k8s.io/tokenreviews', \
             'authorization.k8s.io/localsubjectaccessreviews', 'authorization.k8s.io/selfsubjectaccessreviews', \
             'authorization.k8s.io/selfsubjectrulesreviews', 'authorization.k8s.io/subjectaccessreviews', \
             'coordination.k8s.io/leases', 'discovery.k8s.io/endpointslices', 'events.k8s.io/events', 'policy.",
            api_domain!(),
            "/admissionplugins']) && !(request.resource.group == '' && request.resource.resource == 'nodes' && \
             has(request.subResource) && request.subResource == 'status')"
        ),
    },
    MatchCondition {
        name: concat!(api_domain!(), "/control-plane"),
        expression: "!(request.userInfo.username in ['system:kube-controller-manager', 'system:kube-scheduler', \
                     'system:apiserver']) && (!has(request.userInfo.groups) || !request.userInfo.groups.exists(group, \
                     group in ['system:masters', 'system:serviceaccounts:kube-system']))",
    },
    // A new object needs a right only for owners that it blocks.
    MatchCondition {
        name: concat!(api_domain!(), "/owners-change"),
        expression: "object != null && has(object.metadata) && (request.operation == 'CREATE' ? \
                     (has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, \
                     has(owner.blockOwnerDeletion) && owner.blockOwnerDeletion == true)) : \
                     ((has(object.metadata.ownerReferences) ? object.metadata.ownerReferences : []) != \
                     (oldObject != null && has(oldObject.metadata) && has(oldObject.metadata.ownerReferences) ? \
                     oldObject.metadata.ownerReferences : [])))",
    },
];

/// Objects of every kind whose owners change, or that are created with an owner whose deletion they block.
pub const RULE: Rule = Rule {
    suffix: "ownerreferences",
    scope: Scope::Any,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: CONDITIONS,
    ..Rule::new(
        concat!("ownerreferencespermissionenforcement.policy.", api_domain!()),
        EVERYTHING,
        &[Operation::Create, Operation::Update],
    )
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "ownerreferences-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("ownerreferencespermissionenforcement-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct OwnerValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for OwnerValidation {
    type Object<'a> = OwnedFacts<'a>;

    /// What is read of an object is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, OwnedFacts<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        if is_left_alone(&request.resource, &request.sub_resource, &request.user_info) {
            return Ok(());
        }
        let Some((new, old)) = findings.stored(request) else { return Ok(()) };
        let plugins = plugins(self.group, request, snapshot, findings)?;
        if plugins.is_empty() {
            return Ok(());
        }
        if new.metadata.owner_references.len() > REFERENCES {
            let message =
                format!("metadata.ownerReferences holds more than {REFERENCES} owners, which no API server stores");
            refuse_unread(&plugins, Denial::too_large(message), findings);
            return Ok(());
        }
        // For a user who is exempt from all of them there is nothing to ask.
        let judged = if plugins.iter().all(|(_, is_exempt)| *is_exempt) {
            Ok(())
        } else {
            match judge(request, new, old) {
                // Who only reports keeps no request from being stored.
                Err(Unserved::Unanswered(_)) if request.has_final_answers() && !binds(&plugins) => {
                    findings.warnings.extend(cannot_tell(&plugins, "the API server did not answer the request"));
                    return Ok(());
                }
                judged => judged?,
            }
        };
        let mut report = Report::default();
        report.judge(plugins, request, |_| Ok(judged.clone()))?;
        report.finish(findings);
        Ok(())
    }
}

/// The plugins that the request concerns.
fn plugins<'s>(
    group: Group,
    request: &Request<'_, OwnedFacts<'_>>,
    snapshot: &'s Snapshot,
    findings: &mut Findings,
) -> Result<Vec<(&'s Arc<CompiledPlugin>, bool)>, Unserved> {
    let chosen = |one: &CompiledPlugin| match &one.settings {
        Settings::OwnerReferences(settings) => {
            group.has(one, one.plugin, snapshot) && settings.covers(&request.resource)
        }
        _ => false,
    };
    let concerned = concerned_anywhere(snapshot, &request.namespace, &request.user_info, chosen)?;
    findings.warnings.extend(concerned.warnings);
    Ok(concerned.plugins)
}
