//! Does the API server agree with us on which pods can carry which sets?
//!
//! Five hundred pairs of a pod and its sets, each mutated at random and towards one of the rules in `docs/legality.md`, are
//! judged by us and by a real API server. A pod that we let in must be legal. A pod that we refuse must be illegal with the
//! set in it, save for what [`OURS`] lists.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod api_server;
mod mutations;
mod ours;
mod pair;
mod random;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cluster::{Cluster, Options};
use futures::StreamExt as _;
use serde_json::Value;

use crate::api_server::{ApiServer, as_sent_to_webhooks};
use crate::mutations::MUTATIONS;
use crate::ours::{Answer, Outrider, refusal_of_set};
use crate::pair::Pair;
use crate::random::Random;

const PAIRS: u64 = 500;

/// Refusals that are a policy of ours and no rule of the API server's: what the message says, and why we refuse.
const OURS: &[(&str, &str)] = &[];

/// What each rule says when it fires. Each must have fired, with the API server in agreement.
const RULES: &[&str] = &[];

/// One judgement of a pair.
enum Outcome {
    /// The pod is illegal by itself.
    PodIllegal,
    Untouched(String),
    /// We injected, and the result is legal.
    Injected,
    /// Both refuse: our message and theirs.
    Refused(String, String),
    /// We injected, and the result is illegal.
    Broken(String, Value),
    /// We refused what the API server takes.
    OverRefusal(String, Value),
}

fn pair_of(seed: u64) -> (Vec<&'static str>, Pair) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new();
    let aimed = MUTATIONS[usize::try_from(seed % MUTATIONS.len() as u64).unwrap()];
    let mut mutations = vec![aimed];
    while random.once_in(3) {
        mutations.push(random.pick(MUTATIONS));
    }
    for (_, mutate) in &mutations {
        mutate(&mut random, &mut pair);
    }
    (mutations.into_iter().map(|(name, _)| name).collect(), pair)
}

/// Judges the pod as it is written, and as the API server sends it to webhooks.
async fn judge(api_server: &ApiServer, pair: &Pair) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for set in &pair.sets {
        outcomes.extend(judge_set(api_server, set).await);
    }
    let stored = match api_server.judge(&pair.pod).await {
        Ok(stored) => stored,
        Err(_) => return vec![Outcome::PodIllegal],
    };
    let outrider = Outrider::with(&pair.sets);
    for pod in [pair.pod.clone(), as_sent_to_webhooks(&stored)] {
        let is_alone = pair.sets.len() == 1;
        outcomes.extend(judge_pod(api_server, &outrider, &pod, is_alone).await);
    }
    outcomes
}

/// A set that we refuse must not fit a plain pod.
async fn judge_set(api_server: &ApiServer, set: &Value) -> Option<Outcome> {
    let message = refusal_of_set(set)?;
    let forced = Outrider::with(std::slice::from_ref(set)).forced(&Pair::new().pod);
    Some(match api_server.judge(&forced).await {
        Ok(_) => Outcome::OverRefusal(message, forced),
        Err(theirs) => Outcome::Refused(message, theirs),
    })
}

async fn judge_pod(api_server: &ApiServer, outrider: &Outrider, pod: &Value, is_alone: bool) -> Option<Outcome> {
    match outrider.answer(pod, api_server.namespace()) {
        Answer::Untouched(reason) => Some(Outcome::Untouched(reason)),
        Answer::Injected(injected) => Some(match api_server.judge(&injected).await {
            Ok(_) => Outcome::Injected,
            Err(theirs) => Outcome::Broken(theirs, injected),
        }),
        // With more sets than one it cannot be told which of them to force upon the pod.
        Answer::Refused { .. } if !is_alone => None,
        Answer::Refused { reason, message } => {
            let (message, forced) = (format!("{reason}: {message}"), outrider.forced(pod));
            Some(match api_server.judge(&forced).await {
                Ok(_) => Outcome::OverRefusal(message, forced),
                Err(theirs) => Outcome::Refused(message, theirs),
            })
        }
    }
}

#[derive(Default)]
struct Report {
    counts: BTreeMap<String, usize>,
    agreed: Vec<String>,
    disagreements: String,
    broken: usize,
    unexplained: usize,
}

impl Report {
    fn take(&mut self, seed: u64, aims: &[&str], outcome: Outcome) {
        let count = match outcome {
            Outcome::PodIllegal => "pod illegal by itself".to_owned(),
            Outcome::Untouched(reason) => format!("not touched, {reason}"),
            Outcome::Injected => "injected, legal".to_owned(),
            Outcome::Refused(ours, _) => {
                let reason = ours.split(':').next().unwrap().to_owned();
                self.agreed.push(ours);
                format!("refused by both, {reason}")
            }
            Outcome::Broken(theirs, pod) => {
                self.broken += 1;
                self.list(seed, aims, "we inject, the API server refuses", &theirs, &pod);
                "BROKEN".to_owned()
            }
            Outcome::OverRefusal(ours, pod) => match OURS.iter().find(|(text, _)| ours.contains(text)) {
                Some((_, why)) => format!("refused by us alone: {why}"),
                None => {
                    self.unexplained += 1;
                    self.list(seed, aims, "we refuse, the API server does not", &ours, &pod);
                    "refused by us alone, UNEXPLAINED".to_owned()
                }
            },
        };
        *self.counts.entry(count).or_default() += 1;
    }

    fn list(&mut self, seed: u64, aims: &[&str], what: &str, text: &str, pod: &Value) {
        let mut pod = pod.to_string();
        if pod.len() > 4000 {
            pod = format!("(a pod of {} bytes)", pod.len());
        }
        writeln!(self.disagreements, "pair {seed}, {}: {what}: {text}\n  {pod}", aims.join(" and ")).unwrap();
    }

    fn print(&self) {
        for (what, count) in &self.counts {
            println!("{count:5} {what}");
        }
        println!("{}", self.disagreements);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_agrees_on_five_hundred_pairs_of_pod_and_set() {
    let options = Options {
        kwok: false,
        // Off by default, and it adds a rule.
        feature_gates: vec!["ContainerStopSignals=true".to_owned()],
        ..Options::default()
    };
    let cluster = Cluster::start_with(&options).unwrap();
    let namespace = cluster.namespace("legality").unwrap();
    let api_server = ApiServer::connect(&cluster, &namespace).await;
    let judgements = futures::stream::iter(0..PAIRS).map(|seed| {
        let api_server = &api_server;
        async move {
            let (aims, pair) = pair_of(seed);
            (seed, aims, judge(api_server, &pair).await)
        }
    });
    let mut judgements = judgements.buffered(8);
    let mut report = Report::default();
    while let Some((seed, aims, outcomes)) = judgements.next().await {
        outcomes.into_iter().for_each(|outcome| report.take(seed, &aims, outcome));
    }
    report.print();
    assert_eq!(report.broken, 0, "pods that we broke are listed above");
    assert_eq!(report.unexplained, 0, "refusals that the API server does not share are listed above");
    let silent: Vec<_> =
        RULES.iter().filter(|rule| !report.agreed.iter().any(|message| message.contains(*rule))).collect();
    assert!(silent.is_empty(), "rules that no pair has tried: {silent:?}");
    let useless = report.counts.get("pod illegal by itself").copied().unwrap_or_default();
    assert!(useless * 10 < usize::try_from(PAIRS).unwrap(), "{useless} pods are illegal by themselves");
}
