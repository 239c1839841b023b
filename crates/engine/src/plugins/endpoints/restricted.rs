//! Nodes and pods that a kubelet changes, under `NodeRestriction`.

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule, Scope};
use admission::{Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::report::Report;
use super::scope::concerned_anywhere;
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::node_restriction::{RestrictedFacts, check_node, check_pod, node_of};
use crate::plugins::{Plugin, forbidden};
use crate::reasons;
use crate::snapshot::Snapshot;

/// Not `nodes/status` or leases, by which a node says that it lives, and not `pods/status`, which kubelets write all the time.
const RESTRICTED: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "nodes", kind: "Node" },
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
];

/// Everybody else is left alone.
const KUBELETS: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/kubelets"),
    expression: "has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups",
};

/// The rule. A kubelet waits for it, and the node may be the one that runs Outrider, so it never fails, and ends soon.
pub const RULE: Rule = Rule {
    suffix: "noderestriction",
    scope: Scope::Any,
    failure_policy: FailurePolicy::Ignore,
    timeout_seconds: 2,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[KUBELETS],
    ..Rule::new(
        concat!("noderestriction.policy.", api_domain!()),
        RESTRICTED,
        &[Operation::Create, Operation::Update, Operation::Delete],
    )
};

/// The endpoint.
pub struct RestrictedValidation;

impl Validating<Snapshot> for RestrictedValidation {
    type Object<'a> = RestrictedFacts<'a>;

    /// Of an object only labels are kept, where a kubelet may not set them.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, RestrictedFacts<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some(node) = node_of(&request.user_info).filter(|_| request.sub_resource.is_empty()) else { return Ok(()) };
        let old = request.old_object.as_ref();
        let (new, old) = match request.operation {
            Operation::Delete if old.is_none() => {
                findings.lacks("oldObject", request);
                return Ok(());
            }
            Operation::Delete => (None, old),
            _ => match findings.stored(request) {
                Some((new, old)) => (Some(new), old),
                None => return Ok(()),
            },
        };
        let chosen = |one: &CompiledPlugin| one.plugin == Plugin::NodeRestriction;
        let concerned = concerned_anywhere(snapshot, &request.namespace, &request.user_info, chosen)?;
        findings.warnings.extend(concerned.warnings);
        let name = new.or(old).map_or("", |object| object.said_name(&request.name));
        let is_node = request.resource.resource.as_str() == "nodes" || request.kind.kind.as_str() == "Node";
        let found = match (node.is_empty(), is_node) {
            (true, _) => Err(format!("could not determine node from user {:?}", request.user_info.username.as_str())),
            (false, true) => check_node(node, (name, request.operation), new, old),
            (false, false) => check_pod(node, request.operation, new, old),
        };
        let resource = if is_node { "nodes" } else { "pods" };
        let found = found.map_err(|why| forbidden(resource, name, &why));
        let mut report = Report::default();
        report.judge(concerned.plugins, request, |_| Ok(found.clone()))?;
        report.finish(findings);
        Ok(())
    }
}
