//! `outrider verify`: what `helm test` runs.

use crate::process::outrider_on;
use crate::room::Room;

#[test]
#[ignore = "needs a control plane: make test"]
fn verify_tells_whether_a_pod_is_injected_and_leaves_no_set() {
    let room = Room::new("verified");
    let cluster = &room.stage.cluster;
    let verify = |namespace: &str, timeout: &str| {
        outrider_on(&cluster.kubeconfig(), &["verify", "--namespace", namespace, "--timeout", timeout])
    };
    // It ends as soon as a pod is injected: the time is for a busy machine. What never happens is waited for to the end.
    let injected = verify(room.namespace.name(), "60s");
    let said =
        format!("a pod in the namespace {} came back with the sidecar of outrider-verify-", room.namespace.name());
    assert!(injected.success() && injected.stdout.starts_with(&said), "{injected:?}");

    let excluded = verify("kube-system", "1s");
    assert_eq!(excluded.code, Some(1), "{excluded:?}");
    assert!(excluded.stderr.contains("came back without the sidecar"), "{excluded:?}");

    let nowhere = verify("nowhere", "1s");
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert!(nowhere.stderr.contains("namespaces \"nowhere\" not found"), "{nowhere:?}");

    let sets = cluster.kubectl_ok(&["get", "sidecarsets", "-o=name"], None).unwrap();
    assert!(!sets.contains("outrider-verify"), "{sets}");
    let pods = room.namespace.kubectl_ok(&["get", "pods", "-o=name"], None).unwrap();
    assert_eq!(pods, "");
}
