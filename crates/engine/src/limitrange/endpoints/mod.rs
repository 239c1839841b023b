//! The endpoints of ranges: new pods within the one call for pods; pods that are resized, and claims, at paths of their own.

mod claims;
pub mod pods;
mod resize;
mod scope;

use admission::registry::{FailurePolicy, Namespaces, Phase, Resource, Rule};
use admission::reply::Count;
use admission::{Operation, Registry};

use crate::demand::Demand;
use crate::limitrange::compiled::CompiledRange;
use crate::snapshot::Snapshot;

/// Key of the audit annotation with what each range did: a comma list of `<object>=<reason code>`.
pub const AUDIT: &str = "limits";

/// The name of the API server's plugin, in metrics.
const PLUGIN: &str = "LimitRanger";

/// Objects that the audit annotation names.
const NAMED: usize = 64;

/// Pods that are resized.
const RESIZE: Rule = on_demand(
    concat!("limitranger-resize.policy.", api_domain!()),
    &[Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" }],
    &[Operation::Update],
);

const CLAIMS: Rule = Rule {
    match_conditions: claims::CONDITIONS,
    ..on_demand(
        concat!("limitranger.policy.", api_domain!()),
        &[Resource { group: "", version: "v1", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" }],
        &[Operation::Create, Operation::Update],
    )
};

const fn on_demand(name: &'static str, resources: &'static [Resource], operations: &'static [Operation]) -> Rule {
    Rule {
        suffix: "limitranger",
        failure_policy: FailurePolicy::Chosen,
        namespaces: Namespaces::NotExcluded,
        on_demand: true,
        ..Rule::new(name, resources, operations)
    }
}

/// Adds the endpoints beside that of new pods.
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry
        .mutating(RESIZE, resize::ResizeMutation)
        .validating(RESIZE, resize::PodResizeValidation)
        .validating(CLAIMS, claims::ClaimValidation)
}

/// Whether a range needs something.
type NeededBy = fn(&CompiledRange) -> bool;

/// The entries, with which ranges need them.
const ENTRIES: [(Phase, Rule, NeededBy); 3] = [
    (Phase::Mutating, RESIZE, CompiledRange::fills),
    (Phase::Validating, RESIZE, CompiledRange::bounds_pods),
    (Phase::Validating, CLAIMS, CompiledRange::bounds_claims),
];

/// Whether the entry is there for the range.
pub fn is_needed_by(range: &CompiledRange, entry: &Demand) -> bool {
    ENTRIES.iter().any(|(phase, rule, needs)| *phase == entry.phase && rule.name == entry.name && needs(range))
}

/// The entries that ranges need beside that of new pods.
pub fn demands(snapshot: &Snapshot) -> Vec<Demand> {
    let mut ranges = snapshot.limit_ranges.iter();
    let Some(first) = ranges.next() else { return Vec::new() };
    let namespaces = first.namespaces.clone().filter(|_| ranges.all(|other| other.namespaces == first.namespaces));
    let needed = ENTRIES.into_iter().filter(|(.., needs)| snapshot.limit_ranges.iter().any(|range| needs(range)));
    needed.map(|(phase, rule, _)| Demand { namespaces: namespaces.clone(), ..Demand::of(phase, rule) }).collect()
}

/// What the audit log and the metrics get.
fn noted<'r>(ranges: impl ExactSizeIterator<Item = &'r str>, code: &str, verdict: &'static str) -> (String, Count) {
    let left_out = ranges.len().saturating_sub(NAMED);
    let mut all: Vec<String> = ranges.take(NAMED).map(|name| format!("{name}={code}")).collect();
    if left_out > 0 {
        all.push(format!("and {left_out} more"));
    }
    (all.join(","), Count { by: PLUGIN, mode: "Enforce", verdict })
}
