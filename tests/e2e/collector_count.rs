//! The count of a Collector, step by step: the test is the only one who writes to the Deployment.

use cluster::{Cluster, Namespace, Options};
use serde_json::{Value, json};

use crate::collector::{KINDS, collector, deployment, status, target};
use crate::process::{Outrider, eventually, install_of, service_account_of};
use crate::workshop::{get, resync, writes, writes_at_rest};

/// Writes to the Deployment as a person and as its controller would.
struct Script<'a>(&'a Namespace<'a>);

impl Script<'_> {
    fn spec(&self, spec: &Value) {
        let patch = json!({"spec": spec}).to_string();
        self.0.kubectl_ok(&["patch", "deployment/web", "-p", &patch], None).unwrap();
    }

    /// The controller has seen the spec, and so many pods are there; all of them are available.
    fn step(&self, pods: i64) {
        let deployment = get(self.0, "deployment/web").unwrap();
        let status = json!({"observedGeneration": deployment["metadata"]["generation"], "replicas": pods,
            "updatedReplicas": pods, "readyReplicas": pods, "availableReplicas": pods});
        let patch = json!({"status": status}).to_string();
        let args = ["patch", "deployment/web", "--subresource=status", "--type=merge", "-p", &patch];
        self.0.kubectl_ok(&args, None).unwrap();
    }

    /// The count once it is up to date. The version is the last of the Deployment's, so nothing is left to be counted.
    fn counted(&self) -> Value {
        let version = get(self.0, "deployment/web").unwrap()["metadata"]["resourceVersion"].take();
        eventually("all is counted", || status(self.0, "c")["events"]["lastResourceVersion"] == version);
        status(self.0, "c")
    }

    fn total(&self) -> i64 {
        self.counted()["events"]["total"].as_i64().unwrap()
    }
}

/// Acceptance check 28: the rows 2, 4 and 5 of the published experiment, which differ in the steps of the status alone.
fn a_scripted_controller_makes_the_published_numbers(script: &Script<'_>) {
    let recreate = json!({"strategy": {"type": "Recreate", "rollingUpdate": null}});
    for (spec, steps, events, description) in [
        (Some(recreate), vec![3], 2, "strategy RollingUpdate -> Recreate"),
        (Some(json!({"replicas": 1})), vec![3, 2, 1], 4, "replicas 3 -> 1"),
        (Some(json!({"replicas": 3})), vec![0, 1, 2, 3], 5, "replicas 1 -> 3"),
        (None, vec![2, 3], 2, "2 of 3 replicas available"),
    ] {
        let before = script.total();
        if let Some(spec) = spec {
            script.spec(&spec);
        }
        for pods in steps {
            script.step(pods);
        }
        assert_eq!(script.total() - before, events, "{description}");
        let operation = script.counted()["lastOperation"].take();
        assert_eq!((&operation["description"], &operation["events"]), (&json!(description), &json!(events)));
    }
}

/// Acceptance check 29: a process that begins again counts what happened meanwhile, and nothing twice.
fn a_restart_counts_nothing_twice(outrider: Outrider, script: &Script<'_>, start: impl Fn() -> Outrider) -> Outrider {
    let before = script.total();
    outrider.kill();
    script.spec(&json!({"replicas": 2}));
    script.step(1);
    script.step(2);
    let outrider = start();
    assert_eq!(script.total(), before + 3);
    let operation = script.counted()["lastOperation"].take();
    assert_eq!((&operation["description"], &operation["events"]), (&json!("spec changed"), &json!(3)));

    outrider.end();
    let written = get(script.0, "collector/c");
    let outrider = start();
    eventually("it has been looked at", || outrider.reconciles("collector") > 0);
    assert_eq!(get(script.0, "collector/c"), written, "nothing has happened, and nothing is written");

    outrider.end();
    script.0.kubectl_ok(&["delete", "deployment/web"], None).unwrap();
    script.0.apply(&deployment(1)).unwrap();
    let outrider = start();
    let events = script.counted()["events"].take();
    assert_eq!((&events["added"], &events["deleted"], &events["total"]), (&json!(1), &json!(1), &json!(before + 5)));
    outrider
}

fn ten_idle_resyncs_cause_no_write(cluster: &Cluster, outrider: &Outrider, script: &Script<'_>) {
    script.counted();
    let [before] = writes_at_rest(cluster, ["collectors"]);
    resync(outrider, script.0, "collector/c", 10);
    // A write that must happen shows when the audit log is complete.
    script.step(2);
    eventually("the write is in the audit log", || writes(cluster, "collectors") > before);
    assert_eq!(writes(cluster, "collectors"), before + 1, "ten reconciles of what is in order wrote something");
}

fn another_reset_begins_at_zero(script: &Script<'_>) {
    assert!(script.total() > 0);
    let mut again = target();
    again["reset"] = json!("again");
    script.0.apply(&collector("c", &again)).unwrap();
    eventually("the count is zero", || status(script.0, "c")["events"]["total"] == 0);
    let begun = script.counted();
    assert_eq!((&begun["events"]["reset"], begun.get("lastOperation")), (&json!("again"), None));
    script.step(1);
    assert_eq!(script.total(), 1);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn every_version_of_a_deployment_is_counted_once() {
    let options = Options { audit: true, kwok: false, controller_manager: false, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_of(&cluster, &[KINDS]);
    let account = service_account_of(&cluster, &[KINDS]);
    let start = || Outrider::start(&cluster, &account, &["--enable-webhooks=false", KINDS]);
    let namespace = cluster.namespace("count").unwrap();
    let script = Script(&namespace);
    namespace.apply(&deployment(3)).unwrap();
    script.step(3);
    namespace.apply(&collector("c", &target())).unwrap();

    let outrider = start();
    assert_eq!(script.total(), 0, "what was there before is no event");
    a_scripted_controller_makes_the_published_numbers(&script);
    ten_idle_resyncs_cause_no_write(&cluster, &outrider, &script);
    let outrider = a_restart_counts_nothing_twice(outrider, &script, start);
    another_reset_begins_at_zero(&script);
    outrider.end();
}
