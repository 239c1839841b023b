//! How long it takes until the Jobs of many `CronJob`s that are due on one minute exist: ours, and the built-in controller on the
//! same cluster a minute before. `make bench-cronjob`; no test of `make test`, as it is about time.

mod latency;
mod rollouts;

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::{Cluster, Options};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::cronjob::{KINDS, job_spec, registered};
use crate::process::{Outrider, eventually, install_of, service_account_of};
use crate::replicas::list;
use crate::room::may_register;

const CRONJOBS: usize = 300;

/// A round of one controller.
struct Round {
    name: &'static str,
    /// Of the objects.
    api_version: &'static str,
    due: Timestamp,
}

impl Round {
    fn store(&self, cluster: &Cluster) {
        let time = self.due.to_zoned(TimeZone::UTC);
        let schedule = format!("{} {} * * *", time.minute(), time.hour());
        // Suspended, so that no pods are made: it is about Jobs.
        let mut job = job_spec();
        job["suspend"] = json!(true);
        let cronjob = |number: usize| {
            json!({
                "apiVersion": self.api_version, "kind": "CronJob",
                "metadata": {"name": format!("job-{number}"), "namespace": self.name},
                "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": {"spec": job}},
            })
        };
        let objects: Vec<Value> = (0..CRONJOBS).map(cronjob).collect();
        cluster.kubectl_ok(&["create", "namespace", self.name], None).unwrap();
        cluster.kubectl_ok(&["create", "-f", "-"], Some(&list(&objects))).unwrap();
        assert!(Timestamp::now() < self.due, "the objects of {} were not stored in time", self.name);
    }

    /// When each Job was created, from the moment that all were due, and requests of the one who created them.
    fn creations(&self, events: &[Value]) -> (Vec<Duration>, BTreeMap<String, usize>) {
        let is_creation = |event: &&Value| {
            let object = &event["objectRef"];
            event["verb"] == "create" && object["resource"] == "jobs" && object["namespace"] == self.name
        };
        let time = |event: &Value| event["stageTimestamp"].as_str().unwrap().parse::<Timestamp>().unwrap();
        let after = |event: &Value| Duration::try_from(time(event).duration_since(self.due)).unwrap();
        let created = events.iter().filter(is_creation).filter(|event| event["responseStatus"]["code"] == 201);
        let mut durations: Vec<Duration> = created.map(after).collect();
        durations.sort_unstable();
        let user = events.iter().find(is_creation).map(|event| &event["user"]["username"]);
        let (from, to) = (self.due, self.due + 50.seconds());
        let in_time =
            |event: &&Value| (from..to).contains(&time(event)) && event["objectRef"]["namespace"] == self.name;
        let mut requests = BTreeMap::new();
        for event in events.iter().filter(in_time).filter(|event| Some(&event["user"]["username"]) == user) {
            let object = &event["objectRef"];
            let what =
                [&event["verb"], &object["resource"], &object["subresource"]].map(|part| part.as_str().unwrap_or("-"));
            *requests.entry(what.join(" ")).or_default() += 1;
        }
        (durations, requests)
    }
}

#[test]
#[ignore = "measures time: make bench-cronjob"]
fn three_hundred_cronjobs_of_one_minute_have_their_jobs_as_soon_as_with_the_built_in_controller() {
    let cluster = Cluster::start_with(&Options { audit: true, kwok: false, ..Options::default() }).unwrap();
    install_of(&cluster, &[KINDS]);
    let account = service_account_of(&cluster, &[KINDS]);
    may_register(&cluster);
    let outrider = Outrider::registered_as(&cluster, &account, &[KINDS]);
    registered(&cluster, &outrider);
    let minute = |number: i64| Timestamp::from_second((Timestamp::now().as_second() / 60 + number) * 60).unwrap();
    let (first, second) = (minute(2), minute(3));
    let rounds = [
        Round { name: "built-in", api_version: "batch/v1", due: first },
        Round { name: "ours", api_version: "batch.outrider.dev/v1", due: second },
    ];
    for round in &rounds {
        round.store(&cluster);
    }
    while Timestamp::now() < second {
        std::thread::sleep(Duration::from_millis(500));
    }
    let all_are_there = || {
        let events = cluster.audit_events().unwrap();
        rounds.iter().all(|round| round.creations(&events).0.len() == CRONJOBS)
    };
    eventually("every Job is there", all_are_there);
    std::thread::sleep(Duration::from_secs(5));
    let events = cluster.audit_events().unwrap();
    let [(built_in, requests_of_built_in), (ours, requests_of_ours)] = rounds.map(|round| {
        let (created, requests) = round.creations(&events);
        let (first, median, last) = (created[0], created[CRONJOBS / 2], created[CRONJOBS - 1]);
        println!("{:9} first {first:5.2?}, median {median:5.2?}, last {last:5.2?}; requests {requests:?}", round.name);
        (last, requests.values().sum::<usize>())
    });
    outrider.end();
    // A tenth is what two runs of one controller differ by.
    assert!(ours <= built_in * 11 / 10, "ours took {ours:?}, the built-in controller {built_in:?}");
    // Rounded: one that was sent again is no further request of each run.
    let per_run = |requests: usize| (requests + CRONJOBS / 2) / CRONJOBS;
    assert!(
        per_run(requests_of_ours) <= per_run(requests_of_built_in),
        "ours sent {requests_of_ours} requests for {CRONJOBS} runs, the built-in controller {requests_of_built_in}"
    );
}
