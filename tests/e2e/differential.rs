//! The same objects through the API server's own plugins and through ours.

use std::collections::BTreeMap;
use std::fs;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::plugins::{all_are_programmed, apply, plugin, served, small};

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
        // Go reads keys whatever the case of their letters.
        ("mixed", json!({list: listed.to_string().replace("\"key\"", "\"Key\"").replace("\"operator\"", "\"OPERATOR\"")})),
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

/// The one difference of changes that is known, as docs/plugins/PodTolerationRestriction.md says: the original merges the tolerations of a pod
/// anew. One that another covers is not stored, and where the pod had it, the API server refuses the change in these words.
const MERGED: &str = "existing toleration can not be modified";

/// What was stored of each object, and why others were refused.
type Outcome = (BTreeMap<String, Value>, Vec<String>);

/// Sends objects to the API server, by this verb.
fn sent(cluster: &Cluster, verb: &str, objects: &[Value]) -> Outcome {
    let mut refusals = Vec::new();
    for part in objects.chunks(60) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": part}).to_string();
        let output = cluster.kubectl(&[verb, "-f", "-"], Some(&list)).unwrap();
        refusals.extend(output.stderr.lines().filter(|line| !line.starts_with("Warning:")).map(without_prefix));
    }
    refusals.sort();
    let mut stored = BTreeMap::new();
    for resource in ["pods", "services"] {
        for object in all(cluster, resource) {
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

fn all(cluster: &Cluster, resource: &str) -> Vec<Value> {
    let found = cluster.kubectl_ok(&["get", resource, "-A", "-o", "json"], None).unwrap();
    let mut found: Value = serde_json::from_str(&found).unwrap();
    found["items"].as_array_mut().unwrap().drain(..).collect()
}

/// The same changes of the pods of a cluster: of images, of tolerations, and of what no plugin is about.
fn changed(cluster: &Cluster, mut random: Random) -> Vec<Value> {
    let mut pods = all(cluster, "pods");
    pods.sort_by_key(|pod| pod["metadata"]["name"].to_string());
    for pod in &mut pods {
        let (kind, toleration) = (random.below(4), random.toleration());
        if kind % 2 == 0 {
            pod["spec"]["containers"][0]["image"] = "i:2".into();
        }
        if kind > 1 {
            pod["spec"]["tolerations"].as_array_mut().unwrap().push(toleration);
        }
        pod["metadata"]["labels"] = json!({"changed": "yes"});
    }
    pods
}

/// Gives some pods an ephemeral container, and returns what was stored.
fn debugged(cluster: &Cluster, names: &[String]) -> Vec<Value> {
    let container =
        json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "sh", "imagePullPolicy": "IfNotPresent"}]}});
    let patch = |pod: &Value| {
        let (name, namespace) =
            (pod["metadata"]["name"].as_str().unwrap(), pod["metadata"]["namespace"].as_str().unwrap());
        let patch = container.to_string();
        let args =
            ["patch", "pod", name, "-n", namespace, "--subresource=ephemeralcontainers", "-p", &patch, "-o", "json"];
        let patched: Value = serde_json::from_str(&cluster.kubectl_ok(&args, None).unwrap()).unwrap();
        patched["spec"].clone()
    };
    let pods = all(cluster, "pods");
    names.iter().map(|name| patch(pods.iter().find(|pod| pod["metadata"]["name"] == **name).unwrap())).collect()
}

fn alike((ours, our_refusals): &Outcome, (theirs, refusals): &Outcome) {
    assert_eq!(our_refusals, refusals);
    for (name, spec) in theirs {
        assert_eq!(ours.get(name), Some(spec), "{name}");
    }
    assert_eq!(ours.len(), theirs.len());
}

/// A line of kubectl without what comes before the message of the plugin.
pub fn without_prefix(line: &str) -> String {
    let message = line.split_once("\"STDIN\": ").map_or(line, |(_, message)| message);
    let message = message.split_once("denied the request: ").map_or(message, |(_, message)| message);
    message.trim_start_matches("Internal error occurred: ").to_owned()
}

