//! Further stages on the path of pods.

use admission::{Decision, Denial, PatchBuilder, Reason, Registry, Unserved};
use serde_json::{Value, json};

use crate::pod::stages::{PodRequest, Stage, Step, narrowing};
use crate::reasons;
use crate::sidecarset::narrowing::NarrowingRule;
use crate::snapshot::Snapshot;
use crate::testing::{Cluster, pod, set};

const COUNTED: Reason = Reason::new("Counted");

/// Writes how many containers it sees, and refuses pods that a label says so of.
#[derive(Debug)]
struct Counts {
    key: &'static str,
    is_idle: bool,
}

impl Stage for Counts {
    fn is_idle(&self, _: &Snapshot) -> bool {
        self.is_idle
    }

    fn mutate(&self, pod: &mut PatchBuilder, request: &PodRequest<'_>, _: &Snapshot) -> Result<Step, Unserved> {
        assert!(!self.is_idle);
        let containers = pod.document()["spec"]["containers"].as_array().map_or(0, Vec::len);
        let seen = pod.document()["metadata"]["annotations"].as_object().map_or(0, serde_json::Map::len);
        let text = json!(format!("{containers} containers, {seen} annotations"));
        pod.set(&format!("/metadata/annotations/{}", self.key), text).map_err(|_| Unserved::Fault)?;
        Ok(step(pod.document(), request, "changed"))
    }

    fn validate(&self, pod: &Value, request: &PodRequest<'_>, _: &Snapshot) -> Result<Step, Unserved> {
        Ok(step(pod, request, "stored"))
    }
}

fn step(pod: &Value, request: &PodRequest<'_>, when: &str) -> Step {
    let is_refused = pod["metadata"]["labels"]["refused"] == when;
    let denial = is_refused.then(|| (Reason::new("Counted"), Denial::forbidden(request, "may not be counted")));
    Step { reason: Some(COUNTED), warnings: vec!["counted".to_owned()], audit: Vec::new(), counts: Vec::new(), denial }
}

static FIRST: Counts = Counts { key: "first", is_idle: false };
static IDLE: Counts = Counts { key: "idle", is_idle: true };
static SECOND: Counts = Counts { key: "second", is_idle: false };

fn cluster(sets: &[Value]) -> Cluster {
    let mut cluster = Cluster::from_objects(sets);
    cluster.registry = crate::pod::register(Registry::default(), vec![&FIRST, &IDLE, &SECOND]);
    cluster
}

#[test]
fn later_stages_see_what_earlier_ones_added_and_there_is_one_patch() {
    let reply = cluster(&[set("log", json!({}))]).mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Patched, reasons::INJECTED));
    assert_eq!(reply.names("containers").len(), 2);
    let annotations = &reply.pod["metadata"]["annotations"];
    assert_eq!(annotations["first"], "2 containers, 2 annotations");
    assert_eq!(annotations["second"], "2 containers, 3 annotations");
    assert_eq!(annotations.get("idle"), None);
    // The two stages give the same warning, which a reply has once.
    assert_eq!(reply.warnings, ["counted"]);
    assert_eq!(reply.audit["sets"], "log");
}

#[test]
fn a_pod_of_no_set_gets_what_the_stages_give_it_and_their_reason() {
    let reply = cluster(&[]).mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Patched, COUNTED));
    assert_eq!(reply.audit["reason"], "Counted");
    assert_eq!(reply.pod["metadata"]["annotations"]["first"], "1 containers, 0 annotations");
}

#[test]
fn a_refusal_of_a_stage_is_the_answer_and_changes_nothing() {
    for (when, mutates) in [("changed", true), ("stored", false)] {
        let mut pod = pod(json!({}));
        pod["metadata"]["labels"]["refused"] = when.into();
        let cluster = cluster(&[set("log", json!({}))]);
        let reply = if mutates { cluster.mutate(&pod) } else { cluster.validate(&pod) };
        assert_eq!((reply.decision, reply.reason, reply.code), (Decision::Denied, COUNTED, Some(403)));
        assert_eq!((reply.patch, reply.audit.get("sets")), (None, None));
        assert_eq!(reply.audit["reason"], "Counted");
        assert_eq!(reply.message, "may not be counted");
    }
}

#[test]
fn excluded_namespaces_and_other_operations_concern_no_stage() {
    let quiet = json!({"kind": "Namespace", "metadata": {"name": "quiet", "labels": {"outrider.dev/exclude": ""}}});
    let cluster = cluster(&[quiet]);
    for namespace in ["kube-system", "quiet"] {
        let reply = cluster.mutate_in(namespace, &pod(json!({}))).unwrap();
        assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::NAMESPACE_EXCLUDED), "{namespace}");
    }
    let mut review = crate::testing::review("shop", &pod(json!({})));
    review["request"]["operation"] = "UPDATE".into();
    for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
        assert_eq!(cluster.ask(path, &review).unwrap().reason, reasons::NOT_CREATE);
    }
}

#[test]
fn a_pod_too_large_to_be_decoded_whole_is_refused_where_a_stage_would_decide() {
    let mut large = pod(json!({}));
    large["spec"]["containers"][0]["env"] = (0..400_000).map(|_| json!({"n": 1})).collect::<Vec<_>>().into();
    for (cluster, expected) in [(cluster(&[]), Decision::Denied), (Cluster::from_objects(&[]), Decision::Allowed)] {
        assert_eq!(cluster.mutate(&large).decision, expected);
    }
}

#[derive(Debug)]
struct Says(Option<&'static str>);

impl Stage for Says {
    fn is_idle(&self, _: &Snapshot) -> bool {
        self.0 == Some("idle")
    }

    fn narrowing(&self, _: &Snapshot) -> NarrowingRule {
        self.0.map_or(NarrowingRule::Wide, |clause| NarrowingRule::of_clauses([clause]))
    }
}

#[test]
fn the_condition_is_the_union_of_all_stages_and_wide_where_one_cannot_say() {
    static IDLE: Says = Says(Some("idle"));
    static A: Says = Says(Some("(a)"));
    static B: Says = Says(Some("(b)"));
    static ANY: Says = Says(None);
    let narrow = |clauses: &[&str]| NarrowingRule::of_clauses(clauses.iter().copied());
    let sets = || narrow(&["(s)"]);
    for (stages, expected) in [
        (vec![], sets()),
        (vec![&IDLE as &'static dyn Stage], sets()),
        (vec![&A, &IDLE, &B], narrow(&["(a)", "(b)", "(s)"])),
        (vec![&A, &ANY], NarrowingRule::Wide),
    ] {
        assert_eq!(narrowing(sets(), &stages, &Snapshot::default()), expected);
    }
    let long: &'static str = format!("({})", "x".repeat(100_000)).leak();
    let stages: Vec<&'static dyn Stage> = vec![Box::leak(Box::new(Says(Some(long))))];
    assert_eq!(narrowing(sets(), &stages, &Snapshot::default()), NarrowingRule::Wide, "CEL takes no longer one");
}
