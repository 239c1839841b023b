//! Where people see that a watch fails.

use std::time::Duration;

use tokio::time::sleep;

use super::HEARTBEAT;
use crate::metrics::Metrics;
use crate::readiness::Gate;
use crate::watch::read_model::World;

/// From when on a watch that fails is told of: an API server that starts again takes some time.
const FAILING_FOR_LONG: Duration = Duration::from_secs(60);

/// Says of watches that have failed for long why, where people look: what was known stays in use, and gets old.
pub async fn tell(world: World, gates: [Gate; 2], metrics: Metrics) {
    let watches = [("sidecarsets", &world.sidecarsets), ("namespaces", &world.namespaces)];
    let mut told = [false; 2];
    loop {
        for (((name, model), gate), told) in watches.into_iter().zip(&gates).zip(&mut told) {
            let failing = model.failing();
            metrics.watch_failing(name, failing.as_ref().map_or(0, |(since, _)| since.as_secs()));
            let failing = failing.and_then(told_of);
            let was_told = std::mem::replace(told, failing.is_some());
            if let Some(failing) = failing {
                gate.note(failing);
            } else if was_told && model.is_synced() {
                gate.note("");
            }
        }
        sleep(HEARTBEAT).await;
    }
}

/// What is to be told of a watch that fails.
fn told_of((since, why): (Duration, String)) -> Option<String> {
    (since >= FAILING_FOR_LONG).then(|| format!("the watch has failed for {} s: {why}", since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_for_a_minute_is_told_of() {
        let failing = |seconds| told_of((Duration::from_secs(seconds), "Unauthorized".to_owned()));
        assert_eq!(failing(59), None);
        assert_eq!(failing(61).as_deref(), Some("the watch has failed for 61 s: Unauthorized"));
    }
}
