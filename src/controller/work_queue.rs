//! Which key is reconciled next. Pure: the time is an argument.
//!
//! No library: the rules are those of client-go's rate-limited work queue, which no crate has.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// First wait after an error; client-go's default.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// Longest wait after errors in a row; client-go's default.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);
/// As many pauses are left out after a refusal, so that the first is 10 s.
const FAILURES_BEFORE_REFUSAL: u32 = 11;

/// How a run of a key ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The key is as it should be, or comes back when the reconcile said.
    Success,
    /// It is tried again with growing pauses.
    Failure,
    /// The same, and the API server or a webhook refused what was written: it will do so until an object changes.
    Refusal,
}

/// Keys that wait, run, or rest.
///
/// - A key is never run twice at once; what is added meanwhile runs once more afterwards.
/// - A key that waits is not added again.
/// - After an error a key waits 5 ms, doubled by each further error up to 1000 s; a success forgets the errors.
/// - Runs of one key begin at least `pace` after the last one ended, so a burst of events is one run.
#[derive(Debug)]
pub struct WorkQueue<K> {
    pace: Duration,
    ready: VecDeque<K>,
    waiting: HashSet<K>,
    running: HashSet<K>,
    again: HashSet<K>,
    later: BTreeMap<(Instant, u64), K>,
    due: HashMap<K, (Instant, u64)>,
    rested: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    tickets: u64,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<K> {
    /// Run this key.
    Run(K),
    /// Nothing before this time, unless a key is added.
    At(Instant),
    /// Nothing, unless a key is added.
    Nothing,
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// An empty schedule.
    pub fn new(pace: Duration) -> Self {
        Self {
            pace,
            ready: VecDeque::new(),
            waiting: HashSet::new(),
            running: HashSet::new(),
            again: HashSet::new(),
            later: BTreeMap::new(),
            due: HashMap::new(),
            rested: HashMap::new(),
            failures: HashMap::new(),
            tickets: 0,
        }
    }

    /// Keys that wait for a run that is due.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Wants a run of the key.
    pub fn add(&mut self, key: K, now: Instant) {
        if self.running.contains(&key) {
            self.again.insert(key);
            return;
        }
        match self.rested.get(&key) {
            Some(&rested) if rested > now => self.add_at(key, rested),
            _ => self.make_ready(key),
        }
    }

    /// Schedules a run of the key at a time, unless an earlier one is scheduled.
    pub fn add_at(&mut self, key: K, at: Instant) {
        if self.waiting.contains(&key) || self.due.get(&key).is_some_and(|(earlier, _)| *earlier <= at) {
            return;
        }
        self.forget_due(&key);
        self.tickets += 1;
        self.due.insert(key.clone(), (at, self.tickets));
        self.later.insert((at, self.tickets), key);
    }

    /// What to do now. A key handed out is running until [`WorkQueue::finish`].
    pub fn next(&mut self, now: Instant) -> Next<K> {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key, now);
        }
        if let Some(key) = self.ready.pop_front() {
            self.waiting.remove(&key);
            self.running.insert(key.clone());
            return Next::Run(key);
        }
        self.later.first_key_value().map_or(Next::Nothing, |((at, _), _)| Next::At(*at))
    }

    /// The run of a key has ended.
    pub fn finish(&mut self, key: &K, end: RunEnd, now: Instant) {
        self.running.remove(key);
        self.rested.retain(|_, rested| *rested > now);
        self.rested.insert(key.clone(), now + self.pace);
        let again = self.again.remove(key);
        if end == RunEnd::Success {
            self.failures.remove(key);
        } else {
            let failures = self.failures.entry(key.clone()).or_default();
            if end == RunEnd::Refusal {
                *failures = (*failures).max(FAILURES_BEFORE_REFUSAL);
            }
            let wait = backoff(*failures);
            *failures = failures.saturating_add(1);
            self.add_at(key.clone(), now + wait.max(self.pace));
        }
        if again {
            self.add(key.clone(), now);
        }
    }

    fn make_ready(&mut self, key: K) {
        self.forget_due(&key);
        if self.waiting.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn forget_due(&mut self, key: &K) {
        if let Some(ticket) = self.due.remove(key) {
            self.later.remove(&ticket);
        }
    }
}

fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_millis(100);

    fn schedule() -> (WorkQueue<&'static str>, Instant) {
        (WorkQueue::new(PACE), Instant::now())
    }

    #[test]
    fn a_key_added_often_runs_once() {
        let (mut schedule, now) = schedule();
        schedule.add("a", now);
        schedule.add("a", now);
        schedule.add("b", now);
        assert_eq!(schedule.depth(), 2);
        assert_eq!(schedule.next(now), Next::Run("a"));
        assert_eq!(schedule.next(now), Next::Run("b"));
        assert_eq!(schedule.next(now), Next::Nothing);
    }

    #[test]
    fn a_key_added_while_it_runs_runs_once_more_afterwards_and_not_before_its_rest() {
        let (mut schedule, now) = schedule();
        schedule.add("a", now);
        assert_eq!(schedule.next(now), Next::Run("a"));
        schedule.add("a", now);
        schedule.add("a", now);
        assert_eq!(schedule.next(now), Next::Nothing);
        schedule.finish(&"a", RunEnd::Success, now);
        assert_eq!(schedule.next(now), Next::At(now + PACE));
        assert_eq!(schedule.next(now + PACE), Next::Run("a"));
        schedule.finish(&"a", RunEnd::Success, now + PACE);
        assert_eq!(schedule.next(now + PACE * 5), Next::Nothing);
    }

    #[test]
    fn events_that_keep_coming_do_not_put_a_run_off() {
        let (mut schedule, now) = schedule();
        schedule.add("a", now);
        schedule.next(now);
        schedule.finish(&"a", RunEnd::Success, now);
        for milliseconds in (0..100).step_by(10) {
            let now = now + Duration::from_millis(milliseconds);
            schedule.add("a", now);
            assert!(matches!(schedule.next(now), Next::At(_)));
        }
        assert_eq!(schedule.next(now + PACE), Next::Run("a"));
    }

    #[test]
    fn errors_double_the_wait_and_a_success_forgets_them() {
        let mut schedule = WorkQueue::new(Duration::ZERO);
        let start = Instant::now();
        let mut now = start;
        let mut waits = Vec::new();
        schedule.add("a", now);
        for _ in 0..25 {
            assert_eq!(schedule.next(now), Next::Run("a"));
            schedule.finish(&"a", RunEnd::Failure, now);
            let Next::At(at) = schedule.next(now) else { panic!("a failed key must come back") };
            waits.push(at - now);
            now = at;
        }
        let milliseconds: Vec<u128> = waits.iter().take(4).map(Duration::as_millis).collect();
        assert_eq!(milliseconds, [5, 10, 20, 40]);
        assert_eq!(waits.last(), Some(&LONGEST_BACKOFF));
        assert_eq!(schedule.next(now), Next::Run("a"));
        schedule.finish(&"a", RunEnd::Success, now);
        schedule.add("a", now);
        assert_eq!(schedule.next(now), Next::Run("a"));
        schedule.finish(&"a", RunEnd::Failure, now);
        assert_eq!(schedule.next(now), Next::At(now + FIRST_BACKOFF));
    }

    /// What was refused once is refused again, and each try costs the API server as much as a write of that object.
    #[test]
    fn after_a_refusal_the_first_wait_is_ten_seconds() {
        let mut schedule = WorkQueue::new(Duration::ZERO);
        let mut now = Instant::now();
        schedule.add("a", now);
        for seconds in [10, 20, 40, 81] {
            assert_eq!(schedule.next(now), Next::Run("a"));
            schedule.finish(&"a", RunEnd::Refusal, now);
            let Next::At(at) = schedule.next(now) else { panic!("a refused key must come back") };
            assert_eq!((at - now).as_secs(), seconds);
            now = at;
        }
    }

    #[test]
    fn an_event_ends_the_wait_after_an_error() {
        let mut schedule = WorkQueue::new(Duration::ZERO);
        let now = Instant::now();
        schedule.add("a", now);
        schedule.next(now);
        schedule.finish(&"a", RunEnd::Failure, now);
        schedule.add("a", now);
        assert_eq!(schedule.next(now), Next::Run("a"));
        assert_eq!(schedule.next(now + Duration::from_secs(1)), Next::Nothing);
    }

    #[test]
    fn nothing_is_kept_of_keys_that_came_and_went() {
        let mut schedule = WorkQueue::new(PACE);
        let mut now = Instant::now();
        for key in 0..100 {
            schedule.add(key, now);
            schedule.next(now);
            schedule.finish(&key, RunEnd::Success, now);
            now += PACE;
        }
        assert!(schedule.rested.len() <= 2 && schedule.failures.is_empty() && schedule.due.is_empty());
    }
}
