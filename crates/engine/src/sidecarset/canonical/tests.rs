//! The hash of a set.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sidecarset::compiled::used_volumes;
use crate::testing::compile;

fn hash(spec: &Value) -> String {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    compile(&json!({"metadata": {"name": "s"}, "spec": spec})).hash
}

fn rich() -> Value {
    json!({
        "containers": [{
            "name": "log", "image": "registry:5000/log:1", "args": ["-v"], "ports": [{"containerPort": 80}],
            "env": [{"name": "A"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}], "livenessProbe": {"httpGet": {"port": 80}},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}}, "fieldOfTomorrow": {"z": 1, "a": "é\"\n"},
        }],
        "initContainers": [{"name": "mesh", "image": "mesh", "restartPolicy": "Always", "startupProbe": {"grpc": {"port": 1}}}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}, {"name": "unused", "emptyDir": {}}],
        "imagePullSecrets": [{"name": "p"}],
    })
}

/// These values may never change: they are on the pods of every cluster, and an upgrade of Outrider that changed one would
/// make every pod of the set look outdated. What has to differ gets a prefix other than `v1:`.
#[test]
fn hashes_are_what_they_have_always_been() {
    let recorded = crate::yaml::read(include_str!("hashes.yaml")).unwrap();
    assert!(recorded.len() > 11, "{}", recorded.len());
    let mut seen = BTreeMap::new();
    for Recorded { what, spec, canonical, hash: expected } in
        recorded.into_iter().map(|it| serde_json::from_value(it.value).unwrap())
    {
        let (found, decoded) = (hash(&spec), serde_json::from_value(spec).unwrap());
        let text = super::text(&decoded, &used_volumes(&decoded));
        assert_eq!((text.as_str(), found.as_str()), (canonical.as_str(), expected.as_str()), "{what}");
        seen.entry(expected).or_insert_with(Vec::new).push(what);
    }
    let same: Vec<Vec<String>> = seen.into_values().filter(|what| what.len() > 1).collect();
    assert_eq!(
        same,
        [["one container", "one container with every default written out", "what is decided and not injected"]]
    );
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    what: String,
    spec: Value,
    canonical: String,
    hash: String,
}

#[test]
fn what_defaulting_fills_in_does_not_change_the_hash() {
    let mut full = rich();
    let container = &mut full["containers"][0];
    let probe = json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
        "successThreshold": 1, "failureThreshold": 3});
    json_patch::merge(
        container,
        &json!({
            "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "podInjectPolicy": "BeforeAppContainer", "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
            "shareVolumePolicy": {"type": "disabled"}, "shareVolumeDevicePolicy": {"type": "disabled"}, "transferEnv": [],
            "stdin": false, "resources": {}, "livenessProbe": probe,
            "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}},
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "env": [{"name": "A", "value": ""}, {"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": false}],
        }),
    );
    // A merge takes null for removal.
    container["command"] = Value::Null;
    full["initContainers"][0]["imagePullPolicy"] = json!("Always");
    full["initContainers"][0]["podInjectPolicy"] = json!("AfterAppContainer");
    full["initContainers"][0]["startupProbe"] = json!({"grpc": {"port": 1, "service": ""}, "timeoutSeconds": 1});
    full["volumes"][0]["secret"]["defaultMode"] = json!(420);
    full["order"] = json!(0);
    full["revisionHistoryLimit"] = json!(10);
    assert_eq!(hash(&full), hash(&rich()));
}

#[test]
fn only_what_is_injected_counts() {
    for changes in [
        json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        json!({"updateStrategy": {"paused": true}, "injectionStrategy": {"paused": true}, "order": 3, "clashPolicy": "Skip", "optOut": "Denied"}),
        json!({"namespaceSelector": {}}),
        json!({"jobPods": "Skip", "platform": "linux", "podSecurity": "AsWritten", "resourceDefaults": {"limits": {}}}),
        json!({"podOverrides": {"imageTag": true}, "appContainers": []}),
    ] {
        let mut spec = rich();
        json_patch::merge(&mut spec, &changes);
        assert_eq!(hash(&spec), hash(&rich()), "{changes}");
    }
}

