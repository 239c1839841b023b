//! `CronJob` on a real API server: webhooks, conversion and the controller, with the printed roles and no others.
//!
//! No Job controller runs: what becomes of a Job is written by the tests. Nor is time waited for, but for one run: a `CronJob`
//! of every new year whose status says that it last ran before the last one is due at once, and only once.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Namespace, Options};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install_of, service_account_of};
use crate::room::may_register;
use crate::toy_webhook::{Begun, post};

pub const KINDS: &str = "--enable-kinds=cronjob";
const V1: &str = "cronjobs.v1.batch.outrider.dev";
/// More than a year.
const LONG: SignedDuration = SignedDuration::from_hours(24 * 400);
const V2: &str = "cronjobs.v2.batch.outrider.dev";

/// A cluster without a Job controller, and an Outrider outside it.
struct Stage {
    cluster: Cluster,
    outrider: Outrider,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let cluster = bare_cluster();
        let account = service_account_of(&cluster, &[KINDS]);
        may_register(&cluster);
        let outrider = Outrider::registered_as(&cluster, &account, &[KINDS]);
        registered(&cluster, &outrider);
        Stage { cluster, outrider }
    })
}

/// With the definition of `CronJob`, and no process that serves it.
pub fn bare_cluster() -> Cluster {
    let options = Options { kwok: false, controller_manager: false, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_of(&cluster, &[KINDS]);
    cluster
}

/// Waits until the API server asks this process about `CronJob`s.
pub fn registered(cluster: &Cluster, outrider: &Outrider) {
    outrider.ready();
    let namespace = cluster.namespace("probe").unwrap();
    let probe = |version: &str, schedule: Value| {
        let mut object = cronjob("probe", &json!({"schedule": schedule}));
        object["apiVersion"] = json!(format!("batch.outrider.dev/{version}"));
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        namespace.kubectl(&create, Some(&object.to_string())).unwrap()
    };
    eventually("a CronJob is defaulted", || probe("v1", json!("0 0 1 1 *")).stdout.contains("concurrencyPolicy"));
    eventually("a CronJob is validated", || probe("v1", json!("x")).stderr.contains("is invalid"));
    eventually("a CronJob is converted", || probe("v2", json!({})).success());
}

/// A namespace for one test.
struct Room(Namespace<'static>);

impl Room {
    fn new(name: &str) -> Self {
        Self(stage().cluster.namespace(name).unwrap())
    }

    /// Applies a v1 object with these fields of `spec` beside its own.
    fn apply(&self, name: &str, fields: &Value) -> Result<(), String> {
        let applied = self.0.kubectl(&["apply", "-f", "-"], Some(&cronjob(name, fields).to_string())).unwrap();
        if applied.success() { Ok(()) } else { Err(applied.stderr) }
    }

    fn get(&self, what: &str, name: &str) -> Option<Value> {
        let output = self.0.kubectl(&["get", "-o", "json", what, name], None).unwrap();
        output.success().then(|| serde_json::from_str(&output.stdout).unwrap())
    }

    fn v1(&self, name: &str) -> Value {
        self.get(V1, name).unwrap()
    }

    fn v2(&self, name: &str) -> Value {
        self.get(V2, name).unwrap()
    }

    fn patch(&self, what: &[&str], patch: &Value) {
        let patch = patch.to_string();
        self.0.kubectl_ok(&[&["patch", "--type=merge", "-p", patch.as_str()], what].concat(), None).unwrap();
    }

    /// A suspended `CronJob` that the controller has seen, and that last ran long ago as far as it knows.
    fn seen(&self, name: &str, fields: &Value) -> Value {
        self.apply(name, &merged(json!({"suspend": true}), fields)).unwrap();
        eventually("it is seen", || self.condition(name, "Available").is_some());
        let last = (seconds_ago(0) - LONG).to_string();
        self.patch(&["--subresource=status", V1, name], &json!({"status": {"lastScheduleTime": last}}));
        self.v1(name)
    }

    /// Lets it run; a run is due at once.
    fn resume(&self, name: &str) {
        self.patch(&[V1, name], &json!({"spec": {"suspend": false}}));
    }

    /// A Job as if a user had started it for the `CronJob`.
    fn job(&self, name: &str, owner: &Value) {
        let (owner_name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
        let metadata = json!({
            "name": name,
            "ownerReferences": [{"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": owner_name,
                "uid": uid, "controller": true, "blockOwnerDeletion": true}],
        });
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job_spec()});
        self.0.apply(&job.to_string()).unwrap();
    }

    /// What the Job controller writes when a Job has ended, in the order in which the API server wants it.
    fn end_job(&self, name: &str, outcome: &str, started_seconds_ago: i64) {
        let time = seconds_ago(started_seconds_ago).to_string();
        let condition = |type_: &str| {
            json!({"type": type_, "status": "True", "reason": "Test", "message": "", "lastProbeTime": time,
                "lastTransitionTime": time})
        };
        // API servers before 1.31 refuse this one of a Job without a success policy; newer ones insist on it.
        let before = match outcome {
            "Complete" if stage().cluster.minor_version() < 31 => None,
            "Complete" => Some("SuccessCriteriaMet"),
            _ => Some("FailureTarget"),
        };
        let mut conditions: Vec<Value> = before.into_iter().map(condition).collect();
        let mut status = json!({"startTime": time, "conditions": conditions, "uncountedTerminatedPods": {}});
        self.patch(&["--subresource=status", "job", name], &json!({"status": status}));
        conditions.push(condition(outcome));
        status["conditions"] = json!(conditions);
        if outcome == "Complete" {
            status["completionTime"] = json!(time);
        }
        self.patch(&["--subresource=status", "job", name], &json!({"status": status}));
    }

    fn jobs(&self) -> Vec<String> {
        let names = self.0.kubectl_ok(&["get", "jobs", "-o", "name"], None).unwrap();
        names.lines().map(|line| line.trim_start_matches("job.batch/").to_owned()).collect()
    }

    fn active(&self, name: &str) -> Vec<String> {
        let active = self.v1(name)["status"]["active"].as_array().cloned().unwrap_or_default();
        active.iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect()
    }

    /// `True JobsActive`, for example.
    fn condition(&self, name: &str, type_: &str) -> Option<String> {
        let object = self.v1(name);
        let conditions = object["status"]["conditions"].as_array()?;
        let condition = conditions.iter().find(|condition| condition["type"] == type_)?;
        Some(format!("{} {}", condition["status"].as_str()?, condition["reason"].as_str()?))
    }

    /// Waits until the controller has seen the object as it is now. What it does then it does before it says so, but for Jobs.
    fn settled(&self, name: &str) {
        let zone = if self.v1(name)["spec"]["timeZone"] == "UTC" { "Etc/UTC" } else { "UTC" };
        self.patch(&[V1, name], &json!({"spec": {"timeZone": zone}}));
        eventually("it is looked at", || {
            let object = self.v1(name);
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
        });
    }
}

pub fn job_spec() -> Value {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]});
    json!({"template": {"metadata": {"labels": {"of": "pod"}}, "spec": pod}})
}

