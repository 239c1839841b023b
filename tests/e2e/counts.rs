//! What `kubectl get sidecarset` counts.

use serde_json::Value;

use crate::process::eventually;
use crate::room::{DEPLOYMENT, POD, Room, SET, USER, containers};

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_of_a_deployment_get_the_sidecar_become_ready_and_are_counted() {
    let room = Room::new("deployment");
    room.apply_set(SET);
    assert_eq!(room.row(), ["0", "0", "0"]);
    room.apply(DEPLOYMENT);
    room.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout=120s"], None);
    let pods = room.get(&["pods"]);
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.iter().map(containers).collect::<Vec<_>>(), [["proxy", "app"]; 2]);
    room.eventually_counts("all are counted", ["2", "2", "2"]);

    room.apply_set(&(SET.replace("proxy:1", "proxy:2") + "  updateStrategy: {paused: true}\n"));
    assert_eq!(room.row(), ["2", "0", "2"], "the status of the new generation counts no pod of the old one as updated");
    room.kubectl_ok(&["rollout", "restart", "deployment/web"], None);
    room.eventually_counts("new pods carry the new image", ["2", "2", "2"]);

    room.kubectl_ok(&["delete", "deployment/web"], None);
    room.eventually_counts("deleted pods are not counted", ["0", "0", "0"]);
}

/// A set that evicts pods that lack it leaves alone those to which it has nothing to add.
#[test]
#[ignore = "needs a control plane: make test"]
fn pods_that_have_all_that_a_set_adds_are_counted_as_updated_and_are_not_evicted() {
    let room = Room::new("nothing-to-add");
    let own = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {matchLabels: {app: ROOM}}
  updateStrategy: {repair: Evict}
  appContainers:
  - {containerNames: [other], env: [{name: LEVEL, value: info}]}
";
    room.apply_set(own);
    room.apply(DEPLOYMENT);
    room.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout=120s"], None);
    let names = || -> Vec<String> {
        let pods = room.get(&["pods"]);
        pods["items"].as_array().unwrap().iter().map(|pod| pod["metadata"]["name"].to_string()).collect()
    };
    let before = names();
    room.eventually_counts("all are counted as updated", ["2", "2", "2"]);
    let status = room.get(&["sidecarset", room.name()])["status"].clone();
    assert_eq!((&status["uninjectedPods"], names()), (&Value::from(0), before));
}

