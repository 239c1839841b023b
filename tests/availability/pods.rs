//! The independent client: creates pods at a steady rate, whatever happens, and counts what became of each.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// What became of one create.
#[derive(Clone)]
struct Create {
    ended: Instant,
    took: Duration,
    failure: Option<String>,
}

/// Pods that are being created.
pub struct Pods {
    end: CancellationToken,
    phases: Mutex<Vec<(String, Instant)>>,
    so_far: Arc<Mutex<Vec<Create>>>,
    creating: JoinHandle<()>,
}

/// The creates that ended in one phase.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub phase: String,
    pub seconds: f64,
    pub created: usize,
    /// What was said, and how often.
    pub failures: BTreeMap<String, usize>,
    /// From the shortest to the longest.
    took: Vec<Duration>,
}

impl Pods {
    /// Begins to create `per_second` pods a second. The next one does not wait for the one before.
    pub fn create(runtime: &Handle, client: Client, pod: Pod, per_second: u32, phase: &str) -> Self {
        let (end, so_far) = (CancellationToken::new(), Arc::default());
        let creating = creating(Api::default_namespaced(client), pod, per_second, Arc::clone(&so_far), end.clone());
        let phases = Mutex::new(vec![(phase.to_owned(), Instant::now())]);
        Self { creating: runtime.spawn(creating), end, phases, so_far }
    }

    /// What ends from now on belongs to another phase.
    pub fn phase(&self, name: &str) {
        println!("--- {name}");
        self.phases.lock().unwrap().push((name.to_owned(), Instant::now()));
    }

    /// How many creates have ended, and how many of them failed.
    pub fn so_far(&self) -> (usize, usize) {
        let so_far = self.so_far.lock().unwrap();
        (so_far.len(), so_far.iter().filter(|create| create.failure.is_some()).count())
    }

    /// Ends, when all have been answered.
    pub fn end(self, runtime: &Handle) -> Vec<Tally> {
        self.end.cancel();
        runtime.block_on(self.creating).unwrap();
        let ended = Instant::now();
        let phases = self.phases.into_inner().unwrap();
        let creates = self.so_far.lock().unwrap();
        let until = phases.iter().skip(1).map(|(_, begin)| *begin).chain([ended]);
        let tally = |((phase, begin), until): (&(String, Instant), Instant)| {
            // By its end: what is lost by a disturbance may have been begun before.
            let of_phase = creates.iter().filter(|create| *begin <= create.ended && create.ended < until);
            Tally::of(phase, until - *begin, of_phase)
        };
        phases.iter().zip(until).map(tally).collect()
    }
}

async fn creating(pods: Api<Pod>, pod: Pod, per_second: u32, so_far: Arc<Mutex<Vec<Create>>>, end: CancellationToken) {
    let mut turn = interval(Duration::from_secs(1) / per_second);
    turn.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut running = JoinSet::new();
    let mut number = 0_u32;
    while end.run_until_cancelled(turn.tick()).await.is_some() {
        number += 1;
        let (pods, mut pod, so_far) = (pods.clone(), pod.clone(), Arc::clone(&so_far));
        // A prefix of its own: of thousands, two are given the same name, and an API server before 1.31 does not try another
        // (RetryGenerateName).
        pod.metadata.generate_name = Some(format!("web-{number}-"));
        running.spawn(async move {
            let begun = Instant::now();
            let failure = create(&pods, &pod).await.err();
            so_far.lock().unwrap().push(Create { ended: Instant::now(), took: begun.elapsed(), failure });
        });
        while running.try_join_next().is_some() {}
    }
    running.join_all().await;
}

async fn create(pods: &Api<Pod>, pod: &Pod) -> Result<(), String> {
    let created = pods.create(&PostParams::default(), pod).await.map_err(|error| match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    })?;
    let containers = created.spec.unwrap_or_default().containers;
    let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
    if names == ["proxy", "app"] { Ok(()) } else { Err(format!("created with the containers {names:?}")) }
}

impl Tally {
    fn of<'a>(phase: &str, length: Duration, creates: impl Iterator<Item = &'a Create>) -> Self {
        let mut tally = Self { phase: phase.to_owned(), seconds: length.as_secs_f64(), ..Self::default() };
        for create in creates {
            tally.took.push(create.took);
            match &create.failure {
                Some(failure) => *tally.failures.entry(failure.clone()).or_default() += 1,
                None => tally.created += 1,
            }
        }
        tally.took.sort_unstable();
        tally
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.failures.values().sum()
    }

    fn took(&self, percent: usize) -> u128 {
        let place = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
        self.took.get(place).map_or(0, Duration::as_millis)
    }
}

/// One line, and one for each failure.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99, max) = (self.took(50), self.took(99), self.took(100));
        let Self { phase, seconds, created, .. } = self;
        let failed = self.failed();
        write!(
            f,
            "{phase:32} {seconds:6.1} s {created:6} created {failed:4} failed  p50 {p50} p99 {p99} max {max} ms"
        )?;
        self.failures.iter().try_for_each(|(failure, times)| write!(f, "\n    {times} × {failure}"))
    }
}

/// All phases, for people.
pub fn report(tallies: &[Tally]) -> String {
    tallies.iter().fold(String::new(), |mut text, tally| {
        writeln!(text, "{tally}").unwrap();
        text
    })
}

/// A pod that the set of [`crate::stage`] selects.
pub fn pod() -> Pod {
    serde_json::from_value(json!({
        "metadata": {"generateName": "web-", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    }))
    .unwrap()
}
