//! Watches that no readiness waits for: those of what only some plugins read, and those of the leader. Whether they fail shows in a metric.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};

use crate::watch::report::status_code;

/// After so long without an error a watch works, though it sends nothing: one that fails is tried again every few seconds, and a watch in
/// which nothing changes is silent.
const QUIET: Duration = Duration::from_secs(60);

type Name = Cow<'static, str>;

/// Every such watch of this process, by what is watched. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct UngatedWatches(Arc<Mutex<BTreeMap<Name, Vec<Weak<Errors>>>>>);

/// Since when a watch gets errors and nothing else, and when the last one came.
#[derive(Debug, Default)]
struct Errors(Mutex<Option<(Instant, Instant)>>);

impl UngatedWatches {
    /// The events of a watch, which counts as long as this stream is there.
    pub fn counting<K, S: Stream<Item = Result<Event<K>, watcher::Error>> + Send>(
        &self,
        name: Name,
        events: S,
    ) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + use<K, S> {
        let errors = self.begin(name);
        events.inspect(move |event| errors.note(event, Instant::now()))
    }

    /// For how long the watches of each name have failed, the longest of them; zero where they work, or are there no more.
    pub fn failing(&self) -> Vec<(Name, Duration)> {
        self.failing_at(Instant::now())
    }

    fn begin(&self, name: Name) -> Arc<Errors> {
        let errors = Arc::default();
        self.all().entry(name).or_default().push(Arc::downgrade(&errors));
        errors
    }

    fn failing_at(&self, now: Instant) -> Vec<(Name, Duration)> {
        let longest = |(name, watches): (&Name, &mut Vec<Weak<Errors>>)| {
            watches.retain(|watch| watch.strong_count() > 0);
            let failing = watches.iter().filter_map(Weak::upgrade).map(|errors| errors.since(now)).max();
            (name.clone(), failing.unwrap_or_default())
        };
        self.all().iter_mut().map(longest).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Name, Vec<Weak<Errors>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Errors {
    fn note<K>(&self, event: &Result<Event<K>, watcher::Error>, now: Instant) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            // It is made up before the API server is asked.
            Ok(Event::Init) => {}
            Ok(_) => *seen = None,
            // The next list puts it right.
            Err(error) if status_code(error) == Some(410) => {}
            Err(_) => {
                let since = seen.filter(|(_, last)| now.saturating_duration_since(*last) < QUIET);
                *seen = Some((since.map_or(now, |(since, _)| since), now));
            }
        }
    }

    fn since(&self, now: Instant) -> Duration {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.filter(|(_, last)| now.saturating_duration_since(*last) < QUIET);
        seen.map_or(Duration::ZERO, |(since, _)| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_fails_from_its_first_error_until_an_event_or_a_minute_without_one() {
        let (watches, start) = (UngatedWatches::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let failing = |seconds| {
            let all = watches.failing_at(at(seconds)).into_iter();
            all.map(|(name, since)| format!("{name} {}", since.as_secs())).collect::<Vec<_>>()
        };
        let [pods, others] = [(); 2].map(|()| watches.begin("pods".into()));
        let nodes = watches.begin("nodes".into());
        let failed = |errors: &Errors, seconds| errors.note::<()>(&Err(watcher::Error::NoResourceVersion), at(seconds));
        for second in [0, 30, 60, 70] {
            failed(&pods, second);
        }
        failed(&others, 65);
        assert_eq!(failing(70), ["nodes 0", "pods 70"], "of two the one that fails for longer");
        pods.note::<()>(&Ok(Event::Init), at(71));
        assert_eq!(failing(72), ["nodes 0", "pods 72"], "nothing was asked yet");
        pods.note::<()>(&Ok(Event::InitDone), at(73));
        assert_eq!(failing(73), ["nodes 0", "pods 8"]);
        assert_eq!(failing(126), ["nodes 0", "pods 0"]);
        failed(&nodes, 130);
        drop(nodes);
        assert_eq!(failing(131), ["nodes 0", "pods 0"], "it is watched no more");
    }
}
