//! How many events each action on a Deployment makes: counted by a Collector, and by kubectl. `make collector-experiment` prints it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use cluster::{Cluster, Namespace};

use crate::collector::{collector, deployment, stage, status, target};
use crate::process::eventually;

/// So long nothing must happen before an action is over. The controllers take milliseconds from one step to the next.
const QUIET: Duration = Duration::from_secs(1);

/// `kubectl get deployment web -w`, which prints a line for what is there and one for each event.
struct KubectlWatch {
    kubectl: Child,
    lines: PathBuf,
}

impl KubectlWatch {
    fn start(cluster: &Cluster, namespace: &Namespace<'_>) -> Self {
        let lines = cluster.dir().join(format!("logs/{}-watch", namespace.name()));
        let kubectl = cluster
            .command(cluster.tools().program("kubectl"))
            .args(["get", "deployment", "web", "-w", "--no-headers", "-n", namespace.name()])
            .stdin(Stdio::null())
            .stdout(File::create(&lines).unwrap())
            .spawn()
            .unwrap();
        let watch = Self { kubectl, lines };
        eventually("kubectl has printed what is there", || watch.lines() == 1);
        watch
    }

    fn lines(&self) -> usize {
        fs::read_to_string(&self.lines).unwrap().lines().count()
    }
}

impl Drop for KubectlWatch {
    fn drop(&mut self) {
        drop(self.kubectl.kill());
        drop(self.kubectl.wait());
    }
}

struct Experiment<'a> {
    namespace: &'a Namespace<'a>,
    watch: KubectlWatch,
    /// What both had counted when the last action was over.
    before: usize,
}

impl<'a> Experiment<'a> {
    /// With a Deployment of three replicas.
    fn begin(cluster: &Cluster, namespace: &'a Namespace<'a>) -> Self {
        namespace.apply(&deployment(3)).unwrap();
        namespace.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout=120s"], None).unwrap();
        sleep(QUIET);
        namespace.apply(&collector("c", &target())).unwrap();
        eventually("the count has begun", || status(namespace, "c")["events"]["total"] == 0);
        println!("| action | Collector | kubectl | status.lastOperation |\n|---|---|---|---|");
        Self { namespace, watch: KubectlWatch::start(cluster, namespace), before: 0 }
    }

    /// What the Collector and kubectl have counted.
    fn counts(&self) -> [usize; 2] {
        let total = status(self.namespace, "c")["events"]["total"].as_u64().unwrap();
        [usize::try_from(total).unwrap(), self.watch.lines() - 1]
    }

    /// Does something and waits until it is over; says how many events it made. Both must agree.
    fn act(&mut self, action: &str, commands: &[&[&str]]) -> usize {
        for command in commands {
            self.namespace.kubectl_ok(command, None).unwrap();
        }
        self.namespace.kubectl_ok(&["rollout", "status", "deployment/web", "--timeout=120s"], None).unwrap();
        let mut counts = self.counts();
        eventually(&format!("the Collector counts what kubectl prints after: {action}"), || {
            sleep(QUIET);
            let last = std::mem::replace(&mut counts, self.counts());
            counts == last && counts[0] == counts[1]
        });
        let events = counts.map(|count| count - self.before);
        let operation = status(self.namespace, "c")["lastOperation"].take();
        let (description, of_operation) = (operation["description"].as_str().unwrap(), &operation["events"]);
        println!("| {action} | {} | {} | {description}: {of_operation} |", events[0], events[1]);
        self.before = counts[0];
        events[0]
    }

    fn scale(&mut self, from: u32, to: u32) {
        let replicas = format!("--replicas={to}");
        self.act(&format!("replicas {from} -> {to}"), &[&["scale", "deployment/web", &replicas]]);
    }

    fn delete_pods(&mut self, action: &str, count: usize) {
        let pods = self.namespace.kubectl_ok(&["get", "pods", "-o", "name"], None).unwrap();
        let pods: Vec<&str> = pods.lines().take(count).collect();
        assert!(self.act(action, &[&[&["delete"], pods.as_slice()].concat()]) > 0);
    }

    /// Acceptance check 28: two events each.
    fn switch_strategy(&mut self, replicas: u32) {
        let recreate = r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#;
        let rolling = r#"{"spec":{"strategy":{"type":"RollingUpdate"}}}"#;
        for (action, patch) in [("RollingUpdate -> Recreate", recreate), ("Recreate -> RollingUpdate", rolling)] {
            let action = format!("{action}, {replicas} replicas");
            assert_eq!(self.act(&action, &[&["patch", "deployment/web", "-p", patch]]), 2, "{action}");
        }
    }
}

/// Acceptance check 28 with the controllers of Kubernetes itself.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_collector_counts_what_an_independent_watch_counts() {
    let cluster = &stage().cluster;
    let namespace = cluster.namespace("experiment").unwrap();
    let mut experiment = Experiment::begin(cluster, &namespace);
    experiment.delete_pods("delete one pod", 1);
    experiment.delete_pods("delete two pods at once", 2);
    experiment.scale(3, 1);
    experiment.scale(1, 3);
    experiment.scale(3, 4);
    experiment.switch_strategy(4);
    experiment.scale(4, 0);
    experiment.scale(0, 2);
    experiment.switch_strategy(2);
}
