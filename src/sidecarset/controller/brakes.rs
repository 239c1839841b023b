//! What stops the evictions for a set, in a namespace or altogether: workloads that have not replaced a pod, or have replaced it by one
//! without the set's form; and the right that is missing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sidecarset::rollout::EvictionsWait;

/// For so long a workload counts against the set.
pub const FAILED_FOR: Duration = Duration::from_secs(3600);
/// At so many of them in one namespace no more of its pods are evicted, and at so many such namespaces none at all: the author of the
/// pods of one namespace does not hold up a set in others.
const FAILED_MOST: usize = 3;
/// They are so many among so many evictions in a row: of many pods some are not replaced by chance, as their workloads are scaled down.
const AMONG: u64 = 10;
/// How long no pod of a namespace is evicted after the API server has said that the account may evict none there. It doubles,
const FORBIDDEN_FOR: Duration = Duration::from_secs(30);
/// up to this.
const FORBIDDEN_FOR_LONGEST: Duration = Duration::from_secs(240);

/// Which of the evictions for a set one was, in all namespaces and in its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Number {
    all: u64,
    here: u64,
}

/// What has become of an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionFailure {
    /// No new pod came.
    NotReplaced,
    /// One that lacks the form.
    Outdated,
}

/// What counts against sets, and where the right to evict is missing.
#[derive(Debug, Default)]
pub struct Brakes {
    sets: HashMap<Box<str>, SetBrakes>,
    forbidden: HashMap<Arc<str>, Forbidden>,
}

#[derive(Debug, Default)]
struct SetBrakes {
    evicted: u64,
    by_namespace: HashMap<Arc<str>, u64>,
    failed: Vec<FailedEviction>,
}

#[derive(Debug)]
struct FailedEviction {
    owner: u64,
    namespace: Arc<str>,
    number: Number,
    what: EvictionFailure,
    at: Instant,
}

#[derive(Debug)]
struct Forbidden {
    until: Instant,
    pause: Duration,
    why: String,
}

impl Brakes {
    /// The next eviction for the set, in this namespace.
    pub fn count(&mut self, set: &str, namespace: &Arc<str>) -> Number {
        let of_set = self.sets.entry(set.into()).or_default();
        let here = of_set.by_namespace.entry(Arc::clone(namespace)).or_default();
        (of_set.evicted, *here) = (of_set.evicted.saturating_add(1), here.saturating_add(1));
        Number { all: of_set.evicted, here: *here }
    }

    /// This eviction for the set, of a pod of this workload and namespace, has failed.
    pub fn note(
        &mut self,
        set: &str,
        (owner, namespace): (u64, &Arc<str>),
        what: EvictionFailure,
        number: Number,
        at: Instant,
    ) {
        let of_set = self.sets.entry(set.into()).or_default();
        of_set.failed.retain(|failed| failed.is_lately(at));
        if of_set.failed.iter().any(|failed| (failed.owner, failed.what) == (owner, what)) {
            return;
        }
        let here = of_set.by_namespace.get(namespace).copied().unwrap_or_default();
        // What came of it may be seen before its answer: then it is one of the last.
        let number = if number == Number::default() { Number { all: of_set.evicted, here } } else { number };
        of_set.failed.push(FailedEviction { owner, namespace: Arc::clone(namespace), number, what, at });
    }

    /// The workload has a new pod after all.
    pub fn is_replaced(&mut self, owner: u64) {
        for of_set in self.sets.values_mut() {
            of_set.failed.retain(|failed| (failed.owner, failed.what) != (owner, EvictionFailure::NotReplaced));
        }
    }

    /// The set has another form: what new pods lacked of the last one says nothing of it.
    pub fn is_of_another_form(&mut self, set: &str) {
        if let Some(of_set) = self.sets.get_mut(set) {
            of_set.failed.retain(|failed| failed.what != EvictionFailure::Outdated);
        }
    }

    /// Forgets a set that is gone.
    pub fn forget(&mut self, set: &str) {
        self.sets.remove(set);
    }

