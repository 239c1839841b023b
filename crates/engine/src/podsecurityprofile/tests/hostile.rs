//! Of a hostile pod the work grows with its size, and no faster; the answer does not grow without end.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use super::{mutate, pod, profile};
use crate::plugins::work;
use crate::podsecurityprofile::compiled::MAX_ITEMS;
use crate::testing::Cluster;

fn containers(count: usize, context: &Value) -> Value {
    let all = (0..count).map(|at| json!({"name": format!("c{at}"), "image": "i", "securityContext": context}));
    pod(json!({"containers": all.collect::<Vec<_>>()}))
}

#[test]
fn a_refusal_names_the_first_faults_and_counts_the_rest() {
    let cluster = Cluster::from_objects(&[profile("a", &json!({})), profile("b", &json!({}))]);
    let said = mutate(&cluster, &containers(5_000, &json!({"privileged": true})), &["*"]).message;
    assert!(said.contains(" and 9968 more]") && said.len() < 20_000, "{}", said.len());
    // Each group is a fault that shows the list.
    let groups = json!({"supplementalGroups": (0..5_000).collect::<Vec<_>>()});
    let few = json!({"supplementalGroups": {"rule": "MustRunAs", "ranges": [{"min": 9_000, "max": 9_000}]}});
    let cluster = Cluster::from_objects(&[profile("a", &few)]);
    let said = mutate(&cluster, &pod(json!({"securityContext": groups})), &["*"]).message;
    assert!(said.contains("15, …}") && said.len() < 20_000, "{}", said.len());
}

#[test]
fn the_work_grows_with_the_pod() {
    let mounted = |count: usize| {
        let volumes: Vec<Value> =
            (0..count).map(|at| json!({"name": format!("v{at}"), "hostPath": {"path": format!("/a/{at}")}})).collect();
        let mounts: Vec<Value> =
            (0..count).map(|at| json!({"name": format!("v{at}"), "mountPath": format!("/{at}")})).collect();
        pod(json!({"volumes": volumes, "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}]}))
    };
    let paths: Vec<Value> =
        (0..MAX_ITEMS).map(|at| json!({"pathPrefix": format!("/a/{at}"), "readOnly": true})).collect();
    let cluster = Cluster::from_objects(&[profile("a", &json!({ "allowedHostPaths": paths }))]);
    let steps = |pod: &Value| work::of(|| mutate(&cluster, pod, &["*"])).0;
    let (small, large) = (steps(&mounted(500)), steps(&mounted(2_000)));
    assert!(small > 500 && large <= 5 * small, "{small} {large}");
    let (small, large) = (steps(&containers(500, &Value::Null)), steps(&containers(2_000, &Value::Null)));
    assert!(small >= 500 && large <= 5 * small, "{small} {large}");
}

#[test]
fn what_has_no_room_is_not_filled_in() {
    let drops: Vec<String> = (0..MAX_ITEMS).map(|at| format!("CAP{at}")).collect();
    let cluster = Cluster::from_objects(&[profile("a", &json!({ "requiredDropCapabilities": drops }))]);
    assert_ne!(mutate(&cluster, &containers(100, &Value::Null), &["*"]).decision, Decision::Denied);
    let reply = mutate(&cluster, &containers(5_000, &Value::Null), &["*"]);
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, Reason::TOO_LARGE), "{}", reply.message);
}
