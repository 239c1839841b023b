//! One cluster and one Outrider for many tests, and a room in it for each.

use std::sync::OnceLock;

use cluster::{Cluster, Namespace, Options, Output};
use serde_json::{Value, json};

use crate::process::{Outrider, at_rest, eventually, install, outrider, service_account};

/// Who Outrider is for the API server.
pub const USER: &str = "system:serviceaccount:outrider-system:outrider";

/// What `--register-webhooks` needs beyond the printed roles, for a process outside the cluster.
const REGISTERING: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: registering}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [create, delete, list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: registering}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: registering}
subjects: [{kind: ServiceAccount, name: outrider, namespace: outrider-system}]
";

/// Gives the account what a process outside the cluster has that registers itself: further rights, and no policies that keep them
/// from being used.
pub fn may_register(cluster: &Cluster) {
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(REGISTERING)).unwrap();
    let policies = outrider(&["manifests", "policies"]);
    cluster.kubectl_ok(&["delete", "-f", "-"], Some(&policies)).unwrap();
    // The API server follows its policies by a watch, so that one that is gone is in force for a moment.
    let probe = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "probe"},
    });
    let as_account = format!("--as={USER}");
    let create = ["create", "--dry-run=server", as_account.as_str(), "-f", "-"];
    eventually("no policy limits the account", || {
        cluster.kubectl(&create, Some(&probe.to_string())).unwrap().success()
    });
}

/// A whole cluster, and one Outrider outside it with the printed roles. Both end with the test process.
pub struct Stage {
    pub cluster: Cluster,
    pub outrider: Outrider,
}

impl Stage {
    fn set_up() -> Self {
        let cluster = Cluster::start_with(&Options { audit: true, ..Options::default() }).unwrap();
        install(&cluster);
        let account = service_account(&cluster);
        may_register(&cluster);
        let outrider = Outrider::registered_as(&cluster, &account, &["--leader-elect"]);
        outrider.ready();
        outrider.called(&cluster);
        Self { cluster, outrider }
    }
}

/// A namespace for one test. Its name, which is also the name of the test's set and the label that the set selects by, replaces
/// `ROOM` in every manifest.
pub struct Room {
    pub stage: &'static Stage,
    pub namespace: Namespace<'static>,
}

impl Room {
    /// On the stage that all tests share.
    pub fn new(prefix: &str) -> Self {
        static STAGE: OnceLock<Stage> = OnceLock::new();
        let stage = STAGE.get_or_init(Stage::set_up);
        Self { stage, namespace: stage.cluster.namespace(prefix).unwrap() }
    }

    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    fn text(&self, manifest: &str) -> String {
        manifest.replace("ROOM", self.name())
    }

    /// Runs kubectl in the namespace.
    pub fn kubectl(&self, args: &[&str], manifest: Option<&str>) -> Output {
        let manifest = manifest.map(|manifest| self.text(manifest));
        self.namespace.kubectl(args, manifest.as_deref()).unwrap()
    }

    /// Runs kubectl, which succeeds, and gives what it printed.
    pub fn kubectl_ok(&self, args: &[&str], manifest: Option<&str>) -> String {
        let output = self.kubectl(args, manifest);
        assert!(output.success(), "kubectl {}: {}", args.join(" "), output.stderr);
        output.stdout
    }

    pub fn apply(&self, manifest: &str) {
        self.kubectl_ok(&["apply", "-f", "-"], Some(manifest));
    }

    /// Applies the room's set and waits until Outrider goes by it.
    pub fn apply_set(&self, manifest: &str) {
        self.apply(manifest);
        eventually("the set is observed", || {
            let set = self.get(&["sidecarset", self.name()]);
            set["status"]["observedGeneration"] == set["metadata"]["generation"]
        });
    }

    /// The room's set once nothing is written into it any more: what follows from its last change may come in several writes.
    pub fn set_at_rest(&self) -> Value {
        at_rest("the set is at rest", || self.get(&["sidecarset", self.name()]))
    }

    /// An object, or a list.
    pub fn get(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.kubectl_ok(&[&["get", "-o", "json"], args].concat(), None)).unwrap()
    }

    /// Applies a pod and gives it as it was stored.
    pub fn pod(&self, manifest: &str) -> Value {
        serde_json::from_str(&self.kubectl_ok(&["apply", "-f", "-", "-o", "json"], Some(manifest))).unwrap()
    }

    /// The room's set as `kubectl get sidecarset` shows it, without its age.
    pub fn row(&self) -> Vec<String> {
        let table = self.kubectl_ok(&["get", "sidecarset", self.name()], None);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["NAME", "MATCHED", "UPDATED", "READY", "AGE"], "{table}");
        lines[1][1..4].iter().map(ToString::to_string).collect()
    }

    /// Waits until `kubectl get sidecarset` shows these numbers.
    pub fn eventually_counts(&self, what: &str, matched_updated_ready: [&str; 3]) {
        eventually(&format!("{what}: {matched_updated_ready:?}"), || self.row() == matched_updated_ready);
    }

    /// The audit event of a pod's creation.
    pub fn audit_of_pod(&self, name: &str) -> Value {
        let of_pod = json!({"resource": "pods", "namespace": self.name(), "name": name});
        let fits = |event: &Value| {
            let object = &event["objectRef"];
            event["verb"] == "create" && of_pod.as_object().unwrap().iter().all(|(key, value)| object[key] == *value)
        };
        let mut found = None;
        eventually("the audit event is written", || {
            found = self.stage.cluster.audit_events().unwrap().into_iter().find(fits);
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- outrider, which other tests use too\n{}", self.stage.outrider.log_tail());
        }
    }
}

/// Names of a pod's containers, in order.
pub fn containers(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers.iter().map(|container| container["name"].as_str().unwrap()).collect()
}

/// A pod that the set of the room selects.
pub const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: ROOM}}
spec: {containers: [{name: app, image: 'app:1'}]}
";

/// A set with one container in front.
pub const SET: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {matchLabels: {app: ROOM}}
  containers: [{name: proxy, image: 'proxy:1'}]
";

/// A workload that the set of the room selects.
pub const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: ROOM}}
  template:
    metadata: {labels: {app: ROOM}}
    spec: {containers: [{name: app, image: 'app:1'}]}
";