pub fn cronjob(name: &str, fields: &Value) -> Value {
    let metadata = json!({"labels": {"team": "a"}, "annotations": {"note": "b"}});
    let spec = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"metadata": metadata, "spec": job_spec()}});
    json!({
        "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": merged(spec, fields),
    })
}

/// A `null` takes a field away.
fn merged(mut object: Value, fields: &Value) -> Value {
    json_patch::merge(&mut object, fields);
    object
}

fn seconds_ago(seconds: i64) -> Timestamp {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    now - SignedDuration::from_secs(seconds)
}

/// Acceptance check 2.
#[test]
#[ignore = "needs a control plane: make test"]
fn both_versions_are_served_and_v1_is_stored() {
    let cluster = &stage().cluster;
    let group: Value =
        serde_json::from_str(&cluster.kubectl_ok(&["get", "--raw", "/apis/batch.outrider.dev"], None).unwrap())
            .unwrap();
    assert_eq!(group["preferredVersion"]["version"], "v2");
    assert_eq!(group["versions"].as_array().unwrap().len(), 2);
    let crd = cluster.kubectl_ok(&["get", "crd", "cronjobs.batch.outrider.dev", "-o", "json"], None).unwrap();
    let crd: Value = serde_json::from_str(&crd).unwrap();
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
}

