//! Admission plugins on a real API server, and beside the API server's own.

use std::collections::BTreeMap;
use std::fs;

use cluster::{Cluster, Options};
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install, service_account};
use crate::room::may_register;

/// An API server without service accounts, so that pods can be created at once.
pub fn small(more: &[String]) -> Cluster {
    let mut extra = vec!["--disable-admission-plugins=ServiceAccount".to_owned()];
    extra.extend_from_slice(more);
    let options = Options { kwok: false, controller_manager: false, extra_apiserver_args: extra, ..Options::default() };
    Cluster::start_with(&options).unwrap()
}

pub fn apply(cluster: &Cluster, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&list)).unwrap();
}

pub fn plugin(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "metadata": {"name": name}, "spec": spec})
}

/// A cluster that Outrider serves.
fn served(more: &[String]) -> (Cluster, Outrider) {
    served_with(more, &[])
}

/// The same, by a process with these flags.
pub fn served_with(more: &[String], flags: &[&str]) -> (Cluster, Outrider) {
    let cluster = small(more);
    install(&cluster);
    let account = service_account(&cluster);
    may_register(&cluster);
    let outrider = Outrider::registered_as(&cluster, &account, flags);
    outrider.ready();
    eventually("the API server calls the process", || {
        let object = plugin("probe", &json!({"plugin": "AlwaysAdmit"})).to_string();
        let refused = cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(&object)).unwrap();
        refused.stderr.contains("Outrider does not serve it")
    });
    (cluster, outrider)
}

pub fn condition(cluster: &Cluster, name: &str, type_: &str) -> String {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{type_}\")].status}}");
    cluster.kubectl_ok(&["get", "admissionplugin", name, "-o", &path], None).unwrap()
}

pub fn webhooks(cluster: &Cluster) -> Vec<String> {
    let names = [
        "mutatingwebhookconfiguration/outrider-on-demand-mutating",
        "validatingwebhookconfiguration/outrider-on-demand-validating",
    ];
    names
        .iter()
        .flat_map(|name| {
            let found = cluster.kubectl(&["get", name, "-o", "jsonpath={.webhooks[*].name}"], None).unwrap();
            found.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_plugin_comes_and_goes_while_pods_are_created() {
    let (cluster, outrider) = served(&[]);
    let mut count = 0;
    let mut create = |spec: Value| {
        count += 1;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{count}"), "namespace": "default"}, "spec": spec});
        let created = cluster.kubectl(&["create", "-f", "-", "-o", "json"], Some(&pod.to_string())).unwrap();
        assert!(created.success(), "{}", created.stderr);
        serde_json::from_str::<Value>(&created.stdout).unwrap()["spec"].take()
    };
    let pod = || json!({"containers": [{"name": "a", "image": "a:1", "imagePullPolicy": "IfNotPresent"}]});
    assert_eq!(create(pod())["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let section = json!({"includeEphemeralContainers": true});
    apply(&cluster, &[plugin("pull", &json!({"plugin": "AlwaysPullImages", "alwaysPullImages": section}))]);
    eventually("it is programmed", || {
        create(pod());
        condition(&cluster, "pull", "Programmed") == "True"
    });
    assert_eq!(
        (condition(&cluster, "pull", "Accepted"), condition(&cluster, "pull", "Conflict")),
        ("True".into(), "False".into())
    );
    assert_eq!(create(pod())["containers"][0]["imagePullPolicy"], "Always");
    let entries = webhooks(&cluster);
    assert_eq!(entries.len(), 3, "{entries:?}");
    // A debug container is pulled as well; a new image of a pod that was there before is not, and cannot be.
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "sh", "imagePullPolicy": "Never"}]}})
        .to_string();
    let patched = cluster
        .kubectl(&["patch", "pod/p1", "--subresource=ephemeralcontainers", "-p", &debug, "-o", "json"], None)
        .unwrap();
    assert!(patched.success(), "{}", patched.stderr);
    let patched: Value = serde_json::from_str(&patched.stdout).unwrap();
    assert_eq!(patched["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "Always");
    let image = cluster.kubectl(&["set", "image", "pod/p1", "a=a:2"], None).unwrap();
    assert!(image.stderr.contains("recreate the pod"), "{}", image.stderr);
    assert!(cluster.kubectl(&["label", "pod/p1", "a=b"], None).unwrap().success());
    let metrics = outrider.metrics();
    assert!(
        metrics.contains(
            "outrider_plugin_decisions_total{plugin=\"AlwaysPullImages\",mode=\"Enforce\",verdict=\"changed\"}"
        )
    );

    cluster.kubectl_ok(&["delete", "admissionplugin/pull"], None).unwrap();
    eventually("the entries are withdrawn", || {
        create(pod());
        webhooks(&cluster).is_empty()
    });
    assert_eq!(create(pod())["containers"][0]["imagePullPolicy"], "IfNotPresent");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_definition_and_the_webhook_say_what_is_wrong() {
    let (cluster, _outrider) = served_with(&[], &["--on-demand-all-resources"]);
    let refused = |object: Value, part: &str| {
        let output = cluster.kubectl(&["create", "-f", "-"], Some(&object.to_string())).unwrap();
        assert!(!output.success() && output.stderr.contains(part), "{part}: {}", output.stderr);
    };
    refused(plugin("a", &json!({"plugin": "ImagePolicyWebhook"})), "not served yet");
    refused(
        plugin("a", &json!({"plugin": "EventRateLimit", "failurePolicy": "Fail"})),
        "failurePolicy must be Ignore for plugin: EventRateLimit",
    );
    refused(plugin("a", &json!({"plugin": "AlwaysPullImages", "backend": "Policy"})), "spec.backend: Forbidden");
    refused(
        plugin("a", &json!({"plugin": "AlwaysPullImages", "podNodeSelector": {}})),
        "podNodeSelector is only for plugin: PodNodeSelector",
    );
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples");
    for entry in fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("policy_") {
            cluster.kubectl_ok(&["apply", "-f", path.to_str().unwrap()], None).unwrap();
        }
    }
    let change = cluster.kubectl(
        &["patch", "admissionplugin/fast-failover", "--type=merge", "-p", r#"{"spec":{"plugin":"AlwaysPullImages"}}"#],
        None,
    );
    assert!(change.unwrap().stderr.contains("immutable"));
    let table = cluster.kubectl_ok(&["get", "admissionplugins"], None).unwrap();
    assert_eq!(table.lines().count(), 13, "{table}");
    eventually("all are programmed", || {
        cluster
            .kubectl_ok(&["get", "admissionplugins", "--no-headers"], None)
            .unwrap()
            .lines()
            .all(|line| line.matches("True").count() == 2)
    });
}

const DEFAULT: &str = "pool=shared";

/// The configuration of the API server's own plugins.
fn in_tree() -> Value {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {
            "clusterDefaultNodeSelector": DEFAULT, "limited": "pool=shared,disk=ssd"}}},
        {"name": "PodTolerationRestriction", "configuration": {
            "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration",
            "default": [{"key": "given", "operator": "Exists", "effect": "NoSchedule"}], "whitelist": []}},
    ]})
}

