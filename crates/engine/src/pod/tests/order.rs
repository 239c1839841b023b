//! Where containers go.

use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn containers(names: &[(&str, &str)]) -> Value {
    names.iter().map(|(name, side)| json!({"name": name, "image": "i:1", "podInjectPolicy": side})).collect()
}

const BEFORE: &str = "BeforeAppContainer";
const AFTER: &str = "AfterAppContainer";

#[test]
fn containers_go_in_front_or_behind_as_written() {
    for (list, own, added, expected) in [
        ("containers", &["app"][..], &[("dns", BEFORE), ("log", AFTER)][..], &["dns", "app", "log"][..]),
        ("containers", &["app"], &[("s2", AFTER), ("s1", AFTER), ("n1", BEFORE)], &["n1", "app", "s2", "s1"]),
        ("containers", &["app"], &[("n1", BEFORE)], &["n1", "app"]),
        ("containers", &["app"], &[("s1", AFTER), ("s2", AFTER)], &["app", "s1", "s2"]),
        ("containers", &["app"], &[("s1", ""), ("s2", "")], &["s1", "s2", "app"]),
        ("initContainers", &["i0"], &[("i2", ""), ("i1", "")], &["i0", "i2", "i1"]),
        ("initContainers", &[], &[("a", ""), ("c", ""), ("b", "")], &["a", "c", "b"]),
        ("initContainers", &["p", "q"], &[("a", ""), ("c", ""), ("b", "")], &["p", "q", "a", "c", "b"]),
        ("initContainers", &["p", "q"], &[("a", AFTER), ("c", BEFORE), ("b", BEFORE)], &["c", "b", "p", "q", "a"]),
    ] {
        let own: Value = own.iter().map(|name| json!({"name": name, "image": "own:1"})).collect();
        let cluster = Cluster::from_objects(&[set("s", json!({"containers": null, list: containers(added)}))]);
        let reply = cluster.mutate(&pod(json!({list: own})));
        assert_eq!(reply.names(list), expected, "{list} {own} {added:?}");
        assert_eq!(reply.reason, reasons::INJECTED);
    }
}

#[test]
fn sets_follow_their_order_then_their_name() {
    let with = |name: &str, order: Value| {
        let (front, behind) = (format!("{name}-f"), format!("{name}-b"));
        let init = json!([{"name": format!("{name}-i"), "image": "i:1"}]);
        let both = containers(&[(&behind, AFTER), (&front, BEFORE)]);
        set(name, json!({"order": order, "containers": both, "initContainers": init}))
    };
    let mut sets =
        [with("zeta", json!(-1)), with("beta", json!(null)), with("alpha", json!(0)), with("early", json!(7))];
    for _ in 0..sets.len() {
        sets.rotate_left(1);
        let reply =
            Cluster::from_objects(&sets).mutate(&pod(json!({"initContainers": [{"name": "own", "image": "i:1"}]})));
        assert_eq!(
            reply.names("containers"),
            ["zeta-f", "alpha-f", "beta-f", "early-f", "app", "zeta-b", "alpha-b", "beta-b", "early-b"]
        );
        assert_eq!(reply.names("initContainers"), ["own", "zeta-i", "alpha-i", "beta-i", "early-i"]);
        assert_eq!(reply.audit["sets"], "zeta,alpha,beta,early");
    }
}

#[test]
fn native_sidecars_keep_their_restart_policy_and_their_place() {
    let mesh = json!({"name": "mesh", "image": "m:1", "restartPolicy": "Always", "podInjectPolicy": BEFORE});
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": null, "initContainers": [mesh]}))]);
    let own = json!({"name": "migrate", "image": "m:1", "restartPolicy": "Always", "restartPolicyRules": [{"x": 1}]});
    let reply = cluster.mutate(&pod(json!({"initContainers": [own]})));
    assert_eq!(
        reply.pod["spec"]["initContainers"],
        json!([
            {"name": "mesh", "image": "m:1", "restartPolicy": "Always", "env": [{"name": "IS_INJECTED", "value": "true"}]},
            own,
        ])
    );
}

#[test]
fn fields_newer_than_this_build_stay_on_their_element() {
    let original = json!({
        "apiVersion": "v1", "kind": "Pod", "fieldOfTomorrow": [null],
        "metadata": {"name": "web-0", "labels": {"app": "web"}, "annotations": {"a~b/c": "kept"}, "tomorrow": {}},
        "spec": {
            "initContainers": [{"name": "i", "image": "i:1", "tomorrow": 1}],
            "containers": [{"name": "app", "image": "a:1", "tomorrow": {"deep": [1, null, 2.5]}, "env": [{"name": "A", "t": 1}]}],
            "volumes": [{"name": "v", "sourceOfTomorrow": {"x": ""}}],
            "imagePullSecrets": [{"name": "own", "tomorrow": true}],
            "tomorrow": "x",
        },
    });
    let added = json!({
        "containers": [{"name": "log", "image": "l:1", "volumeMounts": [{"name": "logs", "mountPath": "/l"}], "newField": [1]}],
        "initContainers": [{"name": "first", "image": "f:1", "podInjectPolicy": BEFORE}],
        "volumes": [{"name": "logs", "emptyDir": {}, "newField": null}],
        "imagePullSecrets": [{"name": "pull"}],
    });
    let reply = Cluster::from_objects(&[set("s", added)]).mutate(&original);
    let mut expected = original;
    let mark = json!([{"name": "IS_INJECTED", "value": "true"}]);
    expected["spec"]["containers"] = json!([
        {"name": "log", "image": "l:1", "volumeMounts": [{"name": "logs", "mountPath": "/l"}], "newField": [1], "env": mark},
        expected["spec"]["containers"][0],
    ]);
    expected["spec"]["initContainers"] =
        json!([{"name": "first", "image": "f:1", "env": mark}, expected["spec"]["initContainers"][0]]);
    expected["spec"]["volumes"] =
        json!([expected["spec"]["volumes"][0], {"name": "logs", "emptyDir": {}, "newField": null}]);
    expected["spec"]["imagePullSecrets"] = json!([expected["spec"]["imagePullSecrets"][0], {"name": "pull"}]);
    expected["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"] = json!("app");
    expected["metadata"]["annotations"]["outrider.dev/injected"] =
        reply.pod["metadata"]["annotations"]["outrider.dev/injected"].clone();
    assert_eq!(reply.pod, expected);
}
