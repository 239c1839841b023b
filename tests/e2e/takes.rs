//! Sets that take something from pods, or give them annotations, on a real API server: what it fills in makes no difference.

use serde_json::{Value, json};

use crate::process::eventually;
use crate::room::{Room, containers};

const CONFIGURATION: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: outrider-configuration, namespace: outrider-system}
data:
  SidecarSet_PatchPodMetadata_WhiteList: |
    {"rules": [{"selector": {"matchLabels": {"team": "ROOM"}}, "allowedAnnotationKeyExprs": ["^oom-score$"]}]}
"#;

/// A must: its validating webhook compares every field with what the API server stores.
const MUST: &str = r#"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM, labels: {team: ROOM}}
spec:
  selector: {matchLabels: {app: ROOM}}
  optOut: Denied
  containers:
  - name: agent
    image: 'agent:1'
    shareVolumePolicy: {type: enabled}
    shareServiceAccountToken: true
    transferEnv:
    - sourceContainerNameFrom: {fieldRef: {fieldPath: "metadata.labels['biz']"}}
      envNames: [SECRET, NODE]
  - name: hot
    image: 'hot:1'
    upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: 'empty:1'}
    transferEnv: [{sourceContainerName: web, envName: NODE}]
  patchPodMetadata:
  - annotations: {oom-score: '{"agent": 1}'}
    patchPolicy: MergePatchJson
"#;

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: ROOM, biz: web}
  annotations: {oom-score: '{"envoy": 2}'}
spec:
  containers:
  - name: web
    image: 'app:1'
    env:
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}
    volumeMounts: [{name: data, mountPath: /data, subPathExpr: $(NODE)}]
  volumes: [{name: data, emptyDir: {}}]
"#;

fn container<'p>(pod: &'p Value, name: &str) -> &'p Value {
    pod["spec"]["containers"].as_array().unwrap().iter().find(|container| container["name"] == name).unwrap()
}

fn names<'p>(container: &'p Value, list: &str, field: &str) -> Vec<&'p str> {
    container[list].as_array().unwrap().iter().map(|element| element[field].as_str().unwrap()).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_must_takes_from_a_pod_and_gives_it_annotations() {
    let room = Room::new("takes");
    let refused = room.kubectl(&["apply", "-f", "-"], Some(MUST));
    assert!(refused.stderr.contains("there is no key SidecarSet_PatchPodMetadata_WhiteList"), "{}", refused.stderr);
    let cluster = &room.stage.cluster;
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&CONFIGURATION.replace("ROOM", room.name()))).unwrap();
    eventually("the list is observed", || {
        room.kubectl(&["apply", "--dry-run=server", "-f", "-"], Some(MUST)).success()
    });
    room.apply_set(MUST);

    let pod = room.pod(POD);
    assert_eq!(containers(&pod), ["agent", "hot-1", "hot-2", "web"]);
    let agent = container(&pod, "agent");
    assert_eq!(names(agent, "env", "name"), ["IS_INJECTED", "NODE", "SECRET"]);
    assert_eq!(agent["env"][2]["valueFrom"]["secretKeyRef"], json!({"name": "s", "key": "k"}));
    let token = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert_eq!(names(agent, "volumeMounts", "mountPath"), ["/data", token]);
    assert_eq!(agent["volumeMounts"], container(&pod, "web")["volumeMounts"]);
    let hot = container(&pod, "hot-2");
    assert_eq!(hot["image"], "empty:1");
    assert_eq!(names(hot, "env", "name"), ["IS_INJECTED", "NODE", "SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"]);
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(annotations["oom-score"], r#"{"agent":1,"envoy":2}"#);
    assert_eq!(annotations["version.sidecarset.outrider.dev/hot-1"], "1");
    room.eventually_counts("the pod is counted", ["1", "1", "1"]);

    // A copy is the set's too, and a forged one is none.
    let mut copy = pod;
    copy["metadata"] =
        json!({"name": "copy", "labels": copy["metadata"]["labels"], "annotations": annotations_of(&copy)});
    copy.as_object_mut().unwrap().remove("status");
    room.kubectl_ok(&["create", "-f", "-"], Some(&copy.to_string()));
    copy["metadata"]["name"] = json!("forged");
    copy["spec"]["containers"][0]["env"][1] = json!({"name": "EXTRA", "value": "x"});
    let refused = room.kubectl(&["create", "-f", "-"], Some(&copy.to_string()));
    assert!(
        refused.stderr.contains("differs from what the set injects (image \"agent:1\") in env[EXTRA]"),
        "{}",
        refused.stderr
    );
}

fn annotations_of(pod: &Value) -> Value {
    pod["metadata"]["annotations"].clone()
}
