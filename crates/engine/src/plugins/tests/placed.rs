//! `PodTopologyLabels` (4.26).

use admission::registry::FailurePolicy;
use admission::{Decision, Operation};
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const PATH: &str = "/mutate--v1-pod-podtopologylabels";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {
        ZONE: "z1", REGION: "r1", "topology.kubernetes.io/arbitrary": "a", "sub.topology.kubernetes.io/zone": "s", "rack": "r9"}}})
}

fn on(name: &str, section: Value) -> Value {
    plugin(name, json!({"plugin": "PodTopologyLabels", "podTopologyLabels": section}))
}

fn cluster(objects: &[Value]) -> Cluster {
    Cluster::from_objects(&[objects, &[node(), namespace(json!({}))]].concat())
}

fn like_the_original() -> Cluster {
    cluster(&[on("t", json!({"nodeLabels": [ZONE, REGION]}))])
}

fn binding(metadata: Value, kind: &str, name: &str) -> Value {
    let mut binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": kind, "name": name}});
    json_patch::merge(&mut binding, &json!({"metadata": metadata}));
    binding
}

fn review(object: &Value) -> Value {
    let mut review = crate::testing::review("shop", object);
    if object["kind"] == "Binding" {
        review["request"]["kind"]["kind"] = "Binding".into();
        review["request"]["subResource"] = "binding".into();
    }
    review
}

/// What becomes of it; the second call changes nothing.
fn placed(cluster: &Cluster, object: &Value) -> Reply {
    let reply = cluster.ask(PATH, &review(object)).unwrap();
    assert_eq!(cluster.ask(PATH, &review(&reply.pod)).unwrap().patch, None, "the second call changes nothing");
    reply
}

#[test]
fn labels_of_the_node_go_to_its_pods_as_the_table_says() {
    let cluster = like_the_original();
    let both = json!({ZONE: "z1", REGION: "r1"});
    for (row, binding, expected) in [
        ("only the chosen ones", binding(json!({}), "Node", "n1"), both.clone()),
        (
            "beside others",
            binding(json!({"labels": {"a": "b"}}), "Node", "n1"),
            json!({ZONE: "z1", REGION: "r1", "a": "b"}),
        ),
        ("in place of another value", binding(json!({"labels": {ZONE: "mine"}}), "Node", "n1"), both),
        ("of a node only", binding(json!({}), "Pod", "n1"), Value::Null),
        ("of a node that is known", binding(json!({}), "Node", "n2"), Value::Null),
    ] {
        let reply = placed(&cluster, &binding);
        assert_eq!(reply.pod["metadata"]["labels"], expected, "{row}");
        assert_eq!(reply.pod["metadata"]["annotations"], Value::Null, "{row}");
    }
    let unknown = placed(&cluster, &binding(json!({}), "Node", "n2"));
    assert_eq!(unknown.decision, Decision::Allowed);
    assert_eq!(
        unknown.warnings,
        ["AdmissionPlugin \"t\" (PodTopologyLabels) copies no labels: node \"n2\" is not known"]
    );
}

#[test]
fn a_pod_that_names_its_node_gets_them_at_once() {
    let cluster = like_the_original();
    let pod = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let reply = placed(&cluster, &pod(json!({"nodeName": "n1"})));
    assert_eq!(reply.pod["metadata"]["labels"], json!({ZONE: "z1", REGION: "r1"}));
    assert_eq!(placed(&cluster, &pod(json!({}))).patch, None);
    let mut update = review(&pod(json!({"nodeName": "n1"})));
    update["request"]["operation"] = "UPDATE".into();
    assert_eq!(cluster.ask(PATH, &update).unwrap().patch, None);
}

#[test]
fn any_label_can_be_chosen_and_become_an_annotation_which_older_clusters_copy_too() {
    for (target, has_label, has_annotation) in
        [("Labels", true, false), ("Annotations", false, true), ("Both", true, true)]
    {
        let cluster = cluster(&[on("t", json!({"nodeLabels": ["rack", "missing"], "target": target}))]);
        let metadata = placed(&cluster, &binding(json!({}), "Node", "n1")).pod["metadata"].take();
        let rack = |is_there: bool| if is_there { json!({"rack": "r9"}) } else { Value::Null };
        assert_eq!(
            (&metadata["labels"], &metadata["annotations"]),
            (&rack(has_label), &rack(has_annotation)),
            "{target}"
        );
    }
}

#[test]
fn several_objects_copy_what_each_chooses_and_what_only_reports_copies_nothing() {
    let cluster = cluster(&[on("a", json!({"nodeLabels": [ZONE, "rack"]})), on("b", json!({"nodeLabels": ["rack"]}))]);
    assert_eq!(
        placed(&cluster, &binding(json!({}), "Node", "n1")).pod["metadata"]["labels"],
        json!({ZONE: "z1", "rack": "r9"})
    );
    let spec = json!({"plugin": "PodTopologyLabels", "mode": "Warn", "podTopologyLabels": {"nodeLabels": ["rack"], "target": "Both"}});
    let reply = placed(&self::cluster(&[plugin("w", spec)]), &binding(json!({}), "Node", "n1"));
    assert_eq!(
        reply.warnings,
        [
            "PluginWouldChange: AdmissionPlugin \"w\" (PodTopologyLabels) would add the labels rack=r9 and add the annotations rack=r9"
        ]
    );
}

#[test]
fn the_entry_never_fails_and_ends_soon() {
    let found = demands(&like_the_original().snapshot);
    let [entry] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((entry.failure_policy, entry.timeout_seconds), (FailurePolicy::Ignore, 1));
    let resources: Vec<&str> = entry.rule.resources.iter().map(|resource| resource.resource).collect();
    assert_eq!(
        (resources.as_slice(), entry.rule.operations),
        (&["pods", "pods/binding"][..], &[Operation::Create][..])
    );
}