#[test]
fn everything_that_is_injected_counts() {
    let mut seen = vec![hash(&rich())];
    for (pointer, value) in [
        ("/containers/0/image", json!("registry:5000/log:2")),
        ("/containers/0/name", json!("log2")),
        ("/containers/0/imagePullPolicy", json!("Always")),
        ("/containers/0/podInjectPolicy", json!("AfterAppContainer")),
        ("/containers/0/args", json!(["-vv"])),
        ("/containers/0/env/0/value", json!("x")),
        ("/containers/0/ports/0/protocol", json!("UDP")),
        ("/containers/0/fieldOfTomorrow/z", json!(2)),
        ("/containers/0/livenessProbe/periodSeconds", json!(11)),
        ("/initContainers/0/restartPolicy", json!(null)),
        ("/volumes/0/secret/secretName", json!("t")),
        ("/volumes/0/secret/defaultMode", json!(256)),
        ("/imagePullSecrets/0/name", json!("q")),
        ("/containers/1", json!({"name": "more", "image": "m:1"})),
        ("/initContainers/1", json!({"name": "plain", "image": "p:1"})),
    ] {
        let mut spec = rich();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        match spec.pointer_mut(parent).unwrap() {
            Value::Array(list) => list.push(value),
            parent => parent[field] = value,
        }
        let hash = hash(&spec);
        assert!(!seen.contains(&hash), "{pointer}");
        seen.push(hash);
    }
}

#[test]
fn the_order_of_containers_counts_and_that_of_fields_does_not() {
    let (a, b) = (json!({"name": "a", "image": "i:1"}), json!({"image": "i:1", "name": "b"}));
    let hash_of = |list: [&Value; 2]| hash(&json!({"containers": list}));
    assert_ne!(hash_of([&a, &b]), hash_of([&b, &a]));
    let turned = crate::yaml::read("{image: 'i:1', name: a}").unwrap().remove(0).value;
    assert_eq!(hash_of([&a, &b]), hash_of([&turned, &b]));
}

#[test]
fn our_own_defaulting_does_not_change_the_hash() {
    let volumes = json!([
        {"name": "e"}, {"name": "h", "hostPath": {"path": "/"}}, {"name": "i", "iscsi": {"iqn": "q", "lun": 1}},
        {"name": "r", "rbd": {"image": "x"}}, {"name": "a", "azureDisk": {"diskName": "d"}}, {"name": "o", "image": {"reference": "x"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]);
    let mounts: Value =
        volumes.as_array().unwrap().iter().map(|it| json!({"name": it["name"], "mountPath": it["name"]})).collect();
    let key = json!({"name": "K", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "e"}}});
    let images = ["a", "a:1", "a:latest", "a:latest@sha256:0", "A B", "r:5000/a"];
    let containers: Value = images
        .iter()
        .enumerate()
        .map(|(i, it)| json!({"name": format!("c{i}"), "image": it, "env": [key], "volumeMounts": mounts}))
        .collect();
    for spec in [json!({}), rich(), json!({"containers": containers, "volumes": volumes})] {
        let mut patch = admission::PatchBuilder::new(&json!({"metadata": {"name": "s"}, "spec": spec}));
        crate::sidecarset::defaults::fill(&mut patch).unwrap();
        assert_ne!(patch.document()["spec"], spec);
        assert_eq!(hash(&patch.document()["spec"]), hash(&spec), "{spec}");
    }
}

#[test]
fn what_the_spec_says_of_all_containers_counts() {
    let policy = |names: Value| {
        let expr = json!({"limits": {"cpu": "cpu"}});
        let policy = json!({"targetContainersMode": "sum", "targetContainersNameRegex": names, "resourcesExpr": expr});
        json!({"containers": [{"name": "log", "resourcesPolicy": policy}]})
    };
    assert_eq!(hash(&policy(json!(".*"))), hash(&policy(Value::Null)));
    assert_ne!(hash(&policy(json!("app"))), hash(&policy(Value::Null)));
    for changes in [
        json!({"resourceDefaults": {"limits": {"cpu": "1"}}}),
        json!({"podSecurity": "Complete"}),
        json!({"appContainers": [{"env": [{"name": "A"}]}]}),
    ] {
        let mut spec = rich();
        json_patch::merge(&mut spec, &changes);
        assert_ne!(hash(&spec), hash(&rich()), "{changes}");
    }
}

/// A revision holds what the hash is of.
#[test]
fn fields_that_are_injected_and_fields_of_the_hash_are_the_same() {
    let spec = json!({
        "containers": [{"name": "log", "image": "log:1"}], "initContainers": [{"name": "i", "image": "i:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}], "imagePullSecrets": [{"name": "s"}], "podSecurity": "Complete",
        "resourceDefaults": {"limits": {"cpu": "1"}}, "appContainers": [{"env": [{"name": "A", "value": "1"}]}],
        "patchPodMetadata": [{"annotations": {"a": "b"}}], "customVersion": "2", "order": 3,
    });
    let spec = serde_json::from_value(spec).unwrap();
    let mut hashed: Vec<String> = super::injected(&spec, &[]).as_object().unwrap().keys().cloned().collect();
    hashed.sort();
    let mut written: Vec<String> = super::injected_fields(&spec).into_iter().map(|(field, _)| field).collect();
    written.sort();
    assert_eq!(written, hashed);
    assert!(super::injected_fields(&serde_json::from_value(json!({})).unwrap()).is_empty());
}