/// Acceptance checks 4 and 9.
#[test]
#[ignore = "needs a control plane: make test"]
fn what_is_not_said_is_defaulted_and_a_zero_is_something_said() {
    let room = Room::new("defaults");
    room.apply("plain", &json!({"schedule": "0 0 1 1 *"})).unwrap();
    room.apply("zero", &json!({"schedule": "0 0 1 1 *", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}))
        .unwrap();
    for (name, successful, failed) in [("plain", 3, 1), ("zero", 0, 0)] {
        let spec = &room.v1(name)["spec"];
        assert_eq!((&spec["concurrencyPolicy"], &spec["suspend"]), (&json!("Allow"), &json!(false)));
        assert_eq!(spec["successfulJobsHistoryLimit"], successful);
        assert_eq!(spec["failedJobsHistoryLimit"], failed);
    }
    for (fields, field) in [
        (json!({"concurrencyPolicy": "Nope"}), "spec.concurrencyPolicy: Unsupported value: \"Nope\""),
        (json!({"successfulJobsHistoryLimit": -1}), "spec.successfulJobsHistoryLimit"),
        (json!({"startingDeadlineSeconds": -5}), "spec.startingDeadlineSeconds"),
        (json!({"jobTemplate": null}), "spec.jobTemplate: Required value"),
    ] {
        let error = room.apply("bad", &fields).unwrap_err();
        assert!(error.contains(field) && error.contains("is invalid"), "{error}");
    }
}