/// Case 6 of OpenKruise's tests.
#[test]
#[ignore = "needs a control plane: make test"]
fn pods_stay_without_the_set_when_their_namespace_gets_its_label_and_those_that_are_created_later_have_it() {
    let room = Room::new("labelled");
    room.apply_set(&(SET.to_owned() + "  namespaceSelector: {matchLabels: {team: ROOM}}\n"));
    room.apply(DEPLOYMENT);
    room.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout=120s"], None);
    let pods = || -> Vec<Value> { room.get(&["pods"])["items"].as_array().unwrap().clone() };
    let names =
        |pods: &[Value]| -> Vec<String> { pods.iter().map(|pod| pod["metadata"]["name"].to_string()).collect() };
    let before = pods();
    assert_eq!(before.iter().map(containers).collect::<Vec<_>>(), [["app"]; 2]);
    let team = format!("team={}", room.name());
    room.kubectl_ok(&["label", "namespace", room.name(), &team], None);
    eventually("both are said to lack the set", || {
        room.get(&["sidecarset", room.name()])["status"]["uninjectedPods"] == 2
    });
    let labelled = pods();
    assert_eq!(labelled.iter().map(containers).collect::<Vec<_>>(), [["app"]; 2]);
    assert_eq!((names(&labelled), room.row()), (names(&before), ["0", "0", "0"].map(str::to_owned).to_vec()));
    room.kubectl_ok(&["delete", "pods", "--all"], None);
    room.eventually_counts("the new ones have it", ["2", "2", "2"]);
    assert!(pods().iter().all(|pod| containers(pod) == ["proxy", "app"]));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn relabelled_deleted_and_finished_pods_leave_the_count() {
    let room = Room::new("leaving");
    room.apply_set(SET);
    for name in ["relabelled", "deleted", "finished", "staying"] {
        room.pod(&POD.replace("web", name));
    }
    room.eventually_counts("all are counted", ["4", "4", "4"]);
    room.kubectl_ok(&["label", "--overwrite", "pod/relabelled", "app=other"], None);
    room.eventually_counts("a relabelled pod is not selected", ["3", "3", "3"]);
    room.kubectl_ok(&["delete", "pod/deleted"], None);
    room.eventually_counts("a deleted pod is gone", ["2", "2", "2"]);
    let succeeded = ["patch", "pod/finished", "--subresource=status", "-p", r#"{"status":{"phase":"Succeeded"}}"#];
    room.kubectl_ok(&succeeded, None);
    room.eventually_counts("a finished pod is not active", ["1", "1", "1"]);
    room.kubectl_ok(&["label", "--overwrite", "pod/relabelled", &format!("app={}", room.name())], None);
    room.eventually_counts("a pod that is selected again is counted again", ["2", "2", "2"]);
}

/// Pods of one test. The metric is about the whole cluster, and all other tests together leave fewer without a set.
const MANY: u64 = 50;

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_that_are_older_than_their_set_are_told_by_the_metric_until_they_opt_out_or_go() {
    let room = Room::new("older");
    let told = |state: &str| -> u64 {
        let series = format!("outrider_sidecarset_pods{{state=\"{state}\"}} ");
        let metrics = room.stage.outrider.metrics();
        metrics.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).unwrap_or_default()
    };
    let pods = (0..MANY).map(|number| POD.replace("name: web", &format!("name: web-{number}")));
    room.apply(&pods.collect::<Vec<_>>().join("\n---\n"));
    assert!(told("missing") < MANY, "no set selects them");
    room.apply_set(SET);
    eventually("all are without the set", || told("missing") >= MANY);
    assert_eq!(room.row(), ["0", "0", "0"]);

    room.kubectl_ok(&["annotate", "pods", "--all", "outrider.dev/skip=true"], None);
    eventually("all have opted out", || told("missing") < MANY && told("exempt") >= MANY);
    room.kubectl_ok(&["delete", "pods", "--all", "--wait=false"], None);
    eventually("all are gone", || told("exempt") < MANY);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn while_nothing_changes_nothing_but_the_lease_is_written() {
    let room = Room::new("idle");
    room.apply_set(SET);
    room.pod(POD);
    room.eventually_counts("the pod is counted", ["1", "1", "1"]);
    room.set_at_rest();
    let versions = || {
        let configurations = room.get(&[
            "mutatingwebhookconfiguration/outrider-mutating",
            "validatingwebhookconfiguration/outrider-validating",
        ]);
        let set = room.get(&["sidecarset", room.name()]);
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        let items = configurations["items"].as_array().unwrap();
        items.iter().chain([&set]).map(version).collect::<Vec<_>>()
    };
    let before = (versions(), room.stage.cluster.audit_events().unwrap().len());
    // Longer than two of every period: renewals every 2 s, comparison of the webhook configurations every 15 s.
    std::thread::sleep(std::time::Duration::from_secs(32));
    assert_eq!(versions(), before.0);
    let events = room.stage.cluster.audit_events().unwrap();
    let ours = events[before.1..].iter().filter(|event| event["user"]["username"] == USER);
    let writes: Vec<&Value> = ours
        .filter(|event| ["create", "update", "patch", "delete"].iter().any(|verb| event["verb"] == *verb))
        .collect();
    let of = |resource: &'static str| writes.iter().filter(move |event| event["objectRef"]["resource"] == resource);
    assert!(of("leases").count() > 1, "the window has seen renewals");
    // Other tests' sets change meanwhile.
    assert_eq!(of("sidecarsets").filter(|event| event["objectRef"]["name"] == *room.name()).count(), 0);
    assert_eq!(of("secrets").count(), 0);
}
