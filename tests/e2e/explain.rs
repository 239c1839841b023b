//! `outrider explain` of a pod of a cluster.

use serde_json::{Value, json};

use crate::process::{eventually, outrider_on};
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

#[test]
#[ignore = "needs a control plane: make test"]
fn a_team_with_rights_in_its_namespace_and_the_viewer_of_sets_explains_its_pods() {
    let room = Room::new("explained-team");
    let (cluster, namespace) = (&room.stage.cluster, room.namespace.name());
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    room.namespace.kubectl_ok(&["create", "-f", "-"], Some(&pod.to_string())).unwrap();
    let set = format!("team-{namespace}");
    let object = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": set},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "namespace": namespace,
            "containers": [{"name": "proxy", "image": "proxy:1"}],
        },
    });
    cluster.kubectl_ok(&["create", "-f", "-"], Some(&object.to_string())).unwrap();
    let user = format!("dev-{namespace}");
    let view = ["create", "rolebinding", "dev", "--clusterrole=view", &format!("--user={user}")];
    room.namespace.kubectl_ok(&view, None).unwrap();
    let may = ["auth", "can-i", "get", "pods", &format!("--as={user}")];
    eventually("the binding is known", || room.namespace.kubectl(&may, None).unwrap().success());
    let explain = || outrider_on(&cluster.kubeconfig(), &["explain", "pod", "web-0", "-n", namespace, "--as", &user]);
    let refused = explain();
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let role = "; a ClusterRoleBinding to outrider-sidecarset-viewer allows it";
    assert!(refused.stderr.contains(role), "{}", refused.stderr);
    for (kind, resource) in [
        ("sidecarset", "sidecarsets"),
        ("admissionplugin", "admissionplugins"),
        ("clusterlimitrange", "clusterlimitranges"),
        ("podsecurityprofile", "podsecurityprofiles"),
    ] {
        let (role, name) = (format!("outrider-{kind}-viewer"), format!("{user}-{kind}"));
        let bind = ["create", "clusterrolebinding", &name, &format!("--clusterrole={role}"), &format!("--user={user}")];
        cluster.kubectl_ok(&bind, None).unwrap();
        let may = ["auth", "can-i", "list", resource, &format!("--as={user}")];
        eventually("the binding is known", || cluster.kubectl(&may, None).unwrap().success());
    }
    // The user may not list namespaces, and reads the one of the pod.
    let explained = explain();
    assert!(explained.success() && explained.stdout.contains("Injected"), "{explained:?}");
    cluster.kubectl_ok(&["delete", "sidecarset", &set], None).unwrap();
    for kind in ["sidecarset", "admissionplugin", "clusterlimitrange", "podsecurityprofile"] {
        cluster.kubectl_ok(&["delete", "clusterrolebinding", &format!("{user}-{kind}")], None).unwrap();
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn kubectl_refuses_a_misspelt_field_of_a_container_unless_validation_is_warn() {
    let room = Room::new("misspelt");
    let (cluster, namespace) = (&room.stage.cluster, room.namespace.name());
    let object = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": format!("misspelt-{namespace}")},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "namespace": namespace,
            "containers": [{"name": "proxy", "image": "proxy:1", "comand": ["sh"]}],
        },
    });
    let apply = |flags: &[&str]| {
        let args = [&["apply", "-f", "-", "--dry-run=server"], flags].concat();
        cluster.kubectl(&args, Some(&object.to_string())).unwrap()
    };
    for flags in [&[][..], &["--server-side"]] {
        let refused = apply(flags);
        let said = r#"spec.containers[0].comand: Forbidden: unknown field (did you mean "command"?)"#;
        assert!(!refused.success() && refused.stderr.contains(said), "{flags:?}: {refused:?}");
        let warned = apply(&[flags, &["--validate=warn"]].concat());
        let said = r#"unknown field "spec.containers[0].comand" (did you mean "command"?)"#;
        assert!(warned.success() && warned.stderr.contains(said), "{flags:?}: {warned:?}");
    }
}
