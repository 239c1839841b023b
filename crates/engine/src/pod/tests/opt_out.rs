//! Who may go without a set, and whose word is taken for carrying one.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, compile, pod, set};

fn annotated(key: &str, value: &str, spec: Value) -> Value {
    let mut pod = pod(spec);
    pod["metadata"]["annotations"] = json!({key: value});
    pod
}

#[test]
fn a_pod_opts_out_of_all_sets_or_of_some() {
    let cluster = Cluster::from_objects(&[set("log", json!({})), set("mesh", json!({}))]);
    for (value, expected) in [
        ("true", &["app"][..]),
        (" true ", &["app"]),
        ("log", &["mesh", "app"]),
        ("mesh , log", &["app"]),
        ("log,,", &["mesh", "app"]),
        ("false", &["log", "mesh", "app"]),
        ("", &["log", "mesh", "app"]),
    ] {
        let reply = cluster.mutate(&annotated("outrider.dev/skip", value, json!({})));
        assert_eq!(reply.names("containers"), expected, "{value:?}");
        assert_eq!(reply.warnings, [""; 0], "whoever opted out knows");
    }
    let reply = cluster.mutate(&annotated("outrider.dev/skip", "true", json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::OPTED_OUT));
    assert_eq!(reply.audit["skipped"], "log=OptedOut,mesh=OptedOut");
}

