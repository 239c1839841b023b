//! What an older API server refuses.

use serde_json::{Value, json};

use super::{cluster, judged, set, with_container};
use crate::snapshot::Snapshot;

fn warnings(object: &Value, minor: Option<u32>) -> Vec<String> {
    let (errors, warnings) = judged(object, &Snapshot { minor_version: minor, ..cluster(&[]) });
    assert_eq!(errors, "", "{object}");
    warnings
}

fn native(fields: &Value) -> Value {
    let mut object = with_container(fields);
    object["spec"]["initContainers"] = object["spec"]["containers"].take();
    object["spec"].as_object_mut().unwrap().remove("containers");
    object
}

#[test]
fn a_value_is_warned_of_where_the_api_server_is_older_than_it() {
    let rule = |action: &str| json!({"restartPolicy": "Always", "restartPolicyRules": [{"action": action, "exitCodes": {"operator": "In", "values": [1]}}]});
    let file = json!({"volumeName": "data", "path": "env", "key": "A"});
    let cases = [
        (with_container(&json!({"env": [{"name": "A"}, {"name": "1st"}]})), "containers[0].env[1].name", 30..32),
        (with_container(&json!({"env": [{"name": "A B"}]})), "containers[0].env[0].name", 30..32),
        (
            with_container(&json!({"envFrom": [{"prefix": "1", "configMapRef": {"name": "c"}}]})),
            "containers[0].envFrom[0].prefix",
            30..32,
        ),
        (
            with_container(&json!({"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}})),
            "containers[0].lifecycle.preStop.sleep.seconds",
            30..33,
        ),
        (with_container(&json!({"restartPolicy": "Always"})), "containers[0].restartPolicy", 30..34),
        (native(&json!({"restartPolicy": "OnFailure"})), "initContainers[0].restartPolicy", 30..34),
        (
            with_container(&json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": file}}]})),
            "containers[0].env[0].valueFrom.fileKeyRef",
            30..35,
        ),
        (native(&rule("RestartAllContainers")), "initContainers[0].restartPolicyRules[0].action", 35..36),
        (native(&rule("Restart")), "", 0..0),
        (native(&json!({"restartPolicy": "Always"})), "", 0..0),
        (
            with_container(
                &json!({"env": [{"name": "with-dash.and_dot1"}], "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}),
            ),
            "",
            0..0,
        ),
    ];
    for (object, path, refused) in cases {
        assert_eq!(warnings(&object, None), Vec::<String>::new(), "{path}");
        for minor in 30..38 {
            let told = warnings(&object, Some(minor));
            if refused.contains(&minor) {
                let begin = format!("spec.{path}: the API server refuses pods with ");
                let version = format!(": it is Kubernetes 1.{minor}, and 1.3");
                let [only] = told.as_slice() else { panic!("{path} on 1.{minor}: {told:?}") };
                assert!(only.starts_with(&begin) && only.contains(&version), "{only}");
            } else {
                assert_eq!(told, Vec::<String>::new(), "{path} on 1.{minor}");
            }
        }
    }
}

#[test]
fn the_warning_names_both_versions() {
    let object = with_container(&json!({"restartPolicy": "Never"}));
    let expected = "spec.containers[0].restartPolicy: the API server refuses pods with a restartPolicy of a container that is no init \
                    container: it is Kubernetes 1.33, and 1.35 is the first that takes them";
    assert_eq!(warnings(&object, Some(33)), [expected]);
}

#[test]
fn very_many_are_counted_and_not_listed() {
    let names: Vec<Value> = (0..50).map(|number| json!({"name": format!("{number}st")})).collect();
    let told = warnings(&set(&json!({"containers": [{"name": "log", "image": "log:1", "env": names}]})), Some(30));
    assert_eq!(told.len(), 21);
    assert_eq!(told[20], "30 more values that Kubernetes 1.30 refuses are not listed");
}

#[test]
fn additions_to_the_pods_own_containers_are_warned_of_too() {
    let object = set(&json!({"appContainers": [{"env": [{"name": "1A", "value": ""}]}]}));
    let (errors, warnings) = judged(&object, &Snapshot { minor_version: Some(31), ..cluster(&[]) });
    assert_eq!(errors, "");
    assert!(warnings[0].starts_with("spec.appContainers[0].env[0].name: the API server refuses pods"), "{warnings:?}");
}

/// Before native sidecars the field is no field: the pod would wait for the container for ever.
#[test]
fn a_native_sidecar_is_warned_of_before_the_version_that_has_them() {
    let object = set(&json!({
        "containers": null,
        "initContainers": [{"name": "a", "image": "a", "restartPolicy": "Always"}, {"name": "b", "image": "b"}],
    }));
    for (minor, expected) in [(27, 1), (28, 1), (29, 0), (34, 0)] {
        let (errors, warnings) = judged(&object, &Snapshot { minor_version: Some(minor), ..cluster(&[]) });
        assert_eq!((errors.as_str(), warnings.len()), ("", expected), "{minor}: {warnings:?}");
        assert!(warnings.iter().all(|it| it.starts_with("spec.initContainers[0].restartPolicy: the API server drops")));
    }
}
