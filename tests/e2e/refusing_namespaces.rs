//! Namespaces that refuse new pods with a set: what its condition says, beside what the API server does.

use serde_json::Value;

use crate::process::eventually;
use crate::room::{POD, Room};

/// A pod that is in order at the level restricted, and has requests and limits of its own.
const HARDENED_POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: ROOM}}
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: app
    image: 'app:1'
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    resources: {requests: {cpu: 10m, memory: 1Mi}, limits: {cpu: 10m, memory: 1Mi}}
";

fn set(more: &str, container: &str) -> String {
    format!(
        "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {{name: ROOM}}
spec:
  namespace: ROOM
  selector: {{matchLabels: {{app: ROOM}}}}
  updateStrategy: {{type: NotUpdate}}
  {more}
  containers: [{{name: logger, image: 'logger:1'{container}}}]
"
    )
}

/// Reason and message of the condition.
fn degraded(room: &Room) -> (String, String) {
    let set = room.get(&["sidecarset", room.name()]);
    let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found: Value = conditions.into_iter().find(|it| it["type"] == "Degraded").unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

/// What the condition says is so: waits until it says this, and creates a pod, which is refused with these words.
fn is_refused(room: &Room, said: &str, by_api_server: &str) {
    let said = said.replace("ROOM", room.name());
    eventually(&format!("the condition says {said}"), || {
        let (reason, message) = degraded(room);
        reason == "NewPodsRefused" && message.contains(&said)
    });
    // The API server follows levels, ranges and quotas by watches of its own.
    eventually(&format!("the API server says {by_api_server}"), || {
        let output = room.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(HARDENED_POD));
        !output.success() && output.stderr.contains(by_api_server)
    });
}

/// Waits until the condition says that nothing is refused, and creates a pod.
fn is_admitted(room: &Room) {
    eventually("nothing is refused", || degraded(room) == ("AsExpected".to_owned(), String::new()));
    let names = "jsonpath={.spec.containers[*].name}";
    eventually("the API server takes a pod", || {
        let created = room.kubectl(&["create", "--dry-run=server", "-f", "-", "-o", names], Some(HARDENED_POD));
        created.success() && created.stdout == "logger app"
    });
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_condition_names_the_level_the_range_and_the_quota_that_refuse_new_pods_and_says_so_no_more_once_they_do_not() {
    let room = Room::new("refusing");
    let level = "pod-security.kubernetes.io/enforce";
    let label = |value: &str| {
        room.kubectl_ok(&["label", "--overwrite", "namespace", room.name(), &format!("{level}{value}")], None);
    };
    room.apply_set(&set("", ""));
    is_admitted(&room);

    label("=restricted");
    is_refused(
        &room,
        "namespace ROOM enforces the pod security level restricted: container logger: allowPrivilegeEscalation is not false",
        "violates PodSecurity",
    );
    room.apply_set(&set("podSecurity: Complete", ""));
    is_admitted(&room);
    room.apply_set(&set("podSecurity: Complete", ", securityContext: {privileged: true}"));
    is_refused(&room, "container logger: privileged is true", "violates PodSecurity");
    label("-");
    is_admitted(&room);

    room.apply_set(&set("", ", resources: {limits: {memory: 128Mi}}"));
    room.apply(
        "{apiVersion: v1, kind: LimitRange, metadata: {name: small}, \
          spec: {limits: [{type: Container, max: {memory: 64Mi}}]}}",
    );
    is_refused(
        &room,
        "LimitRange small of namespace ROOM: container logger: maximum memory usage per Container is 64Mi, but limit is 128Mi",
        "maximum memory usage per Container is 64Mi, but limit is 128Mi",
    );
    room.apply_set(&set("", ", resources: {limits: {memory: 64Mi}}"));
    is_admitted(&room);
    room.kubectl_ok(&["delete", "limitrange", "small"], None);

    room.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {requests.cpu: '1'}}}");
    is_refused(
        &room,
        "ResourceQuota few of namespace ROOM: container logger has no requests.cpu, which the quota demands",
        "must specify requests.cpu for: logger",
    );
    room.apply_set(&set("", ", resources: {requests: {cpu: '2'}}"));
    is_refused(&room, "container logger needs more requests.cpu than is left", "exceeded quota: few");
    room.apply_set(&set("", ", resources: {requests: {cpu: 500m}}"));
    is_admitted(&room);
    // A pod that the set does not select uses the rest.
    let other = POD.replace("name: web", "name: other").replace("app: ROOM", "app: other");
    room.apply(&other.replace("'app:1'", "'app:1', resources: {requests: {cpu: 600m}}"));
    is_refused(&room, "container logger needs more requests.cpu than is left", "exceeded quota: few");
    room.kubectl_ok(&["delete", "resourcequota", "few"], None);
    is_admitted(&room);
}
