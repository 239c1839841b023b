//! Pods that cannot carry a set, and what is said about it.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, Reply, pod, set};

const ADVICE: &str = " (or set spec.clashPolicy: Skip on the set to let such pods go without it)";

fn both_policies(spec: &Value, pod: &Value) -> (Reply, Reply) {
    let with = |policy: &str| {
        let mut spec = spec.clone();
        spec["clashPolicy"] = json!(policy);
        Cluster::from_objects(&[set("log", spec)]).mutate(pod)
    };
    (with("Refuse"), with("Skip"))
}

#[test]
fn refuse_denies_with_a_text_that_names_both_sides_and_skip_warns_with_it() {
    let v = json!([{"name": "v", "mountPath": "/v"}]);
    let port = json!([{"name": "log", "image": "log:1", "ports": [{"containerPort": 80, "hostPort": 8080}]}]);
    for (spec, pod_spec, reason, field, text) in [
        (
            json!({}),
            json!({"containers": [{"name": "app"}, {"name": "log", "image": "mine:2"}]}),
            reasons::CONTAINER_CLASH,
            "spec.containers[1].name",
            "container \"log\" (image \"log:1\") of SidecarSet \"log\" has the name of the pod's own container \"log\" (image \"mine:2\"); \
             rename one of them",
        ),
        (
            json!({}),
            json!({"initContainers": [{"name": "log", "image": "mine:2"}]}),
            reasons::CONTAINER_CLASH,
            "spec.initContainers[0].name",
            "container \"log\" (image \"log:1\") of SidecarSet \"log\" has the name of the pod's own container \"log\" (image \"mine:2\"); \
             rename one of them",
        ),
        (
            json!({"containers": [{"name": "log", "image": "log:1", "volumeMounts": v}], "volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
            reasons::VOLUME_CLASH,
            "spec.volumes[0]",
            "volume \"v\" of SidecarSet \"log\" ({\"emptyDir\":{},\"name\":\"v\"}) has the name of the pod's own volume \
             ({\"hostPath\":{\"path\":\"/x\"},\"name\":\"v\"}); rename one of them, or give both the same source",
        ),
        (
            json!({"containers": port}),
            json!({"containers": [{"name": "app", "ports": [{"containerPort": 1}, {"containerPort": 1, "hostPort": 8080}]}]}),
            reasons::PORT_CLASH,
            "spec.containers[0].ports",
            "host port 8080/TCP of container \"log\" of SidecarSet \"log\" is taken by the pod's container \"app\"",
        ),
        (
            json!({"containers": [{"name": "log", "image": "log:1", "ports": [{"containerPort": 80}]}]}),
            json!({"hostNetwork": true, "containers": [{"name": "app", "ports": [{"containerPort": 80, "hostPort": 80}]}]}),
            reasons::PORT_CLASH,
            "spec.containers[0].ports",
            "host port 80/TCP (the pod uses the node's network) of container \"log\" of SidecarSet \"log\" is taken by the pod's \
             container \"app\"",
        ),
        (
            json!({"containers": [{"name": "log", "image": "log:1", "ports": [{"containerPort": 80, "hostPort": 81}]}]}),
            json!({"hostNetwork": true}),
            reasons::RESULT_ILLEGAL,
            "spec.hostNetwork",
            "with SidecarSet \"log\" the API server would refuse the pod: container \"log\" maps host port 81 to port 80, and with \
             the node's network both must be equal",
        ),
        (
            json!({"containers": [
                {"name": "log", "image": "log:1", "ports": [{"containerPort": 80}]},
                {"name": "more", "image": "log:1", "ports": [{"containerPort": 80}]},
            ]}),
            json!({"hostNetwork": true}),
            reasons::PORT_CLASH,
            "spec.hostNetwork",
            "containers \"log\" and \"more\" of SidecarSet \"log\" both take host port 80/TCP (the pod uses the node's network)",
        ),
    ] {
        let pod = pod(pod_spec);
        let (refused, skipped) = both_policies(&spec, &pod);
        assert_eq!((refused.decision, refused.reason, refused.code), (Decision::Denied, reason, Some(422)), "{spec}");
        assert_eq!(refused.message, format!("pod cannot carry SidecarSet \"log\": {text}{ADVICE}"));
        assert_eq!(refused.causes, json!([{"reason": "FieldValueInvalid", "message": text, "field": field}]));
        assert_eq!(refused.audit["skipped"], format!("log={reason}"));
        assert_eq!(refused.audit["reason"], reason.as_str());
        assert_eq!(refused.warnings, [""; 0]);

        assert_eq!((skipped.decision, skipped.reason), (Decision::Allowed, reason), "{spec}");
        assert_eq!(skipped.warnings, [format!("{reason}: {text}")]);
        assert_eq!(skipped.audit["skipped"], format!("log={reason}"));
        assert_eq!(skipped.pod, pod);
    }
}

#[test]
fn all_refusals_are_told_at_once_and_nothing_is_half_done() {
    let cluster = Cluster::from_objects(&[set("a", json!({})), set("b", json!({})), set("c", json!({}))]);
    let reply = cluster.mutate(&pod(json!({"containers": [{"name": "a", "image": "x"}, {"name": "c", "image": "y"}]})));
    assert_eq!(reply.decision, Decision::Denied);
    assert_eq!(reply.causes.as_array().unwrap().len(), 2);
    assert!(
        reply.message.contains("SidecarSet \"a\"") && reply.message.contains("SidecarSet \"c\""),
        "{}",
        reply.message
    );
    assert!(!reply.audit.contains_key("sets"));
}

#[test]
fn a_set_that_is_skipped_leaves_nothing_of_it() {
    let spec = json!({
        "clashPolicy": "Skip",
        "containers": [{"name": "fine", "image": "f:1"}, {"name": "app", "image": "evil:1"}],
        "imagePullSecrets": [{"name": "p"}],
    });
    let cluster = Cluster::from_objects(&[set("a", spec), set("b", json!({}))]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.names("containers"), reply.pod["spec"]["imagePullSecrets"].is_null()), (vec!["b", "app"], true));
    assert_eq!(reply.pod["spec"]["containers"][1]["image"], "shop:1");
    assert_eq!((reply.audit["sets"].as_str(), reply.audit["skipped"].as_str()), ("b", "a=ContainerClash"));
}

#[test]
fn between_sets_the_earlier_wins_and_nobody_is_refused() {
    let volume = |source: Value, container: &str| {
        json!({
            "containers": [{"name": container, "image": "i:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", source.as_str().unwrap(): {"path": "/x"}}],
        })
    };
    let port = |name: &str| json!({"containers": [{"name": name, "image": "i:1", "ports": [{"containerPort": 9, "hostPort": 9}]}]});
    let same = json!({"containers": [{"name": "same", "image": "i:1"}]});
    let same_as_init = json!({"containers": null, "initContainers": [{"name": "same", "image": "i:1"}]});
    for (first, second, what) in [
        (same.clone(), same.clone(), "container \"same\""),
        (same, same_as_init, "container \"same\""),
        (volume(json!("hostPath"), "a"), volume(json!("nfs"), "b"), "volume \"v\" with another source"),
        (port("a"), port("b"), "host port 9/TCP"),
    ] {
        for (order_a, order_b, winner, loser) in [(0, 0, "a", "b"), (1, 0, "b", "a")] {
            let with = |spec: &Value, order: i32| {
                let mut spec = spec.clone();
                spec["order"] = json!(order);
                spec
            };
            let cluster = Cluster::from_objects(&[set("a", with(&first, order_a)), set("b", with(&second, order_b))]);
            let reply = cluster.mutate(&pod(json!({})));
            assert_eq!((reply.decision, reply.reason), (Decision::Patched, reasons::INJECTED), "{what}");
            assert_eq!(reply.audit["sets"], winner);
            let said = format!(
                "SetConflict: SidecarSet {loser:?} and SidecarSet {winner:?} both add {what}; the pod carries {winner:?}"
            );
            assert_eq!(reply.warnings, [said]);
            let again = cluster.mutate(&reply.pod);
            assert_eq!((again.decision, again.reason), (Decision::Allowed, reasons::ALREADY_INJECTED), "{what}");
            assert_eq!((again.warnings, &again.audit["skipped"]), (reply.warnings, &reply.audit["skipped"]));
        }
    }
}

#[test]
fn a_set_that_selects_the_pod_only_later_does_not_refuse_it_for_what_another_set_brought() {
    let spec = |name: &str, source: Value, label: &str, port: Value| {
        json!({
            "selector": {"matchLabels": {"app": null, label: "yes"}},
            "containers": [{"name": name, "image": "i:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}], "ports": port}],
            "volumes": [source],
        })
    };
    let host_port = json!([{"containerPort": 9, "hostPort": 9}]);
    for (early, late) in [
        (
            spec("a", json!({"name": "v", "emptyDir": {}}), "early", json!([])),
            spec("b", json!({"name": "v", "hostPath": {"path": "/x"}}), "late", json!([])),
        ),
        (
            spec("a", json!({"name": "v"}), "early", host_port.clone()),
            spec("b", json!({"name": "v"}), "late", host_port),
        ),
    ] {
        let cluster = Cluster::from_objects(&[set("a", early), set("b", late)]);
        let mut pod = pod(json!({}));
        pod["metadata"]["labels"] = json!({"late": "yes"});
        let mut first = cluster.mutate(&pod).pod;
        first["metadata"]["labels"]["early"] = json!("yes");
        let second = cluster.mutate(&first);
        assert_eq!(
            (second.decision, &second.audit["skipped"][..]),
            (Decision::Allowed, "a=SetConflict"),
            "{}",
            second.message
        );
    }
}

#[test]
fn host_ports_clash_only_where_both_would_be_taken() {
    let native = |ports: Value| json!({"name": "n", "image": "n:1", "restartPolicy": "Always", "ports": ports});
    let plain = |ports: Value| json!({"name": "n", "image": "n:1", "ports": ports});
    let host = |port: u16| json!([{"containerPort": port, "hostPort": port}]);
    let container = |ports: Value| json!({"containers": [{"name": "log", "image": "l:1", "ports": ports}]});
    let init = |container: Value| json!({"containers": null, "initContainers": [container]});
    let app = |ports: Value| json!({"containers": [{"name": "app", "image": "a:1", "ports": ports}]});
    for (spec, pod_spec, clash) in [
        (container(host(80)), app(host(80)), true),
        (container(host(80)), app(host(81)), false),
        (container(host(80)), app(json!([{"containerPort": 80}])), false),
        (container(host(80)), app(json!([{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}])), false),
        (container(host(80)), app(json!([{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}])), true),
        (container(host(80)), app(json!([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}])), true),
        (
            container(json!([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.2"}])),
            app(json!([{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}])),
            false,
        ),
        (
            container(json!([{"containerPort": 80, "hostPort": 0}])),
            app(json!([{"containerPort": 80, "hostPort": 0}])),
            false,
        ),
        // A plain init container has ended when the others start; a native sidecar has not.
        (init(plain(host(80))), app(host(80)), false),
        (init(native(host(80))), app(host(80)), true),
        (container(host(80)), json!({"initContainers": [plain(host(80))]}), false),
        (container(host(80)), json!({"initContainers": [native(host(80))]}), true),
    ] {
        let reply = Cluster::from_objects(&[set("s", spec.clone())]).mutate(&pod(pod_spec.clone()));
        let expected = if clash { reasons::PORT_CLASH } else { reasons::INJECTED };
        assert_eq!(reply.reason, expected, "{spec} {pod_spec}");
    }
}

#[test]
fn with_the_nodes_network_a_set_may_clash_with_itself() {
    let ports = json!([{"containerPort": 80}]);
    let native = json!({"name": "n", "image": "n:1", "restartPolicy": "Always", "ports": ports});
    let plain = json!({"name": "p", "image": "p:1", "ports": ports});
    let container = json!({"name": "c", "image": "c:1", "ports": ports});
    for (inits, containers, fits) in [
        (json!([plain]), json!([container]), true),
        (json!([native]), json!([container]), false),
        (json!([plain, native]), json!([]), true),
        (
            json!([{"name": "p", "image": "p:1", "ports": [{"containerPort": 80}, {"containerPort": 80}]}]),
            json!([]),
            false,
        ),
    ] {
        let cluster = Cluster::from_objects(&[set("s", json!({"initContainers": inits, "containers": containers}))]);
        let expected = if fits { reasons::INJECTED } else { reasons::PORT_CLASH };
        assert_eq!(cluster.mutate(&pod(json!({"hostNetwork": true}))).reason, expected, "{inits} {containers}");
        assert_eq!(cluster.mutate(&pod(json!({}))).reason, reasons::INJECTED, "{inits} {containers}");
    }
}

#[test]
fn equal_container_ports_are_a_warning() {
    let ports = json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP", "name": "again"}, {"containerPort": 53, "protocol": "UDP"}]);
    let container = |name: &str| json!({"containers": [{"name": name, "image": "i:1", "ports": ports}]});
    let cluster = Cluster::from_objects(&[set("s", container("log"))]);
    let app = json!([{"name": "app", "image": "a:1", "ports": [{"containerPort": 80}, {"containerPort": 53}]}]);
    let reply = cluster.mutate(&pod(json!({"containers": app})));
    assert_eq!(reply.reason, reasons::INJECTED);
    assert_eq!(
        reply.warnings,
        [
            "PortShared: container \"log\" of SidecarSet \"s\" and container \"app\" both name port 80; only one of them can \
          listen on it"
        ]
    );
    assert_eq!(cluster.mutate(&reply.pod).warnings, [""; 0]);
    let two = Cluster::from_objects(&[set("s", container("log")), set("t", container("tap"))]).mutate(&pod(json!({})));
    assert_eq!(two.warnings.len(), 2, "{:?}", two.warnings);
    assert!(two.warnings[0].contains("\"tap\" of SidecarSet \"t\" and container \"log\""), "{:?}", two.warnings);
}
