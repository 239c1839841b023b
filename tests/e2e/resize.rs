//! Requests and limits of a set in running pods, through the real `pods/resize`.
//!
//! kwok does nothing about a resize. What a kubelet does then, this does: it reports what the containers run with, or why not.

use std::collections::BTreeSet;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::eventually;
use crate::rollout::{applied, condition, counts, deployment, pods, stage, status, wait_ready};

/// No pod goes without it, so that the entry for changes of pods judges what the rollout writes.
const SET: &str = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: web}
spec:
  namespace: default
  selector: {matchLabels: {app: web}}
  optOut: Denied
  updateStrategy: {maxUnavailable: 2}
  containers: [{name: proxy, image: 'proxy:TAG', resources: {requests: {cpu: CPU}}}]
";

fn set(tag: &str, cpu: &str) -> String {
    SET.replace("TAG", tag).replace("CPU", cpu)
}

/// A node on which no more cpu than this is left for the set's container, in milli.
struct Kubelet<'c> {
    cluster: &'c Cluster,
    room: u32,
    starts: u32,
}

fn of_set(list: &Value) -> Option<&Value> {
    list.as_array()?.iter().find(|it| it["name"] == "proxy")
}

fn cpu(resources: &Value) -> &str {
    resources["requests"]["cpu"].as_str().unwrap_or_default()
}

fn milli(cpu: &str) -> u32 {
    cpu.strip_suffix('m').map_or_else(|| cpu.parse::<u32>().unwrap() * 1000, |milli| milli.parse().unwrap())
}

impl Kubelet<'_> {
    fn step(&mut self) {
        for pod in pods(self.cluster, "web") {
            if pod["status"]["phase"] != "Running" || pod["metadata"]["deletionTimestamp"].is_string() {
                continue;
            }
            let (Some(spec), Some(runs)) =
                (of_set(&pod["spec"]["containers"]), of_set(&pod["status"]["containerStatuses"]))
            else {
                continue;
            };
            let fits = milli(cpu(&spec["resources"])) <= self.room;
            let (is_resized, is_started) = (runs["resources"] == spec["resources"], runs["image"] == spec["image"]);
            let conditions = pod["status"]["conditions"].as_array().unwrap();
            let waits = conditions.iter().any(|it| it["type"] == "PodResizePending" && it["status"] == "True");
            if is_started && (if fits || runs["resources"].is_null() { is_resized && !waits } else { waits }) {
                continue;
            }
            let statuses = pod["status"]["containerStatuses"].as_array().unwrap().iter().map(|status| {
                let mut status = status.clone();
                let containers = pod["spec"]["containers"].as_array().unwrap();
                let spec = containers.iter().find(|it| it["name"] == status["name"]).unwrap();
                if status["image"] != spec["image"] {
                    self.starts += 1;
                    status["image"] = spec["image"].clone();
                    status["containerID"] = format!("test://{}", self.starts).into();
                }
                if fits || status["resources"].is_null() {
                    status["resources"] = spec["resources"].clone();
                }
                status
            });
            let pending = json!({
                "type": "PodResizePending", "status": if fits { "False" } else { "True" }, "reason": "Infeasible",
                "message": "Node didn't have enough capacity: cpu",
            });
            let status = json!({"containerStatuses": statuses.collect::<Value>(), "conditions": [pending]});
            let patch = json!({"status": status}).to_string();
            let name = pod["metadata"]["name"].as_str().unwrap();
            let args =
                ["patch", "pod", name, "-n", "default", "--subresource=status", "--type=strategic", "-p", &patch];
            // It may be gone.
            drop(self.cluster.kubectl(&args, None));
        }
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&Cluster) -> bool) {
        let cluster = self.cluster;
        eventually(what, || {
            self.step();
            holds(cluster)
        });
    }
}