/// The same as objects.
fn ours() -> Vec<Value> {
    let given = json!([{"key": "given", "operator": "Exists", "effect": "NoSchedule"}]);
    vec![
        plugin("pull", &json!({"plugin": "AlwaysPullImages"})),
        plugin(
            "node",
            &json!({"plugin": "PodNodeSelector", "podNodeSelector": {
            "clusterDefaultNodeSelector": DEFAULT, "namespaceAllowLists": {"limited": "pool=shared,disk=ssd"}}}),
        ),
        plugin(
            "seconds",
            &json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {
            "notReadySeconds": 30, "unreachableSeconds": 40}}),
        ),
        plugin(
            "tolerate",
            &json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": {
            "default": given, "alwaysAllowBuiltin": false}}),
        ),
        plugin("extended", &json!({"plugin": "ExtendedResourceToleration"})),
        plugin("topology", &json!({"plugin": "LimitPodHardAntiAffinityTopology"})),
        plugin("external", &json!({"plugin": "DenyServiceExternalIPs"})),
    ]
}

fn namespaces() -> Vec<Value> {
    let (selector, defaults, list) = (
        "scheduler.alpha.kubernetes.io/node-selector",
        "scheduler.alpha.kubernetes.io/defaultTolerations",
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist",
    );
    let listed = json!([
        {"key": "a", "operator": "Exists"}, {"key": "given", "operator": "Exists"}, {"key": "x.com/gpu", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
        {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"},
    ]);
    let own = json!([{"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}]);
    [
        ("plain", json!({})),
        ("limited", json!({})),
        ("pooled", json!({selector: " pool = a , disk=ssd "})),
        ("free", json!({selector: "", defaults: "[]"})),
        ("given", json!({defaults: own.to_string()})),
        ("listed", json!({list: listed.to_string()})),
    ]
    .into_iter()
    .map(|(name, annotations)| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}))
    .collect()
}

/// A sequence with a fixed seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    pub fn pick(&mut self, list: &[Value]) -> Value {
        list[self.below(list.len())].clone()
    }

    fn container(&mut self, name: &str) -> Value {
        let device = json!({"requests": {"x.com/gpu": "1"}, "limits": {"x.com/gpu": "1"}});
        json!({
            "name": name, "image": "i:1",
            "imagePullPolicy": self.pick(&[json!("Always"), json!("IfNotPresent"), json!("Never"), Value::Null]),
            "resources": self.pick(&[json!({}), json!({}), json!({"requests": {"cpu": "1m"}}), json!({"limits": {"memory": "1Mi"}}), device]),
        })
    }

    fn toleration(&mut self) -> Value {
        let key = self.pick(&[json!("a"), json!("b"), json!("given"), json!("node.kubernetes.io/not-ready")]);
        let exists = self.below(2) == 0;
        let mut one = json!({"key": key, "operator": if exists { "Exists" } else { "Equal" }});
        if !exists {
            one["value"] = self.pick(&[json!("1"), json!("2")]);
        }
        match self.below(3) {
            0 => one["effect"] = "NoSchedule".into(),
            // 300 is what Outrider takes for the default: docs/admission-plugins.md.
            1 => (one["effect"], one["tolerationSeconds"]) = ("NoExecute".into(), self.pick(&[json!(7), json!(60)])),
            _ => {}
        }
        one
    }

    fn pod(&mut self, name: &str, namespace: &str) -> Value {
        let mut spec = json!({"containers": [self.container("c")]});
        if self.below(3) == 0 {
            spec["initContainers"] = json!([self.container("i")]);
        }
        spec["nodeSelector"] =
            self.pick(&[json!({}), json!({}), json!({"disk": "ssd"}), json!({"pool": "shared"}), json!({"pool": "b"})]);
        let tolerations: Vec<Value> = (0..self.below(4)).map(|_| self.toleration()).collect();
        spec["tolerations"] = tolerations.into();
        let topology =
            self.pick(&[Value::Null, Value::Null, Value::Null, json!("kubernetes.io/hostname"), json!("zone")]);
        if !topology.is_null() {
            let term = json!({"topologyKey": topology, "labelSelector": {"matchLabels": {"a": "b"}}});
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    }

    fn service(&mut self, name: &str) -> Value {
        let ips = self.pick(&[json!([]), json!(["192.0.2.1"]), json!(["192.0.2.1", "192.0.2.2"])]);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "plain"},
            "spec": {"ports": [{"port": 80}], "externalIPs": ips}})
    }
}

