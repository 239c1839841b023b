//! Pods that get the sidecar.

use serde_json::{Value, json};

use crate::process::eventually;
use crate::room::{POD, Room, SET, containers};

/// Everything that a first pod needs, in one file: nothing has seen the namespace before the pod comes.
const NAMESPACE_AND_POD: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: ROOM-made, labels: {team: ROOM}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: ROOM-made}
---
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: ROOM-made}
spec: {containers: [{name: app, image: 'app:1'}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ROOM-made}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: 'app:1'}]}
";

/// The container has a name of its own: by their labels alone, pods of other tests' sets may be selected by this one too.
const SET_BY_NAMESPACE: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {}
  namespaceSelector: {matchLabels: {team: ROOM}}
  containers: [{name: watcher, image: 'watcher:1'}]
";

#[test]
#[ignore = "needs a control plane: make test"]
fn a_namespace_and_its_pods_applied_in_one_go_carry_the_sidecar() {
    let room = Room::new("one-go");
    room.apply_set(SET_BY_NAMESPACE);
    // Not with --namespace: the manifest has namespaces of its own.
    let manifest = NAMESPACE_AND_POD.replace("ROOM", room.name());
    let (cluster, made) = (&room.stage.cluster, format!("{}-made", room.name()));
    // Server-side: the controller-manager makes the service account at the same time.
    cluster.kubectl_ok(&["apply", "--server-side", "--force-conflicts", "-f", "-"], Some(&manifest)).unwrap();
    let in_namespace = |args: &[&str]| cluster.kubectl_ok(&[&["--namespace", &made], args].concat(), None).unwrap();
    in_namespace(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    let pods: Value = serde_json::from_str(&in_namespace(&["get", "pods", "-o", "json"])).unwrap();
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.iter().map(containers).collect::<Vec<_>>(), [["watcher", "app"]; 3]);
    room.eventually_counts("all are counted", ["3", "3", "3"]);
    cluster.kubectl_ok(&["delete", "namespace", &made, "--wait=false"], None).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_dry_run_shows_the_injected_pod_and_stores_nothing() {
    let room = Room::new("dry-run");
    room.apply_set(SET);
    let before = room.get(&["sidecarset", room.name()]);
    let shown = room.kubectl_ok(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], Some(POD));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(containers(&shown), ["proxy", "app"]);
    assert_eq!(room.get(&["pods"])["items"], json!([]));

    // Once a real pod is counted, the count has had its chance.
    room.pod(POD);
    room.eventually_counts("only the pod that is there is counted", ["1", "1", "1"]);
    assert_eq!(before["status"]["matchedPods"], 0);
    let changed = room
        .kubectl_ok(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], Some(&SET.replace("proxy:1", "proxy:2")));
    let changed: Value = serde_json::from_str(&changed).unwrap();
    assert_eq!(changed["spec"]["containers"][0]["image"], "proxy:2");
    let after = room.get(&["sidecarset", room.name()]);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
}

/// Fields that no decision of ours reads, on the container that moves when the sidecar is put in front.
const POD_OF_A_NEWER_API: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: ROOM}}
spec:
  restartPolicy: OnFailure
  containers:
  - name: app
    image: app:1
RULES    resizePolicy:
    - {resourceName: cpu, restartPolicy: RestartContainer}
  - name: second
    image: second:1
    livenessProbe: {grpc: {port: 9000}, terminationGracePeriodSeconds: 7}
";

/// Container restart rules, which API servers before 1.35 refuse.
const RULES: &str = "    restartPolicy: Never
    restartPolicyRules:
    - action: Restart
      exitCodes: {operator: In, values: [42]}
";

#[test]
#[ignore = "needs a control plane: make test"]
fn fields_that_are_newer_than_our_types_stay_on_their_container() {
    let room = Room::new("newer");
    let minor = room.stage.cluster.minor_version();
    let knows_rules = minor >= 35;
    let manifest = POD_OF_A_NEWER_API.replace("RULES", if knows_rules { RULES } else { "" });
    // As it is without us.
    let plain = room.pod(&manifest.replace("app: ROOM", "app: nobody").replace("name: web", "name: plain"));
    // The pod ends, and the set's containers would be native sidecars in it.
    room.apply_set(&SET.replacen("spec:\n", "spec:\n  jobPods: Inject\n", 1));
    let pod = room.pod(&manifest);
    assert_eq!(containers(&pod), ["proxy", "app", "second"]);
    let without_token = |container: &Value| {
        let mut container = container.clone();
        // The name of its volume is random.
        container["volumeMounts"] = Value::Null;
        container
    };
    for (ours, theirs) in [(1, 0), (2, 1)] {
        let (ours, theirs) = (&pod["spec"]["containers"][ours], &plain["spec"]["containers"][theirs]);
        assert_eq!(without_token(ours), without_token(theirs));
    }
    let [proxy, app] = [0, 1].map(|index| &pod["spec"]["containers"][index]);
    assert_eq!(app.get("restartPolicyRules").is_some(), knows_rules);
    // An API server before 1.33 drops it from both pods.
    assert_eq!(app["resizePolicy"][0]["resourceName"] == "cpu", minor >= 33);
    for field in ["restartPolicyRules", "resizePolicy", "restartPolicy", "livenessProbe"] {
        assert!(proxy.get(field).is_none(), "{field} moved to the sidecar");
    }
}

