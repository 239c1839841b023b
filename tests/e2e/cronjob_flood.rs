//! `CronJob`s that are due without a pause, stored while no webhook looks: the requests that a process makes for them are bounded, and so
//! is what it writes into them; pods of others are reviewed as before.

use std::thread;
use std::time::Instant;

use cluster::{Cluster, Namespace, Options};
use serde_json::{Value, json};

use crate::cronjob::{KINDS, cronjob, job_spec, registered};
use crate::process::{Outrider, eventually_counts, install_of, service_account_of};
use crate::replicas::{get, list};
use crate::room::{USER, may_register};
use crate::stored_attacks::{at_rest, reviews_of};

/// Jobs of one `CronJob`, as in the attack.
const CHILDREN: usize = 5_000;
/// Jobs in one request of kubectl, and such requests at one time.
const JOBS_AT_ONCE: usize = 250;
const WRITERS: usize = 4;
/// Runs of each that are waited for. They take a second each.
const RUNS: u64 = 15;
/// Names in `status.active`, and bytes of the whole object.
const NAMES: usize = 100;
const OBJECT: usize = 64 * 1024;

const V1: &str = "cronjobs.v1.batch.outrider.dev";

/// Due at every moment. Of runs that were missed before the process started only some count.
fn restless() -> Value {
    cronjob("restless", &json!({"schedule": "@every 1ns", "startingDeadlineSeconds": 10}))
}

/// Stores Jobs that nothing ends.
fn store_jobs(namespace: &Namespace<'_>, owner: &Value) {
    let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    let owners = json!([{"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": true}]);
    let job = |number: usize| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "spec": job_spec(),
            "metadata": {"name": format!("child-{number}"), "ownerReferences": owners}})
    };
    let jobs: Vec<Value> = (0..CHILDREN).map(job).collect();
    thread::scope(|scope| {
        for part in jobs.chunks(CHILDREN / WRITERS) {
            scope.spawn(move || {
                for few in part.chunks(JOBS_AT_ONCE) {
                    namespace.kubectl_ok(&["create", "--validate=false", "-f", "-"], Some(&list(few))).unwrap();
                }
            });
        }
    });
}

/// Requests of the process about objects of a namespace.
struct Requests(Vec<Value>);

impl Requests {
    fn of(cluster: &Cluster, namespace: &Namespace<'_>) -> Self {
        let mut events = cluster.audit_events().unwrap();
        events.retain(|event| event["user"]["username"] == USER && event["objectRef"]["namespace"] == namespace.name());
        Self(events)
    }

    fn count(&self, verbs: &[&str], resource: &str, sub_resource: &str) -> u64 {
        let is_meant = |event: &&Value| {
            verbs.iter().any(|verb| event["verb"] == *verb)
                && event["objectRef"]["resource"] == resource
                && event["objectRef"]["subresource"].as_str().unwrap_or_default() == sub_resource
        };
        self.0.iter().filter(is_meant).count() as u64
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn of_cronjobs_that_are_always_due_a_process_writes_a_bounded_amount_and_reviews_go_on() {
    let options = Options { kwok: false, controller_manager: false, audit: true, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_of(&cluster, &[KINDS]);
    let account = service_account_of(&cluster, &[KINDS]);
    may_register(&cluster);
    let shop = cluster.namespace("shop").unwrap();
    shop.kubectl_ok(&["create", "serviceaccount", "default"], None).unwrap();
    let at_rest = at_rest(&cluster, &shop);
    let rooms = ["alone", "crowded"].map(|name| cluster.namespace(name).unwrap());
    for room in &rooms {
        room.kubectl_ok(&["create", "-f", "-"], Some(&restless().to_string())).unwrap();
    }
    let stored = |room: &Namespace<'_>| get(&cluster, &["--namespace", room.name(), V1, "restless"]);
    store_jobs(&rooms[1], &stored(&rooms[1]));

    let begun = Instant::now();
    let outrider = Outrider::registered_as(&cluster, &account, &[KINDS]);
    registered(&cluster, &outrider);
    let server = reviews_of(&cluster, &outrider);
    let beside = at_rest.beside(&server, "of CronJobs that are always due, one of them with 5,000 Jobs");
    for (room, before) in rooms.iter().zip([0, CHILDREN as u64]) {
        let jobs = || room.kubectl_ok(&["get", "jobs", "-o", "name"], None).unwrap().lines().count() as u64;
        eventually_counts("runs start", before + RUNS, jobs);
    }
    beside.end();

    for room in &rooms {
        let requests = Requests::of(&cluster, room);
        let object = stored(room);
        // Read last: what was counted happened before.
        let seconds = begun.elapsed().as_secs() + 1;
        let created = requests.count(&["create"], "jobs", "");
        let statuses = requests.count(&["patch", "update"], "cronjobs", "status");
        let events = requests.count(&["create", "patch", "update"], "events", "");
        let all = requests.0.len() as u64;
        let active = object["status"]["active"].as_array().unwrap().len();
        println!(
            "{}: in {seconds} s {created} Jobs, {statuses} statuses, {events} events, {all} requests; {active} names, {} bytes",
            room.name(),
            object.to_string().len()
        );
        // One in a second, and so many at once.
        assert!(created <= 5 + seconds, "{created} Jobs in {seconds} s");
        assert!(statuses <= 20 + 2 * seconds, "{statuses} statuses in {seconds} s");
        assert!(events <= 10 + seconds, "{events} events in {seconds} s");
        // A run is its Job, its status and its event, and the CronJob is read before it.
        assert!(all <= 50 + 6 * seconds, "{all} requests in {seconds} s");
        assert!(active <= NAMES, "{active}");
        assert!(object.to_string().len() <= OBJECT, "{}", object.to_string().len());
    }
    let (tries, seconds) = (outrider.reconciles_tried("cronjob"), begun.elapsed().as_secs() + 1);
    println!("{tries} reconciles in {seconds} s");
    assert!(tries <= 100 + 20 * seconds, "{tries} reconciles in {seconds} s");
    outrider.end();
}