/// Acceptance checks 6, 7 and 8.
#[test]
#[ignore = "needs a control plane: make test"]
fn schedules_and_names_are_judged_in_the_words_of_the_original() {
    let room = Room::new("schedules");
    for (schedule, detail) in [
        ("", "Empty spec string"),
        ("invalid-cron-schedule", "Expected exactly 5 fields, found 1: invalid-cron-schedule"),
        ("* * * * * *", "Expected exactly 5 fields, found 6: * * * * * *"),
        ("TZ=UTC * * * * *", "Expected exactly 5 fields, found 6: TZ=UTC * * * * *"),
        ("60 * * * *", "End of range (60) above maximum (59): 60"),
        ("* * 0 * *", "Beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "End of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "Beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "Step of range should be a positive number: */0"),
        ("*/-1 * * * *", "Negative number (-1) not allowed: -1"),
        ("1--2 * * * *", "Too many hyphens: 1--2"),
        ("1/2/3 * * * *", "Too many slashes: 1/2/3"),
        ("x * * * *", r#"Failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#),
        ("@bogus", "Unrecognized descriptor: @bogus"),
        ("@every x", r#"Failed to parse duration @every x: time: invalid duration "x""#),
    ] {
        let error = room.apply("bad", &json!({"schedule": schedule})).unwrap_err();
        let wanted = format!("spec.schedule: Invalid value: {schedule:?}: {detail}");
        assert!(error.contains(&wanted), "{error}\nis not about\n{wanted}");
    }
    for (number, schedule) in ["@hourly", "@every 5m", "0 0 ? * MON-fri", "0  0 1 1 *"].into_iter().enumerate() {
        room.apply(&format!("good-{number}"), &json!({"schedule": schedule})).unwrap();
    }
    room.apply(&"n".repeat(52), &json!({"schedule": "0 0 1 1 *"})).unwrap();
    let long = room.apply(&"n".repeat(53), &json!({"schedule": "x y"})).unwrap_err();
    assert!(
        long.contains("metadata.name: Invalid value") && long.contains("must be no more than 52 characters"),
        "{long}"
    );
    assert!(long.contains("Expected exactly 5 fields, found 2: x y"), "{long}");
}

/// Acceptance check 10.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_bad_update_changes_nothing_and_deletion_is_never_refused() {
    let room = Room::new("updates");
    room.apply("good", &json!({"schedule": "0 0 1 1 *"})).unwrap();
    assert!(room.apply("good", &json!({"schedule": "x"})).is_err());
    assert_eq!(room.v1("good")["spec"]["schedule"], "0 0 1 1 *");
    eventually("the finalizer is there", || {
        room.v1("good")["metadata"]["finalizers"] == json!(["batch.outrider.dev/finalizer"])
    });
    // Check 23: it goes within seconds.
    room.0.kubectl_ok(&["delete", V1, "good", "--timeout=30s"], None).unwrap();
    assert_eq!(room.get(V1, "good"), None);
}

/// Acceptance checks 11 and 14, and the upstream tests T13 and T14 with the samples of this repository.
#[test]
#[ignore = "needs a control plane: make test"]
fn each_version_reads_what_the_other_wrote() {
    let room = Room::new("versions");
    for (file, schedule, fields) in [
        ("batch_v1_cronjob.yaml", "*/1 * * * *", json!({"minute": "*/1"})),
        ("batch_v2_cronjob.yaml", "*/1 * * * *", json!({"minute": "*/1"})),
    ] {
        let path = format!("{}/config/samples/{file}", env!("CARGO_MANIFEST_DIR"));
        let sample = engine::yaml::read(&std::fs::read_to_string(path).unwrap()).unwrap().remove(0).value;
        let name = sample["metadata"]["name"].as_str().unwrap();
        let mut object = sample.clone();
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        room.0.apply(&object.to_string()).unwrap();
        assert_eq!(room.v1(name)["spec"]["schedule"], schedule);
        assert_eq!(room.v2(name)["spec"]["schedule"], fields);
    }
    let v2 = |name: &str, schedule: Value| {
        let mut object = cronjob(name, &json!({}));
        object["apiVersion"] = json!("batch.outrider.dev/v2");
        object["spec"]["schedule"] = schedule;
        room.0.kubectl(&["apply", "-f", "-"], Some(&object.to_string())).unwrap()
    };
    assert!(v2("weekdays", json!({"minute": "*/1", "dayOfWeek": "MON-FRI"})).success());
    assert_eq!(room.v1("weekdays")["spec"]["schedule"], "*/1 * * * MON-FRI");
    assert_eq!(room.v1("weekdays")["spec"]["concurrencyPolicy"], "Allow", "v2 objects are defaulted as v1");
    for minute in ["0 0", "", "61"] {
        let refused = v2("bad", json!({"minute": minute}));
        assert!(
            !refused.success() && refused.stderr.contains("spec.schedule.minute"),
            "{minute:?}: {}",
            refused.stderr
        );
        assert!(refused.stderr.contains("is invalid"), "{minute:?}: {}", refused.stderr);
    }
}

/// Acceptance check 13.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_write_in_v2_loses_nothing_of_v1() {
    let room = Room::new("lossless");
    let owner = room.seen("kept", &json!({"schedule": "@every 5m"}));
    room.job("running", &owner);
    eventually("the Job is seen", || room.active("kept") == ["running"]);
    room.0.kubectl_ok(&["annotate", V1, "kept", "example.com/unknown=stays"], None).unwrap();
    let before = room.v1("kept");
    room.0.kubectl_ok(&["label", V2, "kept", "a=b"], None).unwrap();
    let after = room.v1("kept");
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
    for part in ["/spec", "/status", "/metadata/annotations"] {
        assert_eq!(after.pointer(part), before.pointer(part), "{part}");
    }
}

/// Acceptance checks 5, 6 and 15, by asking the process itself.
#[test]
#[ignore = "needs a control plane: make test"]
fn reviews_and_conversions_are_answered_as_the_api_server_wants_them() {
    let Stage { cluster, outrider } = stage();
    let crd = cluster.kubectl_ok(&["get", "crd", "cronjobs.batch.outrider.dev", "-o", "json"], None).unwrap();
    let crd: Value = serde_json::from_str(&crd).unwrap();
    let client_config = &crd["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(client_config["url"], format!("https://{}/convert", outrider.webhooks));
    let ca = STANDARD.decode(client_config["caBundle"].as_str().unwrap());
    let ca = ca.unwrap();
    let objects = [cronjob("a", &json!({})), cronjob("b", &json!({"schedule": "@every 5m"}))];
    let request = json!({"uid": "u-1", "desiredAPIVersion": "batch.outrider.dev/v2", "objects": objects});
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
    let response = &post(outrider.webhooks, &ca, "/convert", &review)["response"];
    assert_eq!((&response["uid"], &response["result"]["status"]), (&json!("u-1"), &json!("Success")));
    let names: Vec<&Value> =
        response["convertedObjects"].as_array().unwrap().iter().map(|object| &object["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    // Conversion does not validate: a wrong object is converted all the same, and blocks nothing.
    let bad = json!({"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": {"name": "bad"}, "spec": 5});
    let request = json!({"uid": "u-3", "desiredAPIVersion": "batch.outrider.dev/v2", "objects": [objects[0], bad]});
    let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
    let response = &post(outrider.webhooks, &ca, "/convert", &review)["response"];
    assert_eq!(response["result"]["status"], "Success");
    assert_eq!(
        (&response["convertedObjects"][1]["spec"], response["convertedObjects"].as_array().unwrap().len()),
        (&json!(5), 2)
    );
    let (garbage, _) = Begun::post(outrider.webhooks, &ca, "/convert", "{\"kind\": ").finish();
    assert!(garbage.contains(" 400 "), "{garbage}");

    let review = |object: Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u-2", "operation": "CREATE", "name": "a", "namespace": "n",
            "kind": {"group": "batch.outrider.dev", "version": "v1", "kind": "CronJob"},
            "resource": {"group": "batch.outrider.dev", "version": "v1", "resource": "cronjobs"},
            "userInfo": {"username": "somebody"}, "object": object,
        }})
    };
    let kind = "batch-outrider-dev-v1-cronjob";
    let reply = post(outrider.webhooks, &ca, &format!("/mutate-{kind}"), &review(cronjob("a", &json!({}))));
    let patch = STANDARD.decode(reply["response"]["patch"].as_str().unwrap());
    let patch: Vec<Value> = serde_json::from_slice(&patch.unwrap()).unwrap();
    assert_eq!(patch.len(), 4, "{patch:?}");
    assert!(patch.iter().all(|operation| operation["op"] == "add"), "{patch:?}");

    let bad = review(cronjob("a", &json!({"schedule": "invalid-cron-schedule"})));
    let status = &post(outrider.webhooks, &ca, &format!("/validate-{kind}"), &bad)["response"]["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(status["details"]["causes"][0]["field"], "spec.schedule");
}

/// Acceptance checks 16 and 17, at the pace of the clock on the wall.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_job_starts_at_the_minute_and_its_end_is_seen() {
    let room = Room::new("minute");
    let created = Timestamp::now();
    room.apply("tick", &json!({"schedule": "*/1 * * * *"})).unwrap();
    eventually("a Job starts", || !room.jobs().is_empty());
    let job = room.get("job", &room.jobs()[0]).unwrap();
    let metadata = &job["metadata"];
    let run: Timestamp = metadata["annotations"]["batch.outrider.dev/scheduled-at"].as_str().unwrap().parse().unwrap();
    assert_eq!((run.as_second() % 60, run > created), (0, true), "{run} {created}");
    assert_eq!(metadata["name"], format!("tick-{}", run.as_second()));
    assert_eq!((&metadata["labels"]["team"], &metadata["annotations"]["note"]), (&json!("a"), &json!("b")));
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["of"], "pod");
    let uid = &room.v1("tick")["metadata"]["uid"];
    let owner = json!([{"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "name": "tick", "uid": uid,
        "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(metadata["ownerReferences"], owner);

    eventually("it is active", || room.active("tick").len() == 1);
    let status = room.v1("tick")["status"].take();
    assert_eq!(status["lastScheduleTime"].as_str().unwrap().parse::<Timestamp>().unwrap(), run);
    let active = &status["active"][0];
    assert_eq!(
        (&active["kind"], &active["uid"], &active["namespace"]),
        (&json!("Job"), &metadata["uid"], &metadata["namespace"])
    );
    room.end_job(metadata["name"].as_str().unwrap(), "Complete", 1);
    eventually("its end is seen", || room.active("tick").is_empty());
}

/// Acceptance check 19.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_schedule_that_never_comes_is_told_and_costs_nothing() {
    let room = Room::new("never");
    room.apply("never", &json!({"schedule": "0 0 30 2 *"})).unwrap();
    eventually("it is told", || room.condition("never", "Degraded").as_deref() == Some("True NeverDue"));
    room.apply("other", &json!({"schedule": "1 1 1 1 *"})).unwrap();
    eventually("others are served", || {
        room.condition("other", "Available").as_deref() == Some("True AllJobsCompleted")
    });
    room.settled("never");
    let settled = room.v1("never")["metadata"]["resourceVersion"].take();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(room.v1("never")["metadata"]["resourceVersion"], settled, "nothing is written while nothing happens");
    assert!(room.active("other").is_empty() && room.jobs().is_empty());
    let events = room.0.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].reason}"], None).unwrap();
    assert_eq!(events, "NeverDue");
}