    fn lately(&self, set: &str, now: Instant) -> Vec<&FailedEviction> {
        let of_set = self.sets.get(set).into_iter().flat_map(|of_set| &of_set.failed);
        of_set.filter(|failed| failed.is_lately(now)).collect()
    }

    /// Why no pod is evicted for the set at all.
    pub fn hold(&self, set: &str, now: Instant) -> Option<EvictionsWait> {
        let mut failed = self.lately(set, now);
        failed.sort_by_key(|failed| failed.number.all);
        // Of each run of so many evictions, in how many namespaces some have failed.
        let (mut first, mut among, mut most) = (failed.iter(), HashMap::<&str, usize>::new(), 0);
        let mut out = first.next();
        for last in &failed {
            *among.entry(&*last.namespace).or_default() += 1;
            while let Some(earlier) = out.filter(|it| last.number.all.saturating_sub(it.number.all) >= AMONG) {
                if among.get(&*earlier.namespace) == Some(&1) {
                    among.remove(&*earlier.namespace);
                } else {
                    among.entry(&*earlier.namespace).and_modify(|count| *count -= 1);
                }
                out = first.next();
            }
            most = most.max(among.len());
        }
        let namespaces = Some(most).filter(|most| *most >= FAILED_MOST)?;
        Some(EvictionsWait::Failures { namespaces, is_all: true, are_lost: are_lost(&failed) })
    }

    /// Namespaces of which no more pods are evicted for the set.
    pub fn halted(&self, set: &str, now: Instant) -> HashSet<&str> {
        let mut by_namespace: HashMap<&str, Vec<u64>> = HashMap::new();
        for failed in self.lately(set, now) {
            by_namespace.entry(&failed.namespace).or_default().push(failed.number.here);
        }
        let is_halted = |numbers: &mut Vec<u64>| {
            numbers.sort_unstable();
            let spans = numbers.windows(FAILED_MOST).filter_map(|some| Some((some.first()?, some.last()?)));
            spans.into_iter().any(|(first, last)| last.saturating_sub(*first) < AMONG)
        };
        by_namespace.into_iter().filter_map(|(it, mut numbers)| is_halted(&mut numbers).then_some(it)).collect()
    }

    /// Why no more pods of so many namespaces are evicted for the set.
    pub fn why_halted(&self, set: &str, namespaces: usize, now: Instant) -> EvictionsWait {
        let are_lost = are_lost(&self.lately(set, now));
        EvictionsWait::Failures { namespaces, is_all: false, are_lost }
    }

    /// The account may evict no pod of this namespace.
    pub fn forbid(&mut self, namespace: &Arc<str>, why: String, now: Instant) {
        let before = self.forbidden.get(namespace);
        let pause = match before {
            // Several pods were tried at one time.
            Some(before) if before.until > now => before.pause,
            Some(before) => before.pause.saturating_mul(2).min(FORBIDDEN_FOR_LONGEST),
            None => FORBIDDEN_FOR,
        };
        self.forbidden.insert(Arc::clone(namespace), Forbidden { until: now + pause, pause, why });
    }

    /// A pod of this namespace was evicted.
    pub fn allow(&mut self, namespace: &str) {
        self.forbidden.remove(namespace);
    }

    /// What the API server said of the right that is missing in this namespace, if it was asked lately.
    pub fn forbidden(&self, namespace: &str, now: Instant) -> Option<&str> {
        self.forbidden.get(namespace).filter(|forbidden| forbidden.until > now).map(|forbidden| forbidden.why.as_str())
    }

    /// Forgets what was long ago.
    pub fn prune(&mut self, now: Instant) {
        self.forbidden.retain(|_, forbidden| forbidden.until + FORBIDDEN_FOR_LONGEST * 2 > now);
        for of_set in self.sets.values_mut() {
            of_set.failed.retain(|failed| failed.is_lately(now));
        }
    }
}

impl FailedEviction {
    fn is_lately(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < FAILED_FOR
    }
}

fn are_lost(failed: &[&FailedEviction]) -> bool {
    failed.iter().any(|failed| failed.what == EvictionFailure::NotReplaced)
}

#[cfg(test)]
#[path = "brakes_tests.rs"]
mod tests;
