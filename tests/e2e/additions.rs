//! What follows from the pod and what its own containers get, on a real API server: what it fills in makes no difference, and what
//! it stores is legal.

use serde_json::{Value, json};

use crate::room::{Room, containers};

/// A must: its validating webhook compares every field with what the API server stores.
const MUST: &str = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {matchLabels: {app: ROOM}}
  optOut: Denied
  podSecurity: Complete
  resourceDefaults: {limits: {memory: 64Mi}, requests: {cpu: 10m}}
  containers:
  - name: proxy
    image: 'proxy:1'
    restartPolicy: OnFailure
    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]
    resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}]
    lifecycle: {preStop: {sleep: {seconds: 1}}}
    livenessProbe: {exec: {command: ['true']}}
    resourcesPolicy:
      targetContainersMode: sum
      resourcesExpr: {limits: {cpu: 'max(cpu*33.3%, 50m)', memory: 'memory*33.3%'}, requests: {cpu: 'cpu*10%'}}
  - {name: last, image: 'last:1', podInjectPolicy: AfterAppContainer}
  appContainers:
  - env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: LEVEL, value: info}]
    overwriteEnv: true
    volumeMounts: [{name: agent, mountPath: /agent}]
  podOverrides: {env: [LEVEL], imageTag: true, resources: {max: {cpu: '1'}}}
  volumes: [{name: agent, emptyDir: {}}]
";

/// `restartPolicy` of the pod is to be put in place of `RESTART`.
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: POD
  labels: {app: ROOM}
  annotations:
    outrider.dev/overrides: '{"last": {"image": "last:2", "resources": {"limits": {"cpu": "500m"}}}}'
spec:
  restartPolicy: RESTART
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: app
    image: 'app:1'
    env: [{name: LEVEL, value: debug}]
    resources: {limits: {cpu: 200m, memory: 100Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"#;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_must_that_follows_from_the_pod_is_stored_as_it_is_compared_in_a_namespace_of_the_level_restricted() {
    let room = Room::new("additions");
    room.kubectl_ok(&["label", "namespace", room.name(), "pod-security.kubernetes.io/enforce=restricted"], None);
    room.apply_set(MUST);
    for (pod_name, restart) in [("plain", "Always"), ("job", "Never")] {
        room.apply(&POD.replace("POD", pod_name).replace("RESTART", restart));
        let pod = room.get(&["pod", pod_name]);
        let all = names(&pod["spec"]["initContainers"]).into_iter().chain(containers(&pod)).collect::<Vec<_>>();
        let (list, expected, at) = if restart == "Always" {
            ("containers", vec!["proxy", "app", "last"], 2)
        } else {
            ("initContainers", vec!["proxy", "last", "app"], 1)
        };
        assert_eq!(all, expected, "{pod_name}");
        let (proxy, behind) = (&pod["spec"][list][0], &pod["spec"][list][at]);
        // A third of 100 MiB in whole bytes; the request follows from that of the app, which the API server took from its limit.
        assert_eq!(
            proxy["resources"],
            json!({"limits": {"cpu": "66m", "memory": "34917580"}, "requests": {"cpu": "20m", "memory": "34917580"}}),
        );
        assert_eq!(behind["image"], "last:2");
        assert_eq!(behind["resources"]["limits"], json!({"cpu": "500m", "memory": "64Mi"}));
        let app = pod["spec"]["containers"].as_array().unwrap().iter().find(|it| it["name"] == "app").unwrap();
        assert_eq!(names(&app["env"]), ["NODE", "LEVEL"]);
        assert_eq!(app["env"][1]["value"], "info");
        // Behind the token of the service account.
        assert_eq!(app["volumeMounts"][1], json!({"name": "agent", "mountPath": "/agent"}));
    }
    let asking = POD.replace("POD", "asking").replace("RESTART", "Always").replace("last:2", "evil:2");
    let refused = room.kubectl(&["apply", "-f", "-"], Some(&asking));
    assert!(refused.stderr.contains("changes last.image of SidecarSet"), "{}", refused.stderr);
}