/// Acceptance check 20, with a Job of an earlier run that goes on.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_concurrency_policy_says_what_becomes_of_a_run_beside_another() {
    let room = Room::new("policies");
    let due = |policy: &str| {
        let name = policy.to_lowercase();
        let owner = room.seen(&name, &json!({"concurrencyPolicy": policy}));
        let running = format!("{name}-running");
        room.job(&running, &owner);
        eventually("the Job is seen", || room.active(&name) == [running.clone()]);
        room.resume(&name);
        running
    };
    let started = |name: &str| -> Vec<String> {
        let prefix = format!("{name}-");
        room.jobs().into_iter().filter(|job| job.starts_with(&prefix) && !job.ends_with("running")).collect()
    };
    let running = due("Forbid");
    room.settled("forbid");
    assert_eq!(started("forbid"), [""; 0]);
    room.end_job(&running, "Complete", 300);
    eventually("the run that was held back starts", || started("forbid").len() == 1);

    let running = due("Replace");
    eventually("the run starts", || started("replace").len() == 1);
    assert!(!room.jobs().contains(&running), "the Job before is gone");

    let running = due("Allow");
    eventually("the run starts", || started("allow").len() == 1);
    eventually("two are active", || room.active("allow").len() == 2);
    assert!(room.jobs().contains(&running));
}

