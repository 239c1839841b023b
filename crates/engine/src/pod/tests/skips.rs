//! What leaves a pod alone before any set is read.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, review, set};

fn cluster() -> Cluster {
    let excluded = json!({"kind": "Namespace", "metadata": {"name": "quiet", "labels": {"outrider.dev/exclude": ""}}});
    Cluster::from_objects(&[set("log", json!({"optOut": "Denied"})), excluded])
}

#[test]
fn every_skip_rule_has_its_reason_on_both_paths() {
    let request = |changes: Value| {
        let mut review = review("shop", &pod(json!({})));
        json_patch::merge(&mut review, &json!({"request": changes}));
        review
    };
    let metadata = |changes: Value| request(json!({"object": {"metadata": changes}}));
    for (review, reason) in [
        (request(json!({"operation": "UPDATE"})), reasons::NOT_CREATE),
        (request(json!({"operation": "DELETE", "object": null})), reasons::NOT_CREATE),
        (request(json!({"operation": "CONNECT", "object": {"stdin": true}})), reasons::NOT_CREATE),
        (request(json!({"namespace": "kube-system"})), reasons::NAMESPACE_EXCLUDED),
        (request(json!({"namespace": "kube-public"})), reasons::NAMESPACE_EXCLUDED),
        (request(json!({"namespace": "kube-node-lease"})), reasons::NAMESPACE_EXCLUDED),
        (request(json!({"namespace": "outrider-system"})), reasons::NAMESPACE_EXCLUDED),
        (request(json!({"namespace": "cert-manager"})), reasons::NAMESPACE_EXCLUDED),
        (request(json!({"namespace": "quiet"})), reasons::NAMESPACE_EXCLUDED),
        (metadata(json!({"annotations": {"kubernetes.io/config.mirror": "0f"}})), reasons::MIRROR_POD),
        (metadata(json!({"annotations": {"kubernetes.io/config.mirror": ""}})), reasons::MIRROR_POD),
        // The API server refuses it, and with a sidecar it would not.
        (request(json!({"object": {"spec": {"containers": null}}})), Reason::INVALID),
        (request(json!({"object": {"spec": {"containers": []}}})), Reason::INVALID),
        (
            request(json!({"object": {"spec": {"containers": null, "initContainers": [{"name": "i"}]}}})),
            Reason::INVALID,
        ),
    ] {
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = cluster().ask(path, &review).unwrap();
            assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reason), "{path} {review}");
            assert_eq!(reply.audit["reason"], reason.as_str());
        }
    }
}

#[test]
fn what_is_no_pod_is_refused_and_never_gets_a_patch() {
    let deployment = json!({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"}});
    for changes in [
        deployment,
        json!({"kind": {"kind": "PodTemplate"}}),
        json!({"resource": {"resource": "podtemplates"}}),
        json!({"operation": "UPDATE", "subResource": "ephemeralcontainers"}),
        json!({"operation": "UPDATE", "subResource": "resize"}),
        json!({"operation": "UPDATE", "subResource": "status"}),
        json!({"subResource": "binding"}),
    ] {
        let mut review = review("shop", &pod(json!({})));
        json_patch::merge(&mut review, &json!({"request": changes}));
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = cluster().ask(path, &review).unwrap();
            assert_eq!((reply.decision, reply.reason), (Decision::Denied, Reason::NOT_SERVED), "{path} {review}");
        }
    }
}

#[test]
fn what_only_looks_like_a_skip_is_injected() {
    for changes in [
        json!({"metadata": {"deletionTimestamp": null}}),
        // The author's word: server-side apply hands it on.
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}}),
        json!({"metadata": {"annotations": {"kubernetes.io/config.source": "api"}}}),
        json!({"metadata": {"namespace": "kube-system"}}),
        json!({"metadata": {"name": null, "generateName": "web-"}}),
    ] {
        let mut pod = pod(json!({}));
        json_patch::merge(&mut pod, &changes);
        assert_eq!(cluster().mutate(&pod).reason, reasons::INJECTED, "{changes}");
    }
}

#[test]
fn a_pod_that_no_set_selects_gets_a_bare_yes() {
    let mut pod = pod(json!({}));
    pod["metadata"]["labels"] = json!({"app": "db"});
    let reply = cluster().mutate(&pod);
    assert_eq!(
        String::from_utf8(reply.body).unwrap(),
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"0a1b","allowed":true}}"#
    );
}

#[test]
fn a_set_for_windows_says_so_and_reaches_windows_pods_alone() {
    let cluster = Cluster::from_objects(&[set("s", json!({"platform": "windows"}))]);
    let windows = pod(json!({"os": {"name": "windows"}}));
    assert_eq!(cluster.mutate(&windows).reason, reasons::INJECTED);
    assert_eq!(cluster.mutate(&pod(json!({}))).reason, reasons::WRONG_PLATFORM);
    let linux = Cluster::from_objects(&[set("s", json!({"platform": "linux"}))]);
    assert_eq!(linux.mutate(&windows).reason, reasons::WRONG_PLATFORM);
}

#[test]
fn security_contexts_are_completed_where_the_set_says_so() {
    let cluster = |spec: Value| Cluster::from_objects(&[set("s", spec)]);
    let complete = cluster(json!({"podSecurity": "Complete", "optOut": "Denied"}));
    let reply = complete.mutate(&pod(json!({})));
    let context = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "seccompProfile": {"type": "RuntimeDefault"},
        "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(reply.pod["spec"]["containers"][0]["securityContext"], context);
    // What was filled in is part of what a pod must carry.
    assert_eq!(complete.validate(&reply.pod).decision, Decision::Allowed);
    let mut weaker = reply.pod.clone();
    weaker["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    assert_eq!(complete.validate(&weaker).decision, Decision::Denied);
    for spec in [json!({}), json!({"podSecurity": "AsWritten"})] {
        assert_eq!(cluster(spec).mutate(&pod(json!({}))).pod["spec"]["containers"][0]["securityContext"], Value::Null);
    }
    let windows = cluster(json!({"podSecurity": "Complete", "platform": "windows"}))
        .mutate(&pod(json!({"os": {"name": "windows"}})));
    assert_eq!(windows.pod["spec"]["containers"][0]["securityContext"], json!({"runAsNonRoot": true}));
}
