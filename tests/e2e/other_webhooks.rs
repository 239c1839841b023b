//! Outrider among other mutating webhooks.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::process::{eventually, free_address};
use crate::room::{POD, Room, SET, containers};
use crate::toy_webhook::ToyWebhook;

/// A configuration of another owner, for the room's namespace only. By its name the API server calls it after ours. Gone when
/// this is dropped, as no process answers then.
struct Registered<'a> {
    room: &'a Room,
    name: String,
}

impl<'a> Registered<'a> {
    fn new(room: &'a Room, url: &str, ca: &str, reinvocation: &str) -> Self {
        let name = format!("zz-{}", room.name());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "pods.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "reinvocationPolicy": reinvocation,
                "clientConfig": {"url": url, "caBundle": STANDARD.encode(ca)},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": room.name()}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
            }],
        });
        room.apply(&configuration.to_string());
        Self { room, name }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.room.kubectl(&["delete", "mutatingwebhookconfiguration", &self.name], None);
    }
}

/// What the API server notes of each call: `(round, configuration, mutated)`.
fn calls(room: &Room, pod: &str) -> Vec<(u64, String, bool)> {
    let event = room.audit_of_pod(pod);
    let mut calls = Vec::new();
    for (key, value) in event["annotations"].as_object().unwrap() {
        let Some(place) = key.strip_prefix("mutation.webhook.admission.k8s.io/round_") else { continue };
        let note: Value = serde_json::from_str(value.as_str().unwrap()).unwrap();
        let round = place.split('_').next().unwrap().parse().unwrap();
        calls.push((round, note["configuration"].as_str().unwrap().to_owned(), note["mutated"].as_bool().unwrap()));
    }
    calls.sort();
    calls
}

/// Ends when this is dropped.
struct Standalone(Child);

