//! What a process with `CronJob`s leaves behind, finds again and costs, on a cluster of its own.

use cluster::Cluster;
use serde_json::{Value, json};

use crate::cronjob::{KINDS, bare_cluster, cronjob, registered};
use crate::process::{Outrider, eventually, outrider, service_account_of};

const DEFINITION: &str = "cronjobs.batch.outrider.dev";
const ODD: [&str; 10] = [
    "@hourly",
    "@every 5m",
    "0  0 1 1 *",
    "0 0 30 2 *",
    ", * * * *",
    "0 0 ? * MON-fri",
    "* * * * *",
    "nonsense",
    " ",
    "\t1 1\t1 1 *",
];

fn get(cluster: &Cluster, args: &[&str]) -> Value {
    serde_json::from_str(&cluster.kubectl_ok(&[&["get", "-o", "json"], args].concat(), None).unwrap()).unwrap()
}

/// Acceptance check 12 with 1,000 objects, stored while nobody judged them.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_thousand_odd_schedules_are_listed_in_both_versions_and_then_all_is_quiet() {
    let cluster = bare_cluster();
    let namespace = cluster.namespace("odd").unwrap();
    let objects: Vec<Value> = (0..1000)
        .map(|number| {
            let schedule = ODD[number % ODD.len()];
            // Suspended: there is nobody who would end 1,000 Jobs.
            cronjob(&format!("odd-{number}"), &json!({"schedule": schedule, "suspend": true}))
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    namespace.kubectl_ok(&["create", "-f", "-"], Some(&list.to_string())).unwrap();
    let outrider = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &[KINDS]);
    registered(&cluster, &outrider);
    for version in ["v1", "v2"] {
        let listed = get(&cluster, &["-A", &format!("cronjobs.{version}.batch.outrider.dev")]);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1000, "{version}");
    }
    let listed = get(&cluster, &["-A", "cronjobs.v1.batch.outrider.dev"]);
    for object in listed["items"].as_array().unwrap() {
        let number: usize = object["metadata"]["name"].as_str().unwrap().trim_start_matches("odd-").parse().unwrap();
        assert_eq!(object["spec"]["schedule"], ODD[number % ODD.len()], "what was written is read");
    }
    eventually("every object is seen to, however wrong it is", || {
        let listed = get(&cluster, &["-A", "cronjobs.v1.batch.outrider.dev"]);
        let seen = |object: &Value| object["metadata"]["finalizers"][0].is_string() && object["status"].is_object();
        listed["items"].as_array().unwrap().iter().all(seen)
    });
    let quiet = |count: &dyn Fn() -> u64| {
        let before = count();
        std::thread::sleep(std::time::Duration::from_secs(3));
        count() == before
    };
    eventually("the controller rests", || quiet(&|| outrider.reconciles("cronjob")));
    eventually("nothing is converted any more", || quiet(&|| outrider.reviews("/convert")));
    outrider.end();
    is_as_printed(&get(&cluster, &["crd", DEFINITION]));
}

/// A process outside the cluster takes its address with it.
fn is_as_printed(definition: &Value) {
    let printed = outrider(&["manifests", "crds", KINDS]);
    let printed = outrider::yaml::read(&printed).unwrap().into_iter().map(|document| document.value);
    let printed = printed.into_iter().find(|object| object["metadata"]["name"] == DEFINITION).unwrap();
    assert_eq!(definition["spec"]["conversion"], printed["spec"]["conversion"]);
}

/// The leader gives the conversion webhook its caBundle and touches nothing else; and acceptance check 24: a process that is
/// killed before it has written what it did starts no second Job.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_definition_gets_the_ca_bundle_and_a_killed_process_starts_no_run_twice() {
    let cluster = bare_cluster();
    let account = service_account_of(&cluster, &[KINDS]);
    // Without webhooks nobody has to answer at a Service that is not there.
    let flags = ["--certificates=self", KINDS];
    let webhooks = outrider(&["manifests", "webhooks"]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks)).unwrap();
    let first = Outrider::start(&cluster, &account, &flags);
    first.ready();
    let client_config = || get(&cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"].take();
    let secret = || get(&cluster, &["secret", "-n", "outrider-system", "outrider-ca"])["data"]["tls.crt"].take();
    eventually("the caBundle is there", || client_config()["caBundle"] == secret());
    let mut definition = get(&cluster, &["crd", DEFINITION]);
    definition["spec"]["conversion"]["webhook"]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    is_as_printed(&definition);
    let crds = outrider(&["manifests", "crds", KINDS]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&crds)).unwrap();
    assert_eq!(client_config()["caBundle"], secret(), "applying the manifests again leaves the caBundle");

    let namespace = cluster.namespace("killed").unwrap();
    namespace.apply(&cronjob("once", &json!({"suspend": true})).to_string()).unwrap();
    let v1 = "cronjobs.v1.batch.outrider.dev";
    let object = || get(&cluster, &["-n", namespace.name(), v1, "once"]);
    let jobs = || namespace.kubectl_ok(&["get", "jobs", "-o", "name"], None).unwrap().lines().count();
    let patch = |args: &[&str], patch: Value| {
        let patch = patch.to_string();
        namespace
            .kubectl_ok(&[&["patch", "--type=merge", "-p", patch.as_str(), v1, "once"], args].concat(), None)
            .unwrap();
    };
    eventually("it is seen", || object()["status"]["conditions"].is_array());
    // It is due every new year.
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 400);
    patch(&["--subresource=status"], json!({"status": {"lastScheduleTime": long_ago.to_string()}}));
    patch(&[], json!({"spec": {"suspend": false}}));
    eventually("a run starts", || jobs() == 1);
    first.kill();
    // As if it had ended right after it made the Job.
    patch(&["--subresource=status"], json!({"status": null}));
    let second = Outrider::start(&cluster, &account, &flags);
    eventually("the next process sees the Job", || {
        object()["status"]["active"].as_array().is_some_and(|active| active.len() == 1)
    });
    assert_eq!(jobs(), 1);
    second.end();
}