/// Starts clusters by the flags of an API server that runs the plugins itself.
fn with_in_tree<T>(name: &str, start: impl FnOnce(&[String]) -> T) -> T {
    let config = std::env::temp_dir().join(format!("outrider-{name}-{}.json", std::process::id()));
    fs::write(&config, in_tree().to_string()).unwrap();
    let started = start(&[
        "--enable-admission-plugins=AlwaysPullImages,PodNodeSelector,PodTolerationRestriction,ExtendedResourceToleration,\
         LimitPodHardAntiAffinityTopology,DenyServiceExternalIPs"
            .to_owned(),
        format!("--admission-control-config-file={}", config.display()),
        "--default-not-ready-toleration-seconds=30".to_owned(),
        "--default-unreachable-toleration-seconds=40".to_owned(),
    ]);
    fs::remove_file(&config).unwrap();
    started
}

/// Pods in all namespaces, and services.
fn objects(pods: usize, seed: usize) -> Vec<Value> {
    let mut random = Random(seed as u64);
    let names = ["plain", "limited", "pooled", "free", "given", "listed", "mixed"];
    let services = (0..pods / 5).map(|at| Random(at as u64 + 1).service(&format!("s{at}")));
    (0..pods).map(|at| random.pod(&format!("p{at}"), names[at % names.len()])).chain(services).collect()
}

const SEED: usize = 20_261_128;

fn set_to(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// How many objects there are, unless `make differential` has more.
pub fn size(usual: usize) -> usize {
    set_to("OUTRIDER_DIFFERENTIAL_PODS").unwrap_or(usual)
}

/// What the sequence of objects begins with.
pub fn seed(usual: usize) -> usize {
    set_to("OUTRIDER_DIFFERENTIAL_SEED").unwrap_or(usual)
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_and_services_come_out_as_from_the_plugins_of_the_api_server() {
    let (original, (replaced, _outrider)) = with_in_tree("admission", |flags| (small(flags), served(&[])));
    for cluster in [&original, &replaced] {
        apply(cluster, &namespaces());
    }
    apply(&replaced, &ours());
    all_are_programmed(&replaced);
    let (pods, seed) = (size(300), seed(SEED));
    let objects = objects(pods, seed);
    let (theirs, ours) = (sent(&original, "create", &objects), sent(&replaced, "create", &objects));
    alike(&ours, &theirs);
    let (stored, refused) = (theirs.0.len(), theirs.1.len());
    eprintln!("{stored} of {} objects were stored, {refused} refused, alike", objects.len());
    assert!(refused * 6 > objects.len() && stored * 3 > objects.len(), "the objects show little: {refused} {stored}");

    let change = |cluster: &Cluster| sent(cluster, "replace", &changed(cluster, Random(seed as u64 + 1)));
    let (mut theirs, mut ours) = (change(&original), change(&replaced));
    let (differing, refusals): (Vec<String>, Vec<String>) =
        theirs.1.into_iter().partition(|text| text.contains(MERGED));
    theirs.1 = refusals;
    for name in differing.iter().filter_map(|text| text.split('"').nth(1)) {
        for stored in [&mut theirs.0, &mut ours.0] {
            stored.remove(&format!("pods/{name}"));
        }
    }
    for (name, spec) in &mut ours.0 {
        let (own, original) =
            (spec["tolerations"].take(), theirs.0.get_mut(name).map(|spec| spec["tolerations"].take()));
        let own = own.as_array().cloned().unwrap_or_default();
        let original = original.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        // What the original merged away is covered by the rest.
        assert!(original.iter().all(|one| own.contains(one)), "{name}: {original:?} {own:?}");
    }
    alike(&ours, &theirs);
    eprintln!("of their changes {} were refused, alike; {} differ as documented", theirs.1.len(), differing.len());
    assert!(!theirs.1.is_empty(), "the changes show little");

    let some: Vec<String> =
        theirs.0.keys().filter_map(|name| name.strip_prefix("pods/")).take(6).map(str::to_owned).collect();
    assert_eq!(debugged(&replaced, &some), debugged(&original, &some));
}

/// Hazard 16: a provider may switch on what Outrider serves.
#[test]
#[ignore = "needs a control plane: make test"]
fn where_the_api_server_runs_the_plugins_too_ours_change_nothing() {
    let (original, (both, outrider)) = with_in_tree("both", |flags| (small(flags), served(flags)));
    for cluster in [&original, &both] {
        apply(cluster, &namespaces());
    }
    apply(&both, &ours());
    all_are_programmed(&both);
    let objects = objects(140, SEED);
    let (theirs, ours) = (sent(&original, "create", &objects), sent(&both, "create", &objects));
    alike(&ours, &theirs);
    assert!(theirs.0.len() > 40 && theirs.1.len() > 20, "the objects show little");
    assert_eq!(outrider.plugin_decisions(), Vec::<String>::new());
}