impl Drop for Standalone {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_second_pass_after_another_injector_gives_no_duplicates() {
    let room = Room::new("reinvoked");
    room.apply_set(SET);
    // Another Outrider, without a cluster, with a set of its own that it puts in front of everything.
    let dir = tempfile::tempdir().unwrap();
    let [sets, ca] = ["set.yaml", "ca.crt"].map(|name| dir.path().join(name));
    let other = SET.replace("name: ROOM", "name: audit").replace("proxy", "audit").replace("ROOM", room.name());
    fs::write(&sets, other).unwrap();
    let address = free_address();
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(["serve", "--standalone", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.arg("--manifests").arg(&sets).arg("--ca-file").arg(&ca);
    command.arg(format!("--webhook-bind-address={address}")).stdin(Stdio::null()).stderr(Stdio::null());
    let _standalone = Standalone(command.spawn().unwrap());
    eventually("the other one listens", || ca.exists() && std::net::TcpStream::connect(address).is_ok());
    let url = format!("https://{address}/mutate--v1-pod");
    let registered = Registered::new(&room, &url, &fs::read_to_string(&ca).unwrap(), "IfNeeded");

    let mut pod = Value::Null;
    let mut attempt = 0;
    // The API server learns of a configuration by a watch.
    eventually("the other one is called", || {
        attempt += 1;
        pod = room.pod(&POD.replace("name: web", &format!("name: web-{attempt}")));
        containers(&pod).contains(&"audit")
    });
    assert_eq!(containers(&pod), ["audit", "proxy", "app"]);
    let injected = pod["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap();
    let injected: Value = serde_json::from_str(injected).unwrap();
    assert_eq!(injected.as_object().unwrap().keys().collect::<Vec<_>>(), ["audit", room.name()]);
    let calls = calls(&room, &format!("web-{attempt}"));
    assert!(calls.contains(&(0, registered.name.clone(), true)), "{calls:?}");
    assert!(calls.contains(&(1, "outrider-mutating".to_owned(), false)), "the second pass changes nothing: {calls:?}");
}

/// Removes the sidecar wherever it is.
fn remove_the_proxy(pod: &Value) -> Vec<Value> {
    let found = containers(pod).iter().position(|name| *name == "proxy");
    let remove = |index| json!({"op": "remove", "path": format!("/spec/containers/{index}")});
    found.map(remove).into_iter().collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_whose_sidecar_another_webhook_removes_is_refused_where_it_must_be_carried() {
    let room = Room::new("removed");
    room.apply_set(&format!("{SET}  optOut: Denied\n  clashPolicy: Refuse\n"));
    let toy = ToyWebhook::start(|pod| Some(remove_the_proxy(pod)));
    let _registered = Registered::new(&room, &toy.url, &toy.ca, "IfNeeded");
    let mut refused = None;
    let mut attempt = 0;
    eventually("the pod is refused", || {
        attempt += 1;
        let output =
            room.kubectl(&["apply", "-f", "-"], Some(&POD.replace("name: web", &format!("name: web-{attempt}"))));
        refused = (!output.success()).then_some(output.stderr);
        refused.is_some()
    });
    let expected = "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \"pod.outrider.dev\" denied \
                    the request: pod must carry SidecarSet \"ROOM\" (spec.optOut: Denied) and lacks its container \"proxy\"; \
                    another admission webhook may have removed it after injection\n";
    assert_eq!(refused.unwrap(), expected.replace("ROOM", room.name()));

    // Where nothing insists, the pod may go without.
    room.apply_set(SET);
    let pod = room.pod(&POD.replace("name: web", "name: not-insisting"));
    assert_eq!(containers(&pod), ["app"]);
    room.eventually_counts("a pod without the sidecar is not counted", ["0", "0", "0"]);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_sidecar_that_another_webhook_removes_once_is_put_back() {
    let room = Room::new("put-back");
    room.apply_set(&format!("{SET}  optOut: Denied\n"));
    let toy = ToyWebhook::start(|pod| Some(remove_the_proxy(pod)));
    let registered = Registered::new(&room, &toy.url, &toy.ca, "Never");
    let mut attempt = 0;
    eventually("the other one has been called", || {
        attempt += 1;
        let name = format!("web-{attempt}");
        let pod = room.pod(&POD.replace("name: web", &format!("name: {name}")));
        assert_eq!(containers(&pod), ["proxy", "app"]);
        calls(&room, &name).contains(&(0, registered.name.clone(), true))
    });
}

/// Outrider answers so while a pod's namespace is not known to it; the pod must not be refused.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_api_server_asks_again_when_it_is_told_to() {
    let room = Room::new("again-later");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let toy = ToyWebhook::start(move |_| (counter.fetch_add(1, Ordering::Relaxed) > 0).then(Vec::new));
    let _registered = Registered::new(&room, &toy.url, &toy.ca, "Never");
    let mut attempt = 0;
    eventually("the webhook is called", || {
        attempt += 1;
        // Also the one that it was not ready for.
        room.pod(&POD.replace("name: web", &format!("name: web-{attempt}")));
        asked.load(Ordering::Relaxed) > 1
    });
}

/// Gives the application a variable and a mount, wherever it is.
fn give_the_app_more(pod: &Value) -> Vec<Value> {
    let Some(at) = containers(pod).iter().position(|name| *name == "app") else { return Vec::new() };
    let app = &pod["spec"]["containers"][at];
    let has_it = app["env"].as_array().is_some_and(|env| env.iter().any(|variable| variable["name"] == "LATE"));
    if has_it {
        return Vec::new();
    }
    let path = |field: &str| format!("/spec/containers/{at}/{field}");
    vec![
        json!({"op": "add", "path": path("env"), "value": [{"name": "LATE", "value": "1"}]}),
        json!({"op": "add", "path": "/spec/volumes/-", "value": {"name": "late", "emptyDir": {}}}),
        json!({"op": "add", "path": path("volumeMounts/0"), "value": {"name": "late", "mountPath": "/late"}}),
    ]
}

#[test]
#[ignore = "needs a control plane: make test"]
fn what_another_webhook_gives_the_app_is_taken_by_a_must_in_the_second_pass() {
    let room = Room::new("late");
    let taking = "shareVolumePolicy: {type: enabled}, transferEnv: [{sourceContainerName: app, envName: LATE}]";
    room.apply_set(&format!(
        "{}  optOut: Denied\n",
        SET.replace("image: 'proxy:1'", &format!("image: 'proxy:1', {taking}"))
    ));
    let toy = ToyWebhook::start(|pod| Some(give_the_app_more(pod)));
    let _registered = Registered::new(&room, &toy.url, &toy.ca, "IfNeeded");
    let mut pod = Value::Null;
    let mut attempt = 0;
    eventually("the other one is called", || {
        attempt += 1;
        pod = room.pod(&POD.replace("name: web", &format!("name: web-{attempt}")));
        pod["spec"]["containers"][1]["env"][0]["name"] == "LATE"
    });
    let proxy = &pod["spec"]["containers"][0];
    assert_eq!(proxy["env"][1], json!({"name": "LATE", "value": "1"}));
    let paths: Vec<&str> =
        proxy["volumeMounts"].as_array().unwrap().iter().map(|mount| mount["mountPath"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/var/run/secrets/kubernetes.io/serviceaccount", "/late"]);
}
