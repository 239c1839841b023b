//! What happens when replicas die, and when none is left.

use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::{Output, in_own_network};
use serde_json::{Value, json};

use crate::pods::{Tally, report};
use crate::process::{eventually, outrider_on};
use crate::stage::Stage;
use crate::turn;

const FLAGS: [&str; 2] = ["--certificates=self", "--narrow-webhooks"];

/// In which an API server learns of an `EndpointSlice` that was written.
const NEWS: Duration = Duration::from_secs(1);

#[test]
#[ignore = "needs a control plane: make test"]
fn a_killed_replica_costs_few_creates_and_without_any_the_cluster_lives() {
    let _turn = turn();
    let body = || {
        let mut stage = Stage::set_up();
        let replicas = [stage.replica(&FLAGS), stage.replica(&FLAGS)];
        stage.register();
        stage.apply_set();
        let conditions =
            ["get", "mutatingwebhookconfiguration", "outrider-mutating", "-o=jsonpath={..matchConditions}"];
        eventually("only pods that the set can match are asked about", || {
            stage.cluster.kubectl_ok(&conditions, None).unwrap().contains("'web'")
        });

        let [killed, last] = replicas;
        let pods = stage.create_pods("two replicas");
        sleep(NEWS * 3);
        pods.phase("one is killed");
        let address = killed.address;
        killed.process.kill();
        eventually("it is no endpoint any more", || !stage.kubelets.is_endpoint(address));
        pods.phase("the API server learns of it");
        sleep(NEWS);
        pods.phase("one replica");
        sleep(NEWS * 4);
        let tallies = pods.end(stage.runtime.handle());
        println!("{}", report(&tallies));
        let failed: Vec<usize> = tallies.iter().map(Tally::failed).collect();
        assert_eq!((failed[0], failed[3]), (0, 0), "{}", report(&tallies));
        assert!(tallies[0].created > 0 && tallies[3].created > 0, "{}", report(&tallies));
        // Of two replicas one is dead, and docs/availability.md says that fewer calls fail than half of the window's.
        let refused = failed[1] + failed[2];
        let asked = refused + tallies[1].created + tallies[2].created;
        assert!(refused * 2 < asked, "{}", report(&tallies));

        let address = last.address;
        last.process.kill();
        eventually("there is no endpoint", || !stage.kubelets.is_endpoint(address));
        nobody_answers(&stage);
        break_glass(&stage);

        let again = stage.replica(&FLAGS);
        eventually("pods are injected again", || injected(&create(&stage, "default", &web())) == Some(true));
        stage.end(again);
    };
    in_own_network("outage::a_killed_replica_costs_few_creates_and_without_any_the_cluster_lives", body).unwrap();
}

/// A pod that the set selects.
fn web() -> Value {
    json!({"app": "web"})
}

fn create(stage: &Stage, namespace: &str, labels: &Value) -> Output {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    stage.cluster.kubectl(&["create", "-o", "json", "-f", "-"], Some(&pod.to_string())).unwrap()
}

/// Whether a pod that was created was injected.
fn injected(output: &Output) -> Option<bool> {
    let pod: Value = serde_json::from_str(&output.stdout).ok()?;
    Some(pod["spec"]["containers"].as_array()?.len() == 2)
}

fn nobody_answers(stage: &Stage) {
    for namespace in ["excluded", "other"] {
        stage.cluster.kubectl_ok(&["create", "namespace", namespace], None).unwrap();
    }
    stage.cluster.kubectl_ok(&["label", "namespace", "excluded", "outrider.dev/exclude="], None).unwrap();
    for namespace in ["kube-system", "outrider-system", "excluded", "other"] {
        let account = ["create", "serviceaccount", "default", "--namespace", namespace];
        stage.cluster.kubectl_ok(&account, None).unwrap();
    }
    // The API server goes by the label of a namespace a moment after it was written.
    eventually("an excluded namespace takes pods", || create(stage, "excluded", &web()).success());
    let asked_about = [("default", web()), ("other", web())];
    for (namespace, labels) in asked_about {
        let refused = create(stage, namespace, &labels);
        assert!(refused.stderr.contains("no endpoints available for service"), "{}", refused.stderr);
    }
    let left_alone =
        [("kube-system", web()), ("outrider-system", web()), ("excluded", web()), ("other", json!({"app": "db"}))];
    for (namespace, labels) in left_alone {
        let begun = Instant::now();
        let output = create(stage, namespace, &labels);
        assert_eq!(injected(&output), Some(false), "{namespace}: {}", output.stderr);
        println!("a pod in {namespace} with {labels}: created in {} ms", begun.elapsed().as_millis());
    }
    renew_node_lease(stage);
    let doctor = outrider_on(&stage.cluster.kubeconfig(), &["doctor", "--service-account=outrider"]);
    assert_eq!(doctor.code, Some(3), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("has no ready endpoint, 2 not ready"), "{}", doctor.stdout);
}

/// As a kubelet does every ten seconds; a node whose lease is not renewed is lost.
fn renew_node_lease(stage: &Stage) {
    let lease = "
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: node-1, namespace: kube-node-lease}
spec: {holderIdentity: node-1, leaseDurationSeconds: 40}
";
    stage.cluster.kubectl_ok(&["create", "-f", "-"], Some(lease)).unwrap();
    let renewed = r#"{"spec":{"renewTime":"2030-01-01T00:00:00.000000Z"}}"#;
    let renew = ["patch", "lease", "node-1", "--namespace=kube-node-lease", "--type=merge", "-p", renewed];
    stage.cluster.kubectl_ok(&renew, None).unwrap();
}

fn break_glass(stage: &Stage) {
    let run = |args: &[&str]| {
        let output = outrider_on(&stage.cluster.kubeconfig(), args);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    };
    run(&["break-glass"]);
    eventually("pods pass without sidecar", || injected(&create(stage, "default", &web())) == Some(false));
    run(&["break-glass", "--undo"]);
    eventually("pods are refused again", || !create(stage, "default", &web()).success());
}