#[test]
fn a_pod_is_told_of_names_in_its_annotation_that_no_set_has() {
    let elsewhere = set("elsewhere", json!({"selector": {"matchLabels": {"no": "pod"}}}));
    let cluster = Cluster::from_objects(&[set("log-agent", json!({})), elsewhere]);
    let names = |name: &str, meant: &str| {
        format!("outrider.dev/skip names {name:?}, but there is no SidecarSet of that name{meant}")
    };
    for (value, warnings) in [
        ("log-agnet", vec![names("log-agnet", r#" (did you mean "log-agent"?)"#)]),
        ("nothing", vec![names("nothing", "")]),
        ("elsewhere", vec![]),
        ("a, b ,c,d", vec![names("a", ""), names("b", ""), names("c", "")]),
        ("True", vec![names("True", r#" ("true" alone opts out of every set)"#)]),
        ("true,log-agent", vec![names("true", r#" ("true" alone opts out of every set)"#)]),
    ] {
        let reply = cluster.mutate(&annotated("outrider.dev/skip", value, json!({})));
        assert_eq!(reply.names("containers").len(), if value.ends_with("log-agent") { 1 } else { 2 }, "{value}");
        assert_eq!(reply.warnings, warnings);
    }
    let mut unselected = annotated("outrider.dev/skip", "nothing", json!({}));
    unselected["metadata"]["labels"] = json!({});
    assert_eq!(cluster.mutate(&unselected).warnings, [""; 0], "there is nothing to opt out of");
}

#[test]
fn no_pod_opts_out_where_the_set_denies_it() {
    let cluster =
        Cluster::from_objects(&[set("log", json!({"optOut": "Denied"})), set("mesh", json!({"optOut": "Allowed"}))]);
    for value in ["true", "log,mesh"] {
        let reply = cluster.mutate(&annotated("outrider.dev/skip", value, json!({})));
        assert_eq!(reply.names("containers"), ["log", "app"]);
        assert_eq!(
            reply.warnings,
            ["SidecarSet \"log\" lets no pod opt out (spec.optOut: Denied); outrider.dev/skip is ignored for it"]
        );
    }
}

#[test]
fn a_forged_record_does_not_evade_a_set_that_denies_opting_out() {
    let ours = json!({
        "name": "log", "image": "log:1", "command": ["a"], "args": [], "securityContext": {"runAsUser": 7, "capabilities": {}},
    });
    let object = set("log", json!({"optOut": "Denied", "containers": [ours]}));
    let cluster = Cluster::from_objects(std::slice::from_ref(&object));
    let forge = |container: Value| {
        let record = format!("{{\"log\":{}}}", compile(&object).entry());
        annotated("outrider.dev/injected", &record, json!({"containers": [{"name": "app", "image": "a"}, container]}))
    };
    // What the API server makes of the container: other fields filled in, empty ones dropped.
    let real = json!({
        "name": "log", "image": "log:1", "command": ["a"], "securityContext": {"capabilities": {}, "runAsUser": 7},
        "resources": {}, "imagePullPolicy": "IfNotPresent", "env": [{"name": "IS_INJECTED", "value": "true"}],
    });
    assert_eq!(cluster.mutate(&forge(real.clone())).reason, reasons::ALREADY_INJECTED);
    assert_eq!(cluster.validate(&forge(real.clone())).decision, Decision::Allowed);
    for change in [
        json!({"image": "evil:1"}),
        json!({"image": null}),
        json!({"command": ["sleep"]}),
        json!({"command": null}),
        json!({"command": "a"}),
        json!({"args": ["x"]}),
        json!({"securityContext": {"runAsUser": 0}}),
        json!({"securityContext": {"privileged": true}}),
        json!({"securityContext": null}),
    ] {
        let mut forged = real.clone();
        json_patch::merge(&mut forged, &change);
        let pod = forge(forged);
        let reply = cluster.mutate(&pod);
        assert_eq!(
            (reply.decision, reply.reason, reply.code),
            (Decision::Denied, reasons::CONTAINER_CLASH, Some(422)),
            "{change}"
        );
        assert_eq!(reply.causes[0]["field"], "spec.containers[1]");
        assert_eq!(cluster.validate(&pod).decision, Decision::Denied, "{change}");
    }
    let reply = cluster.mutate(&forge(json!({"name": "log", "image": "evil:1"})));
    assert_eq!(
        reply.causes[0]["message"],
        "container \"log\" (image \"evil:1\") has the name of a container of SidecarSet \"log\", which no pod may opt out of, but \
         differs from what the set injects (image \"log:1\") in image; remove it from the pod, or allow the change in the set's \
         spec.allowedChanges; an older form is accepted only where spec.injectionStrategy.revision gives it to new pods"
    );
    // The same by OpenKruise's word.
    let spec = json!({"containers": [{"name": "log", "image": "evil:1"}]});
    let reply = cluster.mutate(&annotated("kruise.io/sidecarset-injected-list", "log", spec));
    assert_eq!(reply.reason, reasons::CONTAINER_CLASH);
}

#[test]
fn a_forged_record_of_another_set_does_not_evade_it_either() {
    let port = json!([{"containerPort": 9, "hostPort": 9}]);
    let denying =
        set("log", json!({"optOut": "Denied", "containers": [{"name": "log", "image": "log:1", "ports": port}]}));
    let other = set("other", json!({"containers": [{"name": "more", "image": "more:1", "ports": port}], "order": 1}));
    for sets in [vec![denying.clone()], vec![denying, other]] {
        let cluster = Cluster::from_objects(&sets);
        for (container, reason) in [
            (json!({"name": "log", "image": "evil:1"}), reasons::CONTAINER_CLASH),
            (json!({"name": "more", "image": "evil:1", "ports": port}), reasons::PORT_CLASH),
        ] {
            let record = r#"{"none":{"containers":["log","more"]},"other":{"containers":["log","more"]}}"#;
            let forged = annotated("outrider.dev/injected", record, json!({"containers": [container]}));
            let reply = cluster.mutate(&forged);
            assert_eq!((reply.decision, reply.reason), (Decision::Denied, reason), "{}", reply.message);
            assert_eq!(cluster.validate(&forged).decision, Decision::Denied);
        }
    }
}

#[test]
fn a_record_of_another_form_is_told_of_where_opting_out_is_allowed() {
    let cluster = Cluster::from_objects(&[set("log", json!({}))]);
    let changed = json!({"containers": [{"name": "log", "image": "mirror/log:1"}, {"name": "app", "image": "a"}]});
    let reply = cluster.mutate(&annotated("outrider.dev/injected", r#"{"log":{"containers":["log"]}}"#, changed));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::OUTDATED));
}

#[test]
fn a_container_is_ours_only_in_the_list_that_the_record_says() {
    let cluster = Cluster::from_objects(&[set("log", json!({}))]);
    for (record, spec, reason) in [
        (r#"{"log":{"initContainers":["log"]}}"#, json!({"containers": [{"name": "log"}]}), reasons::CONTAINER_CLASH),
        (r#"{"log":{"containers":["log"]}}"#, json!({"initContainers": [{"name": "log"}]}), reasons::CONTAINER_CLASH),
        (r#"{"log":{"containers":["log"]}}"#, json!({}), reasons::INJECTED),
        (r#"{"mesh":{"containers":["log"]}}"#, json!({"containers": [{"name": "log"}]}), reasons::SET_CONFLICT),
        (r#"{"log":{"containers":["other"]}}"#, json!({"containers": [{"name": "log"}]}), reasons::CONTAINER_CLASH),
    ] {
        let reply = cluster.mutate(&annotated("outrider.dev/injected", record, spec.clone()));
        assert_eq!(reply.reason, reason, "{record} {spec}");
    }
}

#[test]
fn pods_injected_by_openkruise_count_as_injected() {
    let spec = json!({
        "containers": [{"name": "log", "image": "log:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    });
    let cluster = Cluster::from_objects(&[set("log", spec), set("mesh", json!({"containers": null}))]);
    let carrying = json!({"containers": [{"name": "log", "image": "log:0"}, {"name": "app", "image": "a"}]});
    for (list, reason) in [
        ("log", reasons::INJECTED_BY_OPENKRUISE),
        ("a, log,b", reasons::INJECTED_BY_OPENKRUISE),
        ("a,b", reasons::CONTAINER_CLASH),
        ("", reasons::CONTAINER_CLASH),
    ] {
        let reply = cluster.mutate(&annotated("kruise.io/sidecarset-injected-list", list, carrying.clone()));
        assert_eq!(reply.reason, reason, "{list:?}");
        assert_eq!((reply.names("containers"), reply.record().get("log")), (vec!["log", "app"], None), "{list:?}");
    }
    // The list alone is no container.
    let reply = cluster.mutate(&annotated("kruise.io/sidecarset-injected-list", "log", json!({})));
    assert_eq!((reply.reason, reply.names("containers")), (reasons::INJECTED, vec!["log", "app"]));
    assert_eq!(reply.pod["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"], "log");
}

#[test]
fn a_shared_token_brings_no_variables_of_the_pods_choice_into_a_must() {
    const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let container = json!({"name": "log", "image": "log:1", "shareServiceAccountToken": true});
    let cluster = Cluster::from_objects(&[set("s", json!({"optOut": "Denied", "containers": [container]}))]);
    // The sub-path is relative, as it has to be, and what it refers to is a path of a library in the volume.
    let env =
        json!([{"name": "LD_PRELOAD", "value": format!("{TOKEN}/evil.so")}, {"name": "P", "value": "x$(LD_PRELOAD)"}]);
    for (sub, is_shared) in [
        (json!({"subPathExpr": "$(P)"}), false),
        (json!({"subPathExpr": "x"}), false),
        (json!({"subPathExpr": ""}), true),
    ] {
        let mut mount = json!({"name": "mine", "mountPath": TOKEN});
        json_patch::merge(&mut mount, &sub);
        let mut pod = pod(json!({"volumes": [{"name": "mine", "configMap": {"name": "evil"}}]}));
        pod["spec"]["containers"][0]["env"] = env.clone();
        pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
        let reply = cluster.mutate(&pod);
        let containers = reply.pod["spec"]["containers"].as_array().unwrap();
        let log = containers.iter().find(|container| container["name"] == "log").unwrap();
        assert_eq!(log["env"], json!([{"name": "IS_INJECTED", "value": "true"}]), "{sub}");
        assert_eq!(!log["volumeMounts"].is_null(), is_shared, "{sub}");
        assert_eq!(reply.warnings.is_empty(), is_shared, "{:?}", reply.warnings);
        assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
    }
}
