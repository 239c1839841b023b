//! Maps with nothing in them. Where the API's Go type is a pointer, an empty one says something.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::is_same_volume;
use super::{Case, container};
use crate::sidecarset::compiled::VolumePiece;

#[test]
fn an_empty_map_in_a_container_is_not_the_lack_of_it() {
    for (own, change) in [
        (json!({"securityContext": {"seLinuxOptions": {}}}), json!({"securityContext": {"seLinuxOptions": null}})),
        (json!({"securityContext": {"seLinuxOptions": {}}}), json!({"securityContext": null})),
        (json!({"securityContext": null}), json!({"securityContext": {}})),
        (json!({}), json!({"securityContext": {"seLinuxOptions": {}}})),
        (json!({}), json!({"securityContext": {"seLinuxOptions": {"level": ""}}})),
        (json!({}), json!({"securityContext": {"capabilities": {"drop": []}}})),
        (json!({}), json!({"fieldOfTomorrow": {}})),
        (json!({}), json!({"livenessProbe": {"fieldOfTomorrow": {}}})),
        (json!({}), json!({"lifecycle": {"postStart": {}}})),
        (
            json!({}),
            json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired", "fieldOfTomorrow": {}}]}),
        ),
        (json!({}), json!({"resources": {"fieldOfTomorrow": {}}})),
        (json!({}), json!({"env": [{"name": "MODE", "value": "enforce", "valueFrom": {}}, container()["env"][1]]})),
    ] {
        let mut ours = container();
        json_patch::merge(&mut ours, &own);
        assert!(Case { ours, ..Case::default() }.with(change.clone()).is_some(), "{own} {change}");
    }
}

#[test]
fn what_go_leaves_out_or_always_writes_in_a_container_is_no_difference() {
    for (own, change) in [
        (json!({"resources": null}), json!({"resources": {}})),
        (json!({"resources": {}}), json!({"resources": null})),
        (json!({"resources": null}), json!({"resources": {"limits": {}, "requests": {}, "claims": []}})),
        (
            json!({"securityContext": {"capabilities": {"add": []}}}),
            json!({"securityContext": {"capabilities": {"add": null}}}),
        ),
        (
            json!({"securityContext": {"procMount": null, "runAsUser": null}}),
            json!({"securityContext": {"procMount": "Default"}}),
        ),
        (json!({"securityContext": {"seLinuxOptions": {}}}), json!({})),
        (
            json!({"securityContext": {"seLinuxOptions": {"level": null}}}),
            json!({"securityContext": {"seLinuxOptions": {}}}),
        ),
        (json!({"command": []}), json!({"command": null})),
    ] {
        let mut ours = container();
        json_patch::merge(&mut ours, &own);
        // Not by a patch, in which a null takes away.
        if let (Some(ours), Some(own)) = (ours.as_object_mut(), own.as_object()) {
            ours.extend(own.clone());
        }
        assert_eq!(Case { ours, ..Case::default() }.with(change.clone()), None, "{own} {change}");
    }
}

fn is_same(ours: &Value, found: &Value) -> bool {
    let named = |source: &Value| {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        volume
    };
    let found = RawValue::from_string(named(found).to_string()).unwrap();
    is_same_volume(&found, &VolumePiece::of(named(ours).as_object().unwrap()))
}

#[test]
fn an_empty_map_in_a_volume_is_not_the_lack_of_it() {
    let bundle = |more: Value| {
        let mut bundle = json!({"signerName": "a.b/c", "path": "ca.pem"});
        json_patch::merge(&mut bundle, &more);
        json!({"projected": {"sources": [{"clusterTrustBundle": bundle}]}})
    };
    let claim = |spec: Value| json!({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}});
    for (one, other) in [
        // Unset selects nothing, empty everything.
        (bundle(json!({})), bundle(json!({"labelSelector": {}}))),
        (bundle(json!({"labelSelector": {"matchLabels": {"a": ""}}})), bundle(json!({"labelSelector": {}}))),
        (claim(json!({})), claim(json!({"selector": {}}))),
        (json!({"csi": {"driver": "d"}}), json!({"csi": {"driver": "d", "nodePublishSecretRef": {}}})),
        (json!({"csi": {"driver": "d"}}), json!({"csi": {"driver": "d", "nodePublishSecretRef": {"name": ""}}})),
        (json!({"configMap": {"name": "c"}}), json!({"configMap": {"name": "c", "fieldOfTomorrow": {}}})),
        (json!({"emptyDir": {}}), json!({"emptyDir": {"fieldOfTomorrow": {}}})),
        (json!({"emptyDir": {}}), json!({"fieldOfTomorrow": {}})),
        (json!({"configMap": {"name": "c"}}), json!({"configMap": {"name": "c"}, "fieldOfTomorrow": {}})),
    ] {
        assert!(!is_same(&one, &other), "{one} {other}");
        assert!(!is_same(&other, &one), "{other} {one}");
        assert!(is_same(&one, &one) && is_same(&other, &other));
    }
}