const CLASHING: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: ROOM}}
  template:
    metadata: {labels: {app: ROOM}}
    spec: {containers: [{name: proxy, image: 'my-own:1'}]}
";

const CLASH: &str = r#"container "proxy" (image "proxy:1") of SidecarSet "ROOM" has the name of the pod's own container "proxy" (image "my-own:1"); rename one of them"#;

#[test]
#[ignore = "needs a control plane: make test"]
fn a_clash_refuses_the_pod_and_the_replica_set_says_why() {
    let room = Room::new("clash");
    room.apply_set(SET);
    room.apply(CLASHING);
    let text = CLASH.replace("ROOM", room.name());
    eventually("kubectl describe shows the refusal", || {
        room.kubectl_ok(&["describe", "replicasets"], None).contains(&text)
    });
    assert_eq!(room.get(&["pods"])["items"], json!([]));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_clash_that_may_be_skipped_is_a_warning_of_kubectl() {
    let room = Room::new("skipping");
    room.apply_set(&format!("{SET}  clashPolicy: Skip\n"));
    let label = format!("--labels=app={}", room.name());
    let output = room.kubectl(&["run", "proxy", "--image=my-own:1", &label], None);
    assert!(output.success(), "{}", output.stderr);
    let text = CLASH.replace("ROOM", room.name());
    assert_eq!(output.stderr, format!("Warning: ContainerClash: {text}\n"));
    assert_eq!(containers(&room.get(&["pod", "proxy"])), ["proxy"]);
}

/// One of everything that a set adds, beside a second set that goes first by its order.
const TWO_SETS: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {matchLabels: {app: ROOM}}
  initContainers:
  - {name: setup, image: 'setup:1'}
  - {name: mesh, image: 'mesh:1', restartPolicy: Always, ports: [{containerPort: 15001}]}
  containers:
  - name: proxy
    image: proxy:1
    env: [{name: MODE, value: sidecar}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts: [{name: cache, mountPath: /cache}]
    resources: {requests: {cpu: 10m}, limits: {memory: 64Mi}}
  - {name: shipper, image: 'shipper:1', podInjectPolicy: AfterAppContainer, volumeMounts: [{name: cache, mountPath: /logs}]}
  volumes: [{name: cache, emptyDir: {sizeLimit: 1Gi}}]
  imagePullSecrets: [{name: registry}]
---
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM-first}
spec:
  order: -1
  selector: {matchLabels: {app: ROOM}}
  containers: [{name: guard, image: 'guard:1'}]
";

#[test]
#[ignore = "needs a control plane: make test"]
fn everything_that_sets_add_is_taken_by_the_api_server_in_its_order() {
    let room = Room::new("whole");
    room.apply_set(TWO_SETS);
    eventually("the other set is observed too", || {
        let status = room.get(&["sidecarset", &format!("{}-first", room.name())])["status"].clone();
        status["observedGeneration"] == 1
    });
    let pod = room.pod(POD);
    assert_eq!(containers(&pod), ["guard", "proxy", "app", "shipper"]);
    let spec = &pod["spec"];
    let names = |list: &str| -> Vec<&str> {
        spec[list].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
    };
    assert_eq!(names("initContainers"), ["setup", "mesh"]);
    assert_eq!(spec["initContainers"][1]["restartPolicy"], "Always");
    assert!(names("volumes").contains(&"cache"));
    assert_eq!(names("imagePullSecrets"), ["registry"]);
    let env = spec["containers"][1]["env"].as_array().unwrap();
    assert_eq!(env.iter().map(|variable| &variable["name"]).collect::<Vec<_>>(), ["MODE", "POD", "IS_INJECTED"]);
    // What the API server adds to any pod, it adds to ours.
    let mounts_token = |container: &Value| container["volumeMounts"].to_string().contains("kube-api-access-");
    assert!(spec["containers"].as_array().unwrap().iter().all(mounts_token));
    room.kubectl_ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=120s"], None);
}