/// Acceptance check 21.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_suspended_cronjob_starts_nothing_and_still_tidies_up() {
    let room = Room::new("suspended");
    let owner = room.seen("quiet", &json!({"successfulJobsHistoryLimit": 0}));
    room.job("old", &owner);
    room.end_job("old", "Complete", 300);
    eventually("the old Job goes", || room.jobs().is_empty());
    room.settled("quiet");
    assert_eq!(room.jobs(), [""; 0]);
    assert_eq!(room.condition("quiet", "Available").as_deref(), Some("False Suspended"));
    room.resume("quiet");
    eventually("the missed run starts", || room.jobs().len() == 1);
}

/// The upstream tests T9, T10 and T12: for ten seconds nothing is active, then exactly the one Job.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_status_names_the_jobs_that_run_and_one_condition_says_so() {
    let room = Room::new("status");
    room.apply("watched", &json!({"schedule": "1 1 1 1 *"})).unwrap();
    eventually("it is seen", || room.condition("watched", "Available").is_some());
    for _ in 0..10 {
        assert_eq!(room.active("watched"), [""; 0]);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    room.job("test-job", &room.v1("watched"));
    eventually("the Job is seen", || room.active("watched") == ["test-job"]);
    let conditions = room.v1("watched")["status"]["conditions"].take();
    let available: Vec<&Value> =
        conditions.as_array().unwrap().iter().filter(|condition| condition["type"] == "Available").collect();
    assert_eq!(available.len(), 1);
    assert_eq!((&available[0]["status"], &available[0]["reason"]), (&json!("True"), &json!("JobsActive")));
}

