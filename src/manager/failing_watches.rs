//! Where people see that a watch fails.

use std::time::Duration;

use tokio::time::sleep;

use super::HEARTBEAT;
use crate::metrics::Metrics;
use crate::readiness::Gate;
use crate::watch::read_model::Model;
use crate::watch::ungated::UngatedWatches;

/// When a failing watch is first reported: an API server that starts again takes some time.
const FAILING_FOR_LONG: Duration = Duration::from_secs(60);

/// A watch that decisions read from, and the gate that opens when it has been read once.
#[derive(Clone)]
pub struct Gated {
    /// Its part of the names of gates, and of metrics.
    pub watch: &'static str,
    /// Closed until the watch has listed all that there is.
    pub gate: Gate,
    /// What the watch keeps.
    pub model: Model,
}

/// Reports in readiness detail and in a metric why a watch has failed for long: decisions continue to use what was known, and that
/// gets old. Of the watches that have no gate, in the metric alone.
pub async fn report(watches: Vec<Gated>, ungated: UngatedWatches, metrics: Metrics) {
    let mut reported = vec![false; watches.len()];
    loop {
        for (Gated { watch, gate, model }, reported) in watches.iter().zip(&mut reported) {
            let failing = model.failing();
            metrics.watch_failing(*watch, failing.as_ref().map_or(0, |(since, _)| since.as_secs()));
            let failing = failing.and_then(as_reported);
            let was_reported = std::mem::replace(reported, failing.is_some());
            if let Some(failing) = failing {
                gate.note(failing);
            } else if was_reported && model.is_synced() {
                gate.note("");
            }
        }
        for (watch, since) in ungated.failing() {
            metrics.watch_failing(watch, since.as_secs());
        }
        sleep(HEARTBEAT).await;
    }
}

/// What is to be reported of a watch that fails.
fn as_reported((since, why): (Duration, String)) -> Option<String> {
    (since >= FAILING_FOR_LONG).then(|| format!("the watch has failed for {} s: {why}", since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_for_a_minute_is_told_of() {
        let failing = |seconds| as_reported((Duration::from_secs(seconds), "Unauthorized".to_owned()));
        assert_eq!(failing(59), None);
        assert_eq!(failing(61).as_deref(), Some("the watch has failed for 61 s: Unauthorized"));
    }
}
