//! The way from OpenKruise in `docs/migration.md`: its commands, with both definitions and the webhooks of both.
//!
//! OpenKruise's programs are not here. A webhook under the name of OpenKruise's injects the container and writes the annotations.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install, outrider_on};
use crate::replicas::get;
use crate::room::containers;
use crate::toy_webhook::ToyWebhook;

const PAGE: &str = "docs/migration.md";

/// As much of OpenKruise's definition as an API server needs.
const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sidecarsets.apps.kruise.io}
spec:
  group: apps.kruise.io
  scope: Cluster
  names: {kind: SidecarSet, listKind: SidecarSetList, plural: sidecarsets, singular: sidecarset}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const SET: &str = r"
apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: log, annotations: {kruise.io/sidecarset-hash: 2bw9}}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: log, image: 'log:1'}]
";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: 'app:1'}]}
";

/// What OpenKruise's webhook does to a pod of the set.
fn inject(pod: &Value) -> Vec<Value> {
    let record = json!({"log": {"updateTimestamp": "2025-01-01T00:00:00Z", "hash": "2bw9", "sidecarSetName": "log", "sidecarList": ["log"]}});
    let mut annotations = pod["metadata"].get("annotations").cloned().unwrap_or_else(|| json!({}));
    annotations["kruise.io/sidecarset-injected-list"] = "log".into();
    annotations["kruise.io/sidecarset-hash"] = record.to_string().into();
    let container = json!({"name": "log", "image": "log:1", "env": [{"name": "IS_INJECTED", "value": "true"}]});
    vec![
        json!({"op": "add", "path": "/spec/containers/0", "value": container}),
        json!({"op": "add", "path": "/metadata/annotations", "value": annotations}),
    ]
}

/// The cluster, and somebody who reads the page.
struct Way<'c> {
    cluster: &'c Cluster,
    folder: tempfile::TempDir,
    path: OsString,
    injects: Arc<AtomicBool>,
}

impl<'c> Way<'c> {
    fn new(cluster: &'c Cluster) -> Self {
        let programs = [Path::new(env!("CARGO_BIN_EXE_outrider")), cluster.tools().program("kubectl")];
        let own = programs.map(|program| program.parent().unwrap().to_owned());
        let paths = own.into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>());
        let injects = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&injects);
        let openkruise = ToyWebhook::start(move |pod| {
            let is_selected = pod["metadata"]["labels"]["app"] == "web" && asked.load(Ordering::SeqCst);
            Some(if is_selected { inject(pod) } else { Vec::new() })
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "kruise-mutating-webhook-configuration"},
            "webhooks": [{
                "name": "mpod.kb.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": openkruise.url, "caBundle": STANDARD.encode(&openkruise.ca)},
                "namespaceSelector": {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            }],
        });
        cluster.kubectl_ok(&["apply", "-f", "-"], Some(&configuration.to_string())).unwrap();
        Self { cluster, folder: tempfile::tempdir().unwrap(), path: env::join_paths(paths).unwrap(), injects }
    }

    /// Runs the commands of a section, and has OpenKruise follow its set. Gives what the commands printed.
    fn follow(&self, heading: &str) -> String {
        let page = fs::read_to_string(PAGE).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
        let blocks: Vec<&str> =
            section.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(!blocks.is_empty(), "{heading} has no commands");
        let mut printed = String::new();
        for command in blocks.iter().flat_map(|block| block.lines()) {
            let mut shell = self.cluster.command("sh");
            shell.args(["-c", command]);
            let ran = shell.env("PATH", &self.path).current_dir(self.folder.path()).output().unwrap();
            let stderr = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{command}: {stderr}");
            printed.push_str(&String::from_utf8(ran.stdout).unwrap());
        }
        let stored = self.cluster.kubectl(&["get", "sidecarsets.apps.kruise.io", "log", "-o", "json"], None).unwrap();
        let set: Value = serde_json::from_str(&stored.stdout).unwrap_or_default();
        let is_paused = set["spec"]["injectionStrategy"]["paused"] == true;
        self.injects.store(!set.is_null() && !is_paused, Ordering::SeqCst);
        printed
    }

    fn pod(&self, name: &str) -> Value {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        self.cluster.kubectl_ok(&["create", "-f", "-"], Some(&pod.to_string())).unwrap();
        get(self.cluster, &["pod", name, "-n", "shop"])
    }

    fn pods(&self) -> Vec<Value> {
        let list = get(self.cluster, &["pods", "-n", "shop"]);
        let pods = list["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["metadata"].get("deletionTimestamp").is_none()).cloned().collect()
    }

    fn delete_pod(&self, name: &str) {
        self.cluster.kubectl_ok(&["delete", "pod", name, "-n", "shop", "--force", "--grace-period=0"], None).unwrap();
    }

    /// `[matched, updated]` of our set, where the status is about its present form.
    fn counts(&self) -> Option<[i64; 2]> {
        let set = get(self.cluster, &["sidecarsets.apps.outrider.dev", "log"]);
        let is_present = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        is_present.then(|| ["matchedPods", "updatedPods"].map(|field| set["status"][field].as_i64().unwrap_or(-1)))
    }
}

