//! `outrider explain` of a pod of a cluster.

use serde_json::{Value, json};

use crate::process::outrider_on;
use crate::room::Room;

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_of_the_cluster_is_explained_by_the_sets_of_the_cluster() {
    let room = Room::new("explained");
    let (cluster, namespace) = (&room.stage.cluster, room.namespace.name());
    let set = |name: &str, label: &str| {
        let name = format!("{name}-{namespace}");
        json!({
            "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": label}}, "namespace": namespace,
                "containers": [{"name": name, "image": "proxy:1"}],
            },
        })
    };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    room.namespace.kubectl_ok(&["create", "-f", "-"], Some(&pod.to_string())).unwrap();
    for set in [set("web", "web"), set("db", "db")] {
        cluster.kubectl_ok(&["create", "-f", "-"], Some(&set.to_string())).unwrap();
    }
    let explain =
        |name: &str| outrider_on(&cluster.kubeconfig(), &["explain", "pod", name, "-n", namespace, "-o", "json"]);
    let explained = explain("web-0");
    assert!(explained.success(), "{explained:?}");
    let found: Value = serde_json::from_str(&explained.stdout).unwrap();
    let of = |name: &str| {
        let sets = found["pods"][0]["sets"].as_array().unwrap();
        let set = sets.iter().find(|set| set["set"] == format!("{name}-{namespace}")).unwrap();
        (set["reason"].as_str().unwrap().to_owned(), set["result"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("web"), ("Injected".to_owned(), "injected".to_owned()));
    assert_eq!(of("db"), ("NoMatch".to_owned(), "not injected".to_owned()));
    let missing = explain("web-1");
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("pods \"web-1\" not found"), "{missing:?}");
    for name in ["web", "db"] {
        cluster.kubectl_ok(&["delete", "sidecarset", &format!("{name}-{namespace}")], None).unwrap();
    }
}