fn asks(cluster: &Cluster, tag: &str, amount: &str) -> bool {
    pods(cluster, "web").iter().all(|pod| {
        let container = of_set(&pod["spec"]["containers"]).unwrap();
        (container["image"].as_str(), cpu(&container["resources"])) == (Some(&format!("proxy:{tag}")), amount)
    })
}

/// By `pod`, who it is and which container of the application runs.
fn identities(cluster: &Cluster) -> BTreeSet<String> {
    let identity = |pod: &Value| {
        let app = pod["status"]["containerStatuses"].as_array().unwrap().iter().find(|it| it["name"] == "app").unwrap();
        format!("{} {}", pod["metadata"]["uid"], app["containerID"])
    };
    pods(cluster, "web").iter().map(identity).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn requests_of_a_set_change_in_running_pods_and_what_the_kubelet_does_not_do_is_named() {
    let (cluster, outrider) = stage();
    if cluster.minor_version() < 33 {
        return outrider.end();
    }
    let mut kubelet = Kubelet { cluster: &cluster, room: 500, starts: 0 };
    applied(&cluster, &set("1", "100m"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 3));
    kubelet.until("all are there", |cluster| counts(cluster, "web") == [3; 4]);
    let reports = |pod: &Value| of_set(&pod["status"]["containerStatuses"]).unwrap()["resources"].is_object();
    kubelet.until("the node says that it resizes", |cluster| pods(cluster, "web").iter().all(reports));
    let before = identities(&cluster);

    applied(&cluster, &set("1", "200m"));
    kubelet.until("all are resized", |cluster| asks(cluster, "1", "200m") && counts(cluster, "web") == [3; 4]);
    assert_eq!(identities(&cluster), before);
    let of_pods = |cluster: &Cluster| {
        let containers =
            pods(cluster, "web").into_iter().map(|pod| of_set(&pod["status"]["containerStatuses"]).unwrap().clone());
        containers.map(|status| status["containerID"].to_string()).collect::<BTreeSet<_>>()
    };
    let unrestarted = of_pods(&cluster);

    // With the image, in two patches.
    applied(&cluster, &set("2", "300m"));
    kubelet.until("both are changed", |cluster| asks(cluster, "2", "300m") && counts(cluster, "web") == [3; 4]);
    assert_eq!(identities(&cluster), before, "the application runs on");
    assert!(of_pods(&cluster).is_disjoint(&unrestarted), "the set's container does not");

    // More than the node has.
    applied(&cluster, &set("2", "4"));
    let upgradable = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|it| it["type"] == "outrider.dev/SidecarSetUpgradable").unwrap_or_default()
    };
    // The pods' conditions are written apart from the set's status, each in its own request.
    let names_the_cause = |pod: &Value| {
        let condition = upgradable(pod);
        let message = condition["message"].as_str().unwrap_or_default();
        condition["status"] == "False" && message.contains("(Infeasible): Node didn't have enough capacity")
    };
    kubelet.until("none has it", |cluster| {
        let degraded =
            condition(&status(cluster, "web"), "Degraded") == ("True".to_owned(), "NotUpdatableInPlace".to_owned());
        degraded
            && asks(cluster, "2", "4")
            && counts(cluster, "web") == [3, 0, 3, 0]
            && pods(cluster, "web").iter().all(names_the_cause)
    });
    kubelet.room = 4000;
    kubelet.until("the node has room", |cluster| {
        counts(cluster, "web") == [3; 4] && pods(cluster, "web").iter().all(|pod| upgradable(pod)["status"] == "True")
    });
    eventually("nothing is wrong any more", || condition(&status(&cluster, "web"), "Degraded").0 == "False");

    // What would be removed stays until there is a new pod.
    applied(&cluster, &set("2", "4").replace("{requests: {cpu: 4}}", "{}"));
    kubelet.until("none can be changed", |cluster| {
        let degraded = condition(&status(cluster, "web"), "Degraded");
        degraded == ("True".to_owned(), "NotUpdatableInPlace".to_owned()) && asks(cluster, "2", "4")
    });
    assert_eq!(identities(&cluster), before);
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}
