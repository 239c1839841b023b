//! A set whose images change while pods that carry it run: the kubelet restarts their containers of the set, and no other one.

use std::collections::BTreeMap;

use node::{NEXT_APP, Node};
use serde_json::{Value, json};

use crate::serving;
use crate::workloads::{COMPANIONS, NAMESPACE, step};

const SET: &str = "sidecarset/web";

/// How many pods follow.
const PODS: usize = 2;

/// From this release on, a kubelet restarts a native sidecar whose image changes; before, nothing comes of the change.
const NATIVE_IN_PLACE: u32 = 32;

/// One that has begun.
pub struct Rollout<'a> {
    node: &'a Node,
    /// Those containers of the set whose image changes, with their ports.
    changed: &'static [(&'static str, u16)],
    before: BTreeMap<String, Pod>,
}

/// What a rollout changes or leaves.
#[derive(Debug)]
struct Pod {
    uid: String,
    address: String,
    containers: BTreeMap<String, Container>,
}

#[derive(Debug, PartialEq)]
struct Container {
    id: String,
    started: String,
    restarts: u64,
    image: String,
}

impl<'a> Rollout<'a> {
    /// Gives the set for web servers the next release.
    pub fn start(node: &'a Node) -> Self {
        let is_native_in_place = node.cluster().minor_version() >= NATIVE_IN_PLACE;
        let changed = if is_native_in_place { &COMPANIONS[..] } else { &COMPANIONS[..1] };
        let before = pods(node);
        assert_eq!(before.len(), PODS, "{before:#?}");
        let images = ["containers", "initContainers"]
            .iter()
            .take(changed.len())
            .map(|list| json!({"op": "replace", "path": format!("/spec/{list}/0/image"), "value": NEXT_APP}));
        let patch = images.collect::<Value>().to_string();
        node.cluster().kubectl_ok(&["patch", SET, "--type=json", "--patch", &patch], None).unwrap();
        Self { node, changed, before }
    }

    /// Waits until the status reports that all pods are updated and ready, and compares what runs with what ran.
    pub fn complete(self) {
        let left = || {
            let set = object(self.node, &["get", SET]);
            let status = &set["status"];
            let counts = ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"].map(|field| &status[field]);
            let observed = status["observedGeneration"] == set["metadata"]["generation"];
            Ok((!observed || counts.iter().any(|count| **count != PODS)).then(|| status.to_string()))
        };
        step("images of a plain and a native sidecar changed in running pods", || {
            self.node.cluster().wait_for("all pods to be updated and ready", left).unwrap();
        });
        let after = pods(self.node);
        assert!(after.keys().eq(self.before.keys()), "before {:#?}\nafter {after:#?}", self.before);
        for (name, before) in &self.before {
            self.compare(before, &after[name]);
        }
    }

    fn compare(&self, before: &Pod, after: &Pod) {
        assert_eq!((&after.uid, &after.address), (&before.uid, &before.address), "the pod is the same one");
        assert!(after.containers.keys().eq(before.containers.keys()), "{before:#?}\n{after:#?}");
        for (name, was) in &before.containers {
            let is = &after.containers[name];
            let Some((_, port)) = self.changed.iter().find(|(changed, _)| changed == name) else {
                assert_eq!(is, was, "{name} goes on as it was");
                continue;
            };
            assert_eq!((&*is.image, is.restarts), (NEXT_APP, was.restarts + 1), "{name}: before {was:?}, after {is:?}");
            assert_ne!(is.id, was.id, "{name}");
            let reply = serving::get(&after.address, *port, "/").unwrap();
            assert!(reply.ends_with("\r\n\r\n2"), "{name} serves the next release: {reply}");
        }
    }
}

/// Those of the Deployment, by name.
fn pods(node: &Node) -> BTreeMap<String, Pod> {
    let list = object(node, &["get", "pods", "--selector=app=web", "--namespace", NAMESPACE]);
    let pods = list["items"].as_array().unwrap().iter();
    pods.map(|pod| (text(&pod["metadata"]["name"]), Pod::new(pod))).collect()
}

impl Pod {
    fn new(pod: &Value) -> Self {
        let status = &pod["status"];
        let lists = ["containerStatuses", "initContainerStatuses"].iter().map(|list| status[list].as_array().unwrap());
        let containers = lists.flatten().map(|status| (text(&status["name"]), Container::new(status)));
        Self { uid: text(&pod["metadata"]["uid"]), address: text(&status["podIP"]), containers: containers.collect() }
    }
}

impl Container {
    fn new(status: &Value) -> Self {
        Self {
            id: text(&status["containerID"]),
            started: text(&status["state"]["running"]["startedAt"]),
            restarts: status["restartCount"].as_u64().unwrap(),
            image: text(&status["image"]),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn object(node: &Node, args: &[&str]) -> Value {
    let printed = node.cluster().kubectl_ok(&[args, &["--output=json"]].concat(), None).unwrap();
    serde_json::from_str(&printed).unwrap()
}
