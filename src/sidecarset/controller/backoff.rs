//! How often replicas are asked for the generation of a set that they have.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::replicas::Knowledge;
use engine::snapshot::sets::SetRecord;

/// When a replica that is behind is asked again for the first time,
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// for the second time, and one that could not be asked for the first time,
const SECOND_PAUSE: Duration = Duration::from_secs(2);
/// and at the latest.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// For so long an answer is good where pods are evicted by it.
const LATELY: Duration = Duration::from_secs(5);

/// What replicas said lately of sets for which pods are evicted: why new pods may lack the form.
#[derive(Debug, Default)]
pub struct Lately {
    sets: Mutex<HashMap<String, LastDoubt>>,
}

#[derive(Debug)]
struct LastDoubt {
    generation: i64,
    at: Instant,
    doubt: Option<String>,
}

impl Lately {
    /// What was found of this generation, if that was lately.
    #[allow(clippy::option_option)] // what was found may be nothing
    pub fn found(&self, set: &SetRecord, now: Instant) -> Option<Option<String>> {
        let sets = locked(&self.sets);
        let is_good = |said: &&LastDoubt| {
            said.generation == set.compiled_generation && now.saturating_duration_since(said.at) < LATELY
        };
        sets.get(&*set.name).filter(is_good).map(|said| said.doubt.clone())
    }

    /// Takes in what was found.
    pub fn note(&self, set: &SetRecord, found: Option<String>, now: Instant) {
        let said = LastDoubt { generation: set.compiled_generation, at: now, doubt: found };
        locked(&self.sets).insert(set.name.clone(), said);
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.sets).remove(set);
    }
}

/// When replicas are asked again for a set: each answer that is not the last one doubles the pause, and until then it counts.
#[derive(Debug, Default)]
pub struct Backoff {
    sets: Mutex<HashMap<String, LastKnowledge>>,
}

#[derive(Debug)]
struct LastKnowledge {
    uid: String,
    generation: i64,
    pause: Duration,
    until: Instant,
    found: Knowledge,
}

impl Backoff {
    /// What was found when it is too early to ask again, and when that may be.
    pub fn last(&self, set: &SetRecord, now: Instant) -> Option<(Knowledge, Duration)> {
        let sets = locked(&self.sets);
        let asked = sets.get(&*set.name).filter(|asked| asked.is_about(set) && asked.until > now)?;
        Some((asked.found.clone(), asked.until.saturating_duration_since(now)))
    }

    /// Takes in what was found. Returns when to ask again, if at all.
    pub fn note(&self, set: &SetRecord, found: &Knowledge, now: Instant) -> Option<Duration> {
        let mut sets = locked(&self.sets);
        let before = sets.remove(&*set.name).filter(|asked| asked.is_about(set)).map(|asked| asked.pause);
        let pause = match (found, before) {
            (Knowledge::All(_) | Knowledge::AsTold, _) => return None,
            // Usually a replica is behind by some milliseconds.
            (Knowledge::Lacking(_), None) => FIRST_PAUSE,
            (_, None) => SECOND_PAUSE,
            (_, Some(before)) => before.saturating_mul(2).clamp(SECOND_PAUSE, LONGEST_PAUSE),
        };
        let (uid, generation) = (set.uid.clone(), set.compiled_generation);
        sets.insert(
            set.name.clone(),
            LastKnowledge { uid, generation, pause, until: now + pause, found: found.clone() },
        );
        Some(pause)
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        locked(&self.sets).remove(set);
    }
}

impl LastKnowledge {
    fn is_about(&self, set: &SetRecord) -> bool {
        *self.uid == *set.uid && self.generation == set.compiled_generation
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::watch::read_model::ReadModel;
    use engine::snapshot::Exclusion;
    use engine::snapshot::builder::SnapshotBuilder;

    fn set_of_generation(generation: i64) -> Arc<SetRecord> {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        let set = json!({
            "metadata": {"name": "a", "uid": "u", "generation": generation},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "i"}]},
        });
        let model = ReadModel::of(&builder);
        builder.collections.sets.apply(&serde_json::from_value(set).unwrap());
        model.sets.get("a").unwrap()
    }

    #[test]
    fn replicas_that_do_not_follow_are_asked_less_and_less_often_and_a_change_asks_at_once() {
        let (backoff, set, mut now) = (Backoff::default(), set_of_generation(2), Instant::now());
        let behind = Knowledge::Lacking("r".to_owned());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert_eq!(backoff.last(&set, now), None);
            let pause = backoff.note(&set, &behind, now).unwrap();
            assert_eq!(backoff.last(&set, now), Some((behind.clone(), pause)), "an event does not ask earlier");
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses, [250, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
        backoff.note(&set, &behind, now);
        assert_eq!(backoff.last(&set_of_generation(3), now), None);
        assert_eq!(backoff.note(&set, &Knowledge::All(1), now), None);
        assert_eq!(backoff.note(&set, &Knowledge::Unknown(String::new()), now), Some(SECOND_PAUSE));
    }
    #[test]
    fn what_replicas_said_of_a_generation_is_good_for_a_moment() {
        let (lately, set, now) = (Lately::default(), set_of_generation(2), Instant::now());
        assert_eq!(lately.found(&set, now), None);
        for found in [None, Some("no".to_owned())] {
            lately.note(&set, found.clone(), now);
            assert_eq!(lately.found(&set, now + LATELY / 2), Some(found));
            assert_eq!((lately.found(&set, now + LATELY), lately.found(&set_of_generation(3), now)), (None, None));
        }
        lately.forget("a");
        assert_eq!(lately.found(&set, now), None);
    }
}
