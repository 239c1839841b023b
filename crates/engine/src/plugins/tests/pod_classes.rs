//! `Priority` (4.27) and `RuntimeClass` (4.28), for one namespace.

use admission::Decision;
use serde_json::{Value, json};

use super::{admitted, namespace, plugin, pod};
use crate::reasons;
use crate::testing::{Cluster, review};

fn cluster(section: Value) -> Cluster {
    let priority = json!({"plugin": "Priority", "priority": section});
    let runtime = json!({"plugin": "RuntimeClass", "runtimeClass": {"runtimeClassName": "sandbox"}});
    Cluster::from_objects(&[plugin("p", priority), plugin("r", runtime), namespace(json!({}))])
}

#[test]
fn pods_get_the_class_of_their_namespace_as_the_table_says() {
    let low = json!({"priorityClassName": "low"});
    let replacing = json!({"priorityClassName": "low", "replacedClassNames": ["usual"]});
    // The API server has filled in what is there for a pod without a class, or with the default of the cluster.
    let open = json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"});
    let usual = json!({"priorityClassName": "usual", "priority": 10, "preemptionPolicy": "Never"});
    let both = json!({"priorityClassName": "low", "runtimeClassName": "sandbox"});
    for (case, section, spec, expected) in [
        ("nothing", &low, json!({}), both.clone()),
        ("filled in", &low, open, both.clone()),
        ("empty names", &low, json!({"priorityClassName": "", "runtimeClassName": ""}), both.clone()),
        (
            "named",
            &low,
            json!({"priorityClassName": "high", "priority": 5, "preemptionPolicy": "Never", "runtimeClassName": "kata"}),
            json!({"priorityClassName": "high", "priority": 5, "preemptionPolicy": "Never", "runtimeClassName": "kata"}),
        ),
        (
            "the default of the cluster, which is not replaced",
            &low,
            usual.clone(),
            json!({"priorityClassName": "usual", "priority": 10, "preemptionPolicy": "Never", "runtimeClassName": "sandbox"}),
        ),
        ("the default of the cluster, which is", &replacing, usual, both),
        (
            "the same",
            &replacing,
            json!({"priorityClassName": "low", "priority": 1000, "runtimeClassName": "sandbox"}),
            json!({"priorityClassName": "low", "priority": 1000, "runtimeClassName": "sandbox"}),
        ),
    ] {
        // Also asks twice, and has the twins judge the result.
        let stored = admitted(&cluster(section.clone()), &pod(spec)).unwrap();
        for field in ["priorityClassName", "priority", "preemptionPolicy", "runtimeClassName"] {
            assert_eq!(stored["spec"][field], expected[field], "{case}: {field}");
        }
    }
}

#[test]
fn a_pod_that_lost_its_class_is_refused_and_one_of_a_kubelet_has_none() {
    let cluster = cluster(json!({"priorityClassName": "low"}));
    let stored = pod(json!({"priorityClassName": "low", "priority": 1}));
    let refused = cluster.validate(&stored);
    assert_eq!(refused.decision, Decision::Denied);
    assert!(refused.message.contains("pod lacks the runtime class sandbox of its namespace"), "{}", refused.message);
    let mut mirror = pod(json!({}));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
    let mut review = review("shop", &mirror);
    review["request"]["userInfo"] = json!({"username": "system:node:a", "groups": ["system:nodes"]});
    assert_eq!(cluster.ask("/mutate--v1-pod", &review).unwrap().patch, None);
    assert_eq!(cluster.ask("/validate--v1-pod", &review).unwrap().decision, Decision::Allowed);
}

#[test]
fn who_is_exempt_and_other_modes_change_nothing_and_say_so() {
    let with = |more: Value| {
        let mut spec = json!({"plugin": "RuntimeClass", "runtimeClass": {"runtimeClassName": "sandbox"}});
        json_patch::merge(&mut spec, &more);
        Cluster::from_objects(&[plugin("r", spec), namespace(json!({}))])
    };
    let warned = with(json!({"mode": "Warn"})).mutate(&pod(json!({})));
    assert_eq!((warned.patch, warned.reason), (None, reasons::PLUGIN_WOULD_CHANGE));
    assert!(warned.warnings[0].ends_with("would set the runtime class sandbox"), "{:?}", warned.warnings);
    let exempt = with(json!({"match": {"excludeServiceAccounts": ["kube-system/daemon-set-controller"]}}));
    let mut review = review("shop", &pod(json!({})));
    review["request"]["userInfo"] = json!({"username": "system:serviceaccount:kube-system:daemon-set-controller"});
    assert_eq!(exempt.ask("/mutate--v1-pod", &review).unwrap().patch, None);
    assert_eq!(exempt.ask("/validate--v1-pod", &review).unwrap().decision, Decision::Allowed);
}