/// Acceptance check 22 and the upstream test T11.
#[test]
#[ignore = "needs a control plane: make test"]
fn old_jobs_beyond_the_limits_go() {
    let room = Room::new("history");
    let owner = room.seen("tidy", &json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}));
    for (name, outcome, age) in [
        ("failed-old", "Failed", 120),
        ("failed-new", "Failed", 60),
        ("complete-old", "Complete", 120),
        ("complete-new", "Complete", 60),
    ] {
        room.job(name, &owner);
        room.end_job(name, outcome, age);
    }
    eventually("the old ones go", || room.jobs() == ["complete-new", "failed-new"]);
    room.settled("tidy");
    assert_eq!(room.jobs(), ["complete-new", "failed-new"]);
    room.patch(&[V1, "tidy"], &json!({"spec": {"failedJobsHistoryLimit": 0}}));
    eventually("no failed one is kept", || room.jobs() == ["complete-new"]);
}

/// Acceptance check 23, where the finalizer has something to wait for.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_cronjob_that_waits_for_its_jobs_goes_after_them() {
    let room = Room::new("waiting");
    let owner = room.seen("patient", &json!({"deletionPolicy": "WaitForActiveJobs"}));
    room.job("running", &owner);
    eventually("the Job is seen", || room.active("patient") == ["running"]);
    room.resume("patient");
    eventually("a run starts", || room.jobs().len() == 2);
    room.0.kubectl_ok(&["delete", V1, "patient", "--wait=false"], None).unwrap();
    eventually("it waits", || room.condition("patient", "Progressing").as_deref() == Some("True WaitingForActiveJobs"));
    let jobs = room.jobs();
    for job in &jobs {
        assert!(room.v1("patient")["metadata"]["deletionTimestamp"].is_string());
        room.end_job(job, "Complete", 1);
    }
    eventually("it goes", || room.get(V1, "patient").is_none());
    assert_eq!(room.jobs(), jobs, "no Job started meanwhile");
}

/// Why a run does not start is in the status and in an event, and it starts once nothing prevents it.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_job_that_the_api_server_refuses_is_told() {
    let room = Room::new("refused");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/jobs.batch": "0"}}, "status": {"hard": {"count/jobs.batch": "0"},
        "used": {"count/jobs.batch": "0"}}});
    room.0.apply(&quota.to_string()).unwrap();
    room.patch(&["--subresource=status", "resourcequota", "none"], &json!({"status": quota["status"]}));
    room.seen("poor", &json!({}));
    room.resume("poor");
    eventually("it is told", || room.condition("poor", "Degraded").as_deref() == Some("True JobCreationFailed"));
    eventually("there is an event", || {
        let events = room.0.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].message}"], None).unwrap();
        events.contains("exceeded quota")
    });
    room.0.kubectl_ok(&["delete", "resourcequota", "none"], None).unwrap();
    eventually("the run starts", || room.jobs().len() == 1);
    eventually("nothing is wrong any more", || {
        room.condition("poor", "Degraded").as_deref() == Some("False AsExpected")
    });
}