#[test]
fn what_go_leaves_out_or_always_writes_in_a_volume_is_no_difference() {
    let claim = |template: Value| json!({"ephemeral": {"volumeClaimTemplate": template}});
    for (ours, found) in [
        (json!({}), json!({"emptyDir": {}})),
        (
            claim(json!({"spec": {"storageClassName": "x"}})),
            claim(json!({
                "metadata": {"creationTimestamp": null},
                "spec": {"storageClassName": "x", "resources": {}, "volumeMode": "Filesystem"},
            })),
        ),
        (
            claim(
                json!({"metadata": {"labels": {}}, "spec": {"selector": {"matchLabels": {}}, "resources": {"limits": {}}}}),
            ),
            claim(json!({"metadata": {}, "spec": {"selector": {}, "resources": {}}})),
        ),
        (json!({"csi": {"driver": "d", "volumeAttributes": {}}}), json!({"csi": {"driver": "d", "readOnly": false}})),
        (
            json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "p", "labelSelector": {"matchLabels": {}}}}]}}),
            json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "p", "labelSelector": {}}}], "defaultMode": 420}}),
        ),
        (
            json!({"projected": {"sources": [{"secret": {}}]}}),
            json!({"projected": {"sources": [{"secret": {"name": ""}}]}}),
        ),
    ] {
        assert!(is_same(&ours, &found), "{ours} {found}");
    }
}

#[test]
fn a_volume_that_cannot_be_read_is_no_volume_of_a_set() {
    let ours = json!({"name": "v", "configMap": {"name": "c"}});
    let ours = VolumePiece::of(ours.as_object().unwrap());
    for (text, expected) in [
        (r#"{"name":"v","configMap":{"name":"c"}}"#, true),
        (r#"{"name":"v","configMap":{"name":"c"},"x":null}"#, true),
        (r#"{"name":"v","configMap":{"name":"c"},"\ud800":null}"#, false),
        (r#"["v"]"#, false),
        ("null", false),
    ] {
        let found = RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(is_same_volume(&found, &ours), expected, "{text}");
    }
}

/// The admission plugin `AlwaysPullImages` changes volumes as it changes containers.
#[test]
fn an_image_in_a_volume_may_always_be_pulled() {
    let image = |reference: &str, policy: Value| json!({"image": {"reference": reference, "pullPolicy": policy}});
    for (ours, found, expected) in [
        (image("a:1", json!("IfNotPresent")), image("a:1", json!("Always")), true),
        (image("a:1", json!("Never")), image("a:1", json!("Always")), true),
        (image("a:1", Value::Null), image("a:1", json!("Always")), true),
        (image("a", json!("Never")), image("a", Value::Null), true),
        (image("a:1", json!("Always")), image("a:1", json!("Always")), true),
        (image("a:1", json!("Always")), image("a:1", Value::Null), false),
        (image("a:1", json!("IfNotPresent")), image("a:1", json!("Never")), false),
        (image("a:1", Value::Null), image("a:2", json!("Always")), false),
        (image("a:1", Value::Null), image("a:1", json!(["Always"])), false),
        (image("a:1", Value::Null), json!({"emptyDir": {}}), false),
        (json!({"emptyDir": {}}), image("a:1", json!("Always")), false),
    ] {
        assert_eq!(is_same(&ours, &found), expected, "{ours} {found}");
    }
    let both = json!({"image": {"reference": "a:1", "pullPolicy": "Always"}, "hostPath": {"path": "/"}});
    assert!(!is_same(&image("a:1", Value::Null), &both));
}
