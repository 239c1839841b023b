//! CPU time and peak memory of one decision.

use std::fs;
use std::thread;
use std::time::Duration;

use admission::{Answer, Answers, Deadline, Known, Registry, Unserved};
use engine::snapshot::Snapshot;

use crate::ALLOCATOR;
use crate::bodies::{Body, CONVERT};

/// One decision after the other, until they took so long together: the kernel counts in nanoseconds, other work disturbs.
const ROUND: Duration = Duration::from_millis(40);

/// Of so many rounds the best one counts.
const ROUNDS: usize = 5;

/// What a decision costs.
#[derive(Debug, Clone)]
pub struct Cost {
    /// Bytes of the body.
    pub bytes: usize,
    /// CPU time of one decision.
    pub cpu: Duration,
    /// Bytes that a decision takes beside its body, at most.
    pub memory: usize,
    /// Allowed, patched, or the reason of a refusal.
    pub outcome: String,
}

/// Measures decisions on a body.
///
/// # Errors
/// When nothing serves the body's path, or the kernel does not report CPU times.
pub fn measure(registry: &Registry<Snapshot>, snapshot: &Snapshot, body: &Body) -> Result<Cost, String> {
    if body.path == CONVERT {
        let convert = || registry.convert(body.text.as_bytes());
        return cost_of(body, convert, |converted| {
            if converted.is_ok() { "converted" } else { "not converted" }.to_owned()
        });
    }
    let entry = registry.find(body.path).ok_or_else(|| format!("nothing serves {}", body.path))?;
    let decide =
        |answers: &Answers| entry.endpoint.answer_with(body.text.as_bytes(), snapshot, answers, Deadline::default());
    let mut answers = Answers::default();
    while let Err(Unserved::Unanswered(questions)) = decide(&answers) {
        for question in questions {
            answers.insert(question, Known::Allowed(true, String::new()));
        }
    }
    cost_of(body, || decide(&answers), told)
}

fn cost_of<T>(body: &Body, decide: impl Fn() -> T, told: impl Fn(T) -> String) -> Result<Cost, String> {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let outcome = told(decide());
    let memory = ALLOCATOR.peak_usage().saturating_sub(before);
    let mut cpu = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = cpu_time()?;
        let mut decisions = 0;
        let took = loop {
            drop(decide());
            decisions += 1;
            // Asking costs, so that small decisions come in larger numbers.
            if decisions % 8 == 0 || body.text.len() > 100_000 {
                let took = cpu_time()?.saturating_sub(begun);
                if took > ROUND {
                    break took;
                }
            }
        };
        cpu = cpu.min(took / decisions);
    }
    Ok(Cost { bytes: body.text.len(), cpu, memory, outcome })
}

fn told(answer: Result<Answer, Unserved>) -> String {
    match answer {
        Ok(answer) => format!("{}: {}", answer.decision.as_str(), answer.reason.as_str()),
        Err(unserved) => format!("HTTP {}", unserved.status()),
    }
}

/// CPU time of this thread so far.
fn cpu_time() -> Result<Duration, String> {
    // The kernel brings the figure up to date when the thread offers its place.
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").map_err(|error| format!("/proc: {error}"))?;
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map(Duration::from_nanos).ok_or_else(|| format!("no CPU time in {text:?}"))
}
