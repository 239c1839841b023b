//! What is added beside containers: environment, pull secrets, the record; and to pods that have nothing.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, compile, pod, set};

#[test]
fn injected_containers_are_marked_once() {
    let mark = json!({"name": "IS_INJECTED", "value": "true"});
    for (env, expected) in [
        (json!(null), json!([mark])),
        (json!([]), json!([mark])),
        (json!([{"name": "A", "value": "1"}]), json!([{"name": "A", "value": "1"}, mark])),
        (json!([{"name": "IS_INJECTED", "value": "no"}]), json!([{"name": "IS_INJECTED", "value": "no"}])),
        (
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}, "tomorrow": 1}]),
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}, "tomorrow": 1}, mark]),
        ),
    ] {
        let container = json!({"name": "log", "image": "l:1", "env": env});
        for list in ["containers", "initContainers"] {
            let cluster = Cluster::from_objects(&[set("s", json!({"containers": null, list: [container]}))]);
            let reply = cluster.mutate(&pod(json!({})));
            assert_eq!(reply.pod["spec"][list][0]["env"], expected, "{list} {env}");
        }
    }
}

#[test]
fn fields_that_steer_injection_do_not_reach_the_pod() {
    let container = json!({
        "name": "log", "image": "l:1", "podInjectPolicy": "AfterAppContainer", "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
        "shareVolumePolicy": {"type": "disabled"}, "shareVolumeDevicePolicy": {"type": "disabled"}, "transferEnv": [],
        "resourcesPolicy": null,
    });
    let reply = Cluster::from_objects(&[set("s", json!({"containers": [container]}))]).mutate(&pod(json!({})));
    assert_eq!(
        reply.pod["spec"]["containers"][1],
        json!({"name": "log", "image": "l:1", "env": [{"name": "IS_INJECTED", "value": "true"}]})
    );
}

#[test]
fn case_40_pull_secrets_are_added_once_behind_the_pods_own() {
    let secrets = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
    for (own, of_set, expected) in [
        (secrets(&["s2", "s3", "s3"]), secrets(&["s0", "s1", "s2"]), &["s2", "s3", "s3", "s0", "s1"][..]),
        (secrets(&["s3", "s4", "s5"]), secrets(&["s0", "s1", "s2"]), &["s3", "s4", "s5", "s0", "s1", "s2"]),
        (json!(null), secrets(&["s0", "s1", "s2"]), &["s0", "s1", "s2"]),
        (json!(null), secrets(&["s0", "s1", "s0"]), &["s0", "s1"]),
        (json!([]), secrets(&["s0"]), &["s0"]),
        (secrets(&["s3"]), json!(null), &["s3"]),
    ] {
        let cluster = Cluster::from_objects(&[
            set("a", json!({"imagePullSecrets": of_set})),
            // Another set with the same secrets adds nothing to them.
            set("b", json!({"imagePullSecrets": of_set})),
        ]);
        let reply = cluster.mutate(&pod(json!({"imagePullSecrets": own})));
        assert_eq!(reply.names("imagePullSecrets"), expected, "{own} {of_set}");
    }
}

