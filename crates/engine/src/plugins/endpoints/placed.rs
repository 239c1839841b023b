//! Bindings, and pods that name their node, under `PodTopologyLabels`.

use admission::patch::Present;
use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Mutating, Operation, PatchWriter, Request, Unserved, Verdict};

use super::report::Report;
use super::scope::concerned;
use crate::plugins::compiled::{CompiledPlugin, Mode, Settings};
use crate::plugins::pod_topology_labels::PlacedFacts;
use crate::plugins::shortened;
use crate::pod::borrowed_map::BorrowedMap;
use crate::reasons;
use crate::snapshot::Snapshot;

const PLACED: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/binding", kind: "Binding" },
];

const HAS_NODE: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/has-node"),
    expression: "(has(request.subResource) && request.subResource == 'binding') || \
                 (has(object.spec) && has(object.spec.nodeName) && object.spec.nodeName != '')",
};

/// The rule. The scheduler waits for it with every pod, so it never fails, and ends soon.
pub const RULE: Rule = Rule {
    suffix: "podtopologylabels",
    failure_policy: FailurePolicy::Ignore,
    timeout_seconds: 1,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[HAS_NODE],
    ..Rule::new(concat!("podtopologylabels.policy.", api_domain!()), PLACED, &[Operation::Create])
};

/// The endpoint.
pub struct PlacedMutation;

impl Mutating<Snapshot> for PlacedMutation {
    type Object<'a> = PlacedFacts<'a>;

    fn mutate<'a>(&self, request: &Request<'a, PlacedFacts<'a>>, snapshot: &Snapshot) -> Result<Verdict, Unserved> {
        let is_binding = request.sub_resource.as_str() == "binding" || request.kind.kind.as_str() == "Binding";
        let placed = request.object.as_ref().filter(|_| request.operation == Operation::Create);
        let Some((placed, node)) = placed.and_then(|placed| Some((placed, placed.node(is_binding)?))) else {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        };
        let chosen = |one: &CompiledPlugin| matches!(one.settings, Settings::PodTopologyLabels(_));
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        let mut report = Report::with(concerned.warnings);
        let known = snapshot.nodes.labels(node);
        let (mut labels, mut annotations) = (Vec::new(), Vec::new());
        for (plugin, is_exempt) in concerned.plugins {
            let Settings::PodTopologyLabels(settings) = &plugin.settings else { continue };
            let Some(known) = known else {
                if plugin.mode != Mode::Audit && !is_exempt {
                    let (name, of) = (&plugin.name, plugin.plugin);
                    let node = shortened(node);
                    report
                        .warnings
                        .push(format!("AdmissionPlugin {name:?} ({of}) copies no labels: node {node:?} is not known"));
                }
                continue;
            };
            let change = settings.change(placed, known);
            if report.changes((plugin, is_exempt), &change) {
                labels.extend(change.labels);
                annotations.extend(change.annotations);
            }
        }
        let mut patch = PatchWriter::default();
        let is_changed = !(labels.is_empty() && annotations.is_empty());
        if is_changed && !placed.metadata.is_there {
            patch.add("/metadata", "{}");
        }
        set(&mut patch, "/metadata/labels", placed.metadata.labels.as_ref(), labels);
        set(&mut patch, "/metadata/annotations", placed.metadata.annotations.as_ref(), annotations);
        Ok(report.into_verdict(reasons::NO_MATCH, patch))
    }
}

/// Sets members of a map. Two objects that copy one key copy the same.
fn set(patch: &mut PatchWriter, pointer: &str, own: Option<&BorrowedMap<'_>>, mut members: Vec<(String, String)>) {
    members.sort_unstable();
    members.dedup();
    let present = own.map_or(Present::Absent, |own| Present::Len(own.len()));
    patch.set_texts(pointer, present, members.iter().map(|(key, value)| (key.as_str(), value.as_str())));
}
