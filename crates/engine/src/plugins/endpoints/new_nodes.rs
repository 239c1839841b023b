//! New nodes under `TaintNodesByCondition`.

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule, Scope};
use admission::{Mutating, Operation, PatchWriter, Request, Unserved, Verdict};

use super::report::Report;
use super::scope::concerned_anywhere;
use crate::plugins::Plugin;
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::taint_nodes_by_condition::{EFFECT, KEY, NewNodeFacts, change};
use crate::reasons;
use crate::snapshot::Snapshot;

/// Not `nodes/status`, by which a node says that it lives.
const NODES: &[Resource] = &[Resource { group: "", version: "v1", resource: "nodes", kind: "Node" }];

/// Where the API server has the plugin on, each node has its taint before a webhook is called.
const UNTAINTED: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/untainted"),
    expression: "!has(object.spec) || !has(object.spec.taints) || !object.spec.taints.exists(t, t.key == \
                 'node.kubernetes.io/not-ready' && t.effect == 'NoSchedule')",
};

/// The rule. The node may be the one that is to run Outrider, so it never fails, and ends soon.
pub const RULE: Rule = Rule {
    suffix: "taintnodesbycondition",
    scope: Scope::Cluster,
    failure_policy: FailurePolicy::Ignore,
    timeout_seconds: 2,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[UNTAINTED],
    ..Rule::new(concat!("taintnodesbycondition.policy.", api_domain!()), NODES, &[Operation::Create])
};

/// The endpoint.
pub struct NewNodeMutation;

impl Mutating<Snapshot> for NewNodeMutation {
    type Object<'a> = NewNodeFacts<'a>;

    fn mutate<'a>(&self, request: &Request<'a, NewNodeFacts<'a>>, snapshot: &Snapshot) -> Result<Verdict, Unserved> {
        let is_new = request.operation == Operation::Create && request.sub_resource.is_empty();
        let Some(node) = request.object.as_ref().filter(|_| is_new) else {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        };
        let chosen = |one: &CompiledPlugin| one.plugin == Plugin::TaintNodesByCondition;
        let concerned = concerned_anywhere(snapshot, &request.namespace, &request.user_info, chosen)?;
        let mut report = Report::with(concerned.warnings);
        let change = change(node);
        // All objects add the same.
        let is_tainted =
            concerned.plugins.into_iter().any(|(plugin, is_exempt)| report.changes((plugin, is_exempt), &change));
        let mut patch = PatchWriter::default();
        if is_tainted {
            let taint = format!("{{\"effect\":\"{EFFECT}\",\"key\":\"{KEY}\"}}");
            match (node.has_taints(), node.has_spec()) {
                (true, _) => patch.add("/spec/taints/-", &taint),
                (false, true) => patch.add("/spec/taints", &format!("[{taint}]")),
                (false, false) => patch.add("/spec", &format!("{{\"taints\":[{taint}]}}")),
            }
        }
        Ok(report.into_verdict(reasons::NO_MATCH, patch))
    }
}