#[test]
fn null_and_absent_and_empty_are_the_same() {
    let volume = json!([{"name": "v", "emptyDir": {}}]);
    let container = json!({"name": "log", "image": "l:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let init = json!({"name": "init", "image": "l:1"});
    let spec = json!({"containers": [container], "initContainers": [init], "volumes": volume, "imagePullSecrets": [{"name": "p"}]});
    let cluster = Cluster::from_objects(&[set("s", spec)]);
    let own = json!([{"name": "app", "image": "a"}]);
    let bare = json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": own}});
    let expected = cluster.mutate(&bare).pod;
    assert_eq!(expected["spec"]["initContainers"][0]["name"], "init");
    for empty in [json!(null), json!([])] {
        let mut pod = bare.clone();
        for list in ["initContainers", "volumes", "imagePullSecrets"] {
            pod["spec"][list] = empty.clone();
        }
        pod["metadata"]["annotations"] = if empty.is_null() { Value::Null } else { json!({}) };
        assert_eq!(cluster.mutate(&pod).pod, expected, "{empty}");
    }
}

/// With a sidecar alone it would be a pod that the API server accepts.
#[test]
fn a_pod_without_containers_is_left_as_it_is_however_that_is_written() {
    let cluster = Cluster::from_objects(&[set("s", json!({}))]);
    let metadata = json!({"name": "p", "labels": {"app": "web"}});
    for spec in [json!(null), json!({}), json!({"containers": null}), json!({"containers": []})] {
        let reply = cluster.mutate(&json!({"metadata": metadata, "spec": spec}));
        assert_eq!((reply.reason, reply.patch.is_none()), (Reason::INVALID, true), "{spec}");
    }
    assert!(cluster.mutate(&json!({"metadata": metadata})).patch.is_none());
}

#[test]
fn a_pod_without_metadata_gets_the_metadata_it_needs() {
    let everywhere = json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]});
    let spec = json!({"selector": {"matchLabels": null}, "namespaceSelector": everywhere});
    let cluster = Cluster::from_objects(&[set("s", spec)]);
    let own = json!({"containers": [{"name": "app", "image": "a"}]});
    for pod in [json!({"spec": own}), json!({"metadata": null, "spec": own}), json!({"metadata": {}, "spec": own})] {
        let reply = cluster.mutate(&pod);
        assert_eq!(reply.names("containers"), ["s", "app"], "{pod}");
        assert_eq!(reply.record()["s"]["containers"], json!(["s"]), "{pod}");
        assert_eq!(cluster.mutate(&reply.pod).decision, Decision::Allowed, "{pod}");
    }
}

#[test]
fn the_record_names_what_was_added_and_keeps_what_others_wrote() {
    let spec = json!({"initContainers": [{"name": "i", "image": "i:1"}], "containers": [
        {"name": "b", "image": "b:1", "podInjectPolicy": "AfterAppContainer"}, {"name": "a", "image": "a:1"}]});
    let object = set("s", spec);
    let mut pod = pod(json!({}));
    pod["metadata"]["annotations"] = json!({"own/key~": "x", "outrider.dev/injected": r#"{"gone":{"hash": "v1:0"}}"#});
    let reply = Cluster::from_objects(std::slice::from_ref(&object)).mutate(&pod);
    let hash = compile(&object).hash;
    let digits = hash.strip_prefix("v1:").unwrap();
    assert_eq!(
        reply.pod["metadata"]["annotations"],
        json!({
            "own/key~": "x",
            "kubectl.kubernetes.io/default-container": "app",
            "outrider.dev/injected": format!(
                r#"{{"gone":{{"hash": "v1:0"}},"s":{{"containers":["a","b"],"hash":"{hash}","initContainers":["i"],"revision":"s-{digits}"}}}}"#
            ),
        })
    );
    assert_eq!(reply.warnings, [""; 0]);
    assert_eq!((reply.audit["reason"].as_str(), reply.audit["sets"].as_str()), ("Injected", "s"));
    assert!(!reply.audit.contains_key("skipped"));
}

#[test]
fn case_50_the_record_names_the_sets_that_select_the_pod_and_no_other() {
    let elsewhere = json!({"selector": {"matchLabels": {"app": "db"}}});
    let cluster = Cluster::from_objects(&[
        set("sidecarset1", json!({})),
        set("sidecarset2", elsewhere),
        set("sidecarset3", json!({})),
    ]);
    let reply = cluster.mutate(&pod(json!({})));
    let record = reply.record();
    assert_eq!(record.as_object().unwrap().keys().collect::<Vec<_>>(), ["sidecarset1", "sidecarset3"]);
    for name in ["sidecarset1", "sidecarset3"] {
        assert_eq!(record[name]["hash"], cluster.snapshot.sets.get(name).unwrap().hash.as_str(), "{name}");
    }
    assert_eq!(reply.audit["sets"], "sidecarset1,sidecarset3");
}

#[test]
fn sets_without_containers_change_nothing_that_they_do_not_hold() {
    let bare = Cluster::from_objects(&[set("s", json!({"containers": null}))]).mutate(&pod(json!({})));
    // No more than the record: without one the pod would count as one that lacks the set.
    assert_eq!((bare.decision, bare.patch.map(|patch| patch.as_array().unwrap().len())), (Decision::Patched, Some(1)));
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [], "imagePullSecrets": [{"name": "p"}]}))]);
    let first = cluster.mutate(&pod(json!({})));
    assert_eq!((first.reason, first.names("imagePullSecrets")), (reasons::INJECTED, vec!["p"]));
    assert_eq!(cluster.mutate(&first.pod).decision, Decision::Allowed);
}
