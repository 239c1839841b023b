//! Sets in pods that end (`spec.jobPods`).

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn cluster(spec: Value) -> Cluster {
    let both = json!({
        "containers": [{"name": "first", "image": "f:1"}, {"name": "last", "image": "l:1", "podInjectPolicy": "AfterAppContainer"}],
        "initContainers": [
            {"name": "setup", "image": "s:1"}, {"name": "early", "image": "e:1", "podInjectPolicy": "BeforeAppContainer"},
        ],
    });
    let mut all = both;
    json_patch::merge(&mut all, &spec);
    Cluster::from_objects(&[set("s", all)])
}

fn job_pod(restart: &str) -> Value {
    pod(json!({"restartPolicy": restart, "initContainers": [{"name": "own", "image": "o:1"}]}))
}

#[test]
fn containers_become_native_sidecars_around_the_init_containers() {
    let mut owned = job_pod("Always");
    owned["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "Node", "name": "n"}, {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": true},
    ]);
    for pod in [job_pod("Never"), job_pod("OnFailure"), owned] {
        for spec in [json!({}), json!({"jobPods": "NativeSidecar"})] {
            let cluster = cluster(spec);
            let reply = cluster.mutate(&pod);
            assert_eq!((reply.reason, &reply.warnings), (reasons::INJECTED, &Vec::new()));
            assert_eq!(reply.names("initContainers"), ["first", "early", "own", "setup", "last"]);
            assert_eq!(reply.names("containers"), ["app"]);
            for (at, restart) in [(0, json!("Always")), (1, Value::Null), (3, Value::Null), (4, json!("Always"))] {
                assert_eq!(reply.pod["spec"]["initContainers"][at]["restartPolicy"], restart, "{at}");
            }
            let record = &reply.record()["s"];
            assert_eq!(record["initContainers"], json!(["first", "early", "setup", "last"]));
            assert_eq!(record["containers"], json!([]));
            // kubectl takes the first of the containers, which is the pod's own.
            assert_eq!(reply.pod["metadata"]["annotations"].as_object().unwrap().len(), 1);
            let again = cluster.mutate(&reply.pod);
            assert_eq!((again.reason, again.patch), (reasons::ALREADY_INJECTED, None));
            assert_eq!(cluster.validate(&reply.pod).reason, reasons::ALREADY_INJECTED);
        }
    }
}

#[test]
fn other_pods_get_the_containers_as_written() {
    let mut not_owned = job_pod("Always");
    not_owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}]);
    for pod in [job_pod("Always"), job_pod(""), not_owned] {
        assert_eq!(cluster(json!({})).mutate(&pod).names("containers"), ["first", "app", "last"]);
    }
    let injected = cluster(json!({"jobPods": "Inject"})).mutate(&job_pod("Never"));
    assert_eq!(injected.names("containers"), ["first", "app", "last"]);
    assert_eq!(injected.names("initContainers"), ["early", "own", "setup"]);
}

#[test]
fn a_set_that_leaves_out_pods_that_end_is_skipped() {
    let cluster = cluster(json!({"jobPods": "Skip"}));
    let reply = cluster.mutate(&job_pod("Never"));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::JOB_SKIPPED));
    assert_eq!(reply.audit["skipped"], "s=JobSkipped");
    assert_eq!(cluster.validate(&job_pod("Never")).decision, Decision::Allowed);
    assert_eq!(cluster.mutate(&job_pod("Always")).reason, reasons::INJECTED);
}