/// What was stored of each object, and why others were refused.
type Outcome = (BTreeMap<String, Value>, Vec<String>);

fn created(cluster: &Cluster, objects: &[Value]) -> Outcome {
    let mut refusals = Vec::new();
    for part in objects.chunks(60) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": part}).to_string();
        let output = cluster.kubectl(&["create", "-f", "-"], Some(&list)).unwrap();
        refusals.extend(output.stderr.lines().filter(|line| !line.starts_with("Warning:")).map(without_prefix));
    }
    refusals.sort();
    let mut stored = BTreeMap::new();
    for resource in ["pods", "services"] {
        let found = cluster.kubectl_ok(&["get", resource, "-A", "-o", "json"], None).unwrap();
        let found: Value = serde_json::from_str(&found).unwrap();
        for object in found["items"].as_array().unwrap() {
            let mut spec = object["spec"].clone();
            // The API server gives each cluster its own.
            for field in ["clusterIP", "clusterIPs"] {
                spec.as_object_mut().unwrap().remove(field);
            }
            stored.insert(format!("{resource}/{}", object["metadata"]["name"].as_str().unwrap()), spec);
        }
    }
    stored.remove("services/kubernetes");
    (stored, refusals)
}

fn without_prefix(line: &str) -> String {
    let message = line.split_once("error when creating \"STDIN\": ").map_or(line, |(_, message)| message);
    let message = message.split_once("denied the request: ").map_or(message, |(_, message)| message);
    message.trim_start_matches("Internal error occurred: ").to_owned()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_and_services_come_out_as_from_the_plugins_of_the_api_server() {
    let config = std::env::temp_dir().join(format!("outrider-admission-{}.json", std::process::id()));
    fs::write(&config, in_tree().to_string()).unwrap();
    let original = small(&[
        "--enable-admission-plugins=AlwaysPullImages,PodNodeSelector,PodTolerationRestriction,ExtendedResourceToleration,\
         LimitPodHardAntiAffinityTopology,DenyServiceExternalIPs"
            .to_owned(),
        format!("--admission-control-config-file={}", config.display()),
        "--default-not-ready-toleration-seconds=30".to_owned(),
        "--default-unreachable-toleration-seconds=40".to_owned(),
    ]);
    let (replaced, _outrider) = served(&[]);
    fs::remove_file(&config).unwrap();
    for cluster in [&original, &replaced] {
        apply(cluster, &namespaces());
    }
    apply(&replaced, &ours());
    eventually("all are programmed", || {
        replaced
            .kubectl_ok(&["get", "admissionplugins", "--no-headers"], None)
            .unwrap()
            .lines()
            .all(|line| line.matches("True").count() == 2)
    });
    let mut random = Random(20_261_128);
    let names = ["plain", "limited", "pooled", "free", "given", "listed"];
    let pods = (0..300).map(|at| random.pod(&format!("p{at}"), names[at % names.len()])).collect::<Vec<_>>();
    let services = (0..60).map(|at| random.service(&format!("s{at}"))).collect::<Vec<_>>();
    let objects = [pods, services].concat();
    let ((stored, refused), (our_stored, our_refused)) = (created(&original, &objects), created(&replaced, &objects));
    assert_eq!(our_refused, refused);
    for (name, spec) in &stored {
        assert_eq!(our_stored.get(name), Some(spec), "{name}");
    }
    assert_eq!(our_stored.len(), stored.len());
    eprintln!("{} of {} objects were stored, {} refused, alike", stored.len(), objects.len(), refused.len());
    assert!(refused.len() > 60 && stored.len() > 120, "the objects show little: {} {}", refused.len(), stored.len());
}