/// Who injected a pod, by the annotations, and the image of its sidecar.
fn by(pod: &Value) -> (bool, bool, String) {
    assert_eq!(containers(pod), ["log", "app"], "{pod}");
    let has = |key: &str| pod["metadata"]["annotations"].get(key).is_some();
    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
    (has("kruise.io/sidecarset-injected-list"), has("outrider.dev/injected"), image)
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_way_of_the_page_moves_a_set_from_openkruise_and_back() {
    let openkruises = (true, false, "log:1".to_owned());
    let ours = (false, true, "log:2".to_owned());
    let cluster = Cluster::start().unwrap();
    install(&cluster);
    // Without its revisions no set is rolled out, and that pods stay as they are would show nothing.
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    let outrider = Outrider::registered(&cluster);
    outrider.ready();
    outrider.called(&cluster);
    let migrate = |more: &[&str]| outrider_on(&cluster.kubeconfig(), &[&["migrate", "--cluster"], more].concat());
    let absent = migrate(&[]);
    assert_eq!(absent.code, Some(2), "{absent:?}");
    assert!(
        absent.stderr.contains("has no sidecarsets.apps.kruise.io: OpenKruise is not installed there"),
        "{absent:?}"
    );

    cluster.kubectl_ok(&["apply", "-f", "-"], Some(DEFINITION)).unwrap();
    cluster.wait_for_definitions().unwrap();
    let forbidden = migrate(&["--as=nobody"]);
    assert_eq!(forbidden.code, Some(2), "{forbidden:?}");
    assert!(forbidden.stderr.contains("does not list OpenKruise's SidecarSets"), "{forbidden:?}");
    let none = migrate(&[]);
    assert!(
        none.code == Some(2) && none.stderr.contains("no sidecarsets.apps.kruise.io object in the cluster"),
        "{none:?}"
    );

    let way = Way::new(&cluster);
    cluster.kubectl_ok(&["create", "namespace", "shop"], None).unwrap();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(SET)).unwrap();
    fs::write(way.folder.path().join("app.yaml"), DEPLOYMENT).unwrap();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(DEPLOYMENT)).unwrap();
    eventually("OpenKruise has injected two pods", || way.pods().len() == 2);

    way.follow("1. Print");
    let rendered = way.follow("2. Check");
    assert!(rendered.contains("image: log:1"), "{rendered}");
    way.follow("3. Apply");
    eventually("the pods of OpenKruise are counted", || way.counts() == Some([2, 0]));
    assert_eq!(by(&way.pod("both")), openkruises, "what OpenKruise has injected is not injected again");

    // No rollout of ours touches them, while OpenKruise's set is there.
    let newer = r#"{"spec":{"containers":[{"name":"log","image":"log:2"}]}}"#;
    cluster.kubectl_ok(&["patch", "oss", "log", "--type=merge", "-p", newer], None).unwrap();
    let progressing = || {
        let set = get(&cluster, &["oss", "log"]);
        let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition["type"] == "Progressing").unwrap_or_default();
        (found["observedGeneration"] == set["metadata"]["generation"]).then(|| found["reason"].clone())
    };
    eventually("the rollout passes them over", || progressing() == Some("InjectedByOpenKruise".into()));
    eventually("all pods of OpenKruise are counted", || way.counts() == Some([3, 0]));
    for pod in way.pods() {
        assert_eq!(by(&pod), openkruises);
        assert!(!pod["status"].to_string().contains("SidecarSetUpgradable"), "{pod}");
    }

    let listed = way.follow("4. Switch");
    assert!(listed.contains("both") && listed.contains("OPENKRUISE"), "{listed}");
    assert_eq!(by(&way.pod("switched")), ours);
    way.follow("Going back");
    assert_eq!(by(&way.pod("back")), openkruises);
    assert_eq!(by(&get(&cluster, &["pod", "switched", "-n", "shop"])), ours);
    way.follow("4. Switch");

    way.delete_pod("both");
    way.delete_pod("back");
    way.follow("5. Renew");
    eventually("every pod is ours", || way.pods().len() == 3 && way.pods().iter().all(|pod| by(pod) == ours));
    eventually("every pod is up to date", || way.counts() == Some([3, 3]));

    way.follow("6. Remove");
    assert!(way.pods().iter().all(|pod| by(pod) == ours));
    cluster.kubectl_ok(&["delete", "oss", "log"], None).unwrap();
    assert!(way.pods().iter().all(|pod| by(pod) == ours), "a set that goes leaves its pods as they are");
    outrider.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_that_openkruise_injected_are_left_alone_after_its_set_is_gone() {
    let cluster = Cluster::start().unwrap();
    install(&cluster);
    // Without its revisions no set is rolled out, and that pods stay as they are would show nothing.
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    let outrider = Outrider::registered(&cluster);
    outrider.ready();
    outrider.called(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(DEFINITION)).unwrap();
    cluster.wait_for_definitions().unwrap();
    let way = Way::new(&cluster);
    cluster.kubectl_ok(&["create", "namespace", "shop"], None).unwrap();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(SET)).unwrap();
    assert_eq!(by(&way.pod("old")), (true, false, "log:1".to_owned()));
    way.follow("1. Print");
    way.follow("3. Apply");
    way.follow("6. Remove");
    let newer = r#"{"spec":{"containers":[{"name":"log","image":"log:2"}]}}"#;
    cluster.kubectl_ok(&["patch", "oss", "log", "--type=merge", "-p", newer], None).unwrap();
    eventually("the newer set is observed", || way.counts() == Some([1, 0]));
    assert_eq!(by(&way.pod("new")), (false, true, "log:2".to_owned()));
    eventually("the new pod is counted", || way.counts() == Some([2, 1]));
    assert_eq!(by(&get(&cluster, &["pod", "old", "-n", "shop"])), (true, false, "log:1".to_owned()));
    outrider.end();
}