#[test]
fn a_server_without_native_sidecars_gets_none_and_a_must_is_not_evaded() {
    for (minor, reason) in [(28, reasons::JOB_SKIPPED), (29, reasons::INJECTED)] {
        assert_eq!(cluster(json!({})).on(minor).mutate(&job_pod("Never")).reason, reason, "{minor}");
    }
    assert_eq!(cluster(json!({})).on(28).mutate(&job_pod("Always")).reason, reasons::INJECTED);
    // Init containers alone end by themselves.
    assert_eq!(cluster(json!({"containers": []})).on(28).mutate(&job_pod("Never")).reason, reasons::INJECTED);
    let must = cluster(json!({"optOut": "Denied"})).on(28);
    for reply in [must.mutate(&job_pod("Never")), must.validate(&job_pod("Never"))] {
        assert_eq!(reply.decision, Decision::Denied);
        assert!(reply.message.contains("Kubernetes 1.28 has no native sidecars"), "{}", reply.message);
    }
}

#[test]
fn a_must_is_a_native_sidecar_in_a_pod_that_ends_and_nothing_else() {
    let must = cluster(json!({"optOut": "Denied"}));
    let carried = must.mutate(&job_pod("Never")).pod;
    assert_eq!(must.validate(&carried).decision, Decision::Allowed);
    // As plain containers they are not what injection gives the pod.
    let mut plain = must.mutate(&job_pod("Always")).pod;
    plain["spec"]["restartPolicy"] = json!("Never");
    for reply in [must.mutate(&plain), must.validate(&plain)] {
        assert_eq!(reply.decision, Decision::Denied, "{}", reply.message);
    }
}

#[test]
fn a_pod_that_carries_the_set_in_another_list_carries_another_form() {
    let cluster = cluster(json!({}));
    let mut plain = cluster.mutate(&job_pod("Always")).pod;
    plain["spec"]["restartPolicy"] = json!("Never");
    let reply = cluster.mutate(&plain);
    assert_eq!(reply.reason, reasons::OUTDATED, "{}", reply.message);
    assert_eq!(reply.names("containers"), ["first", "app", "last"]);
    assert!(
        reply.warnings[0].contains(r#"container "first" differs in its list (it is in containers)"#),
        "{:?}",
        reply.warnings
    );
    // `render` replaces it.
    let out = cluster.take_out(&plain);
    assert_eq!(out.replaced.len(), 4, "{:?} {:?}", out.replaced, out.left);
}

#[test]
fn what_a_native_sidecar_may_not_have_is_left_out_with_a_warning() {
    let container = json!({
        "name": "log", "image": "l:1", "restartPolicy": "OnFailure",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
        "resizePolicy": [
            {"resourceName": "cpu", "restartPolicy": "NotRequired"}, {"resourceName": "memory", "restartPolicy": "RestartContainer"},
        ],
        "livenessProbe": {"exec": {"command": ["true"]}}, "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    });
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [container]}))]);
    let reply = cluster.mutate(&pod(json!({"restartPolicy": "Never"})));
    assert_eq!(
        reply.pod["spec"]["initContainers"][0],
        json!({
            "name": "log", "image": "l:1", "restartPolicy": "Always", "env": [{"name": "IS_INJECTED", "value": "true"}],
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "livenessProbe": {"exec": {"command": ["true"]}}, "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
        })
    );
    assert_eq!(
        reply.warnings,
        [
            r#"container "log" of SidecarSet "s" goes without its restartPolicyRules and restartPolicy and resizePolicy: in a pod that is to end it is a native sidecar, which may not have it"#
        ]
    );
    assert!(cluster.mutate(&reply.pod).warnings.is_empty());
}

#[test]
fn a_native_sidecar_of_a_set_shares_nothing_with_another_that_shares() {
    let agent = json!({"name": "agent", "image": "a:1", "shareVolumePolicy": {"type": "enabled"}});
    let other = json!({
        "containers": [{"name": "other", "image": "o:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let cluster = Cluster::from_objects(&[set("other", other), set("share", json!({"containers": [agent]}))]);
    let reply = cluster.mutate(&job_pod("Never"));
    assert_eq!(reply.names("initContainers"), ["other", "agent", "own"]);
    assert_eq!(reply.pod["spec"]["initContainers"][1]["volumeMounts"], Value::Null);
    assert_eq!(cluster.mutate(&reply.pod).patch, None);
}
