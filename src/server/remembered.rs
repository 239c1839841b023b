//! Answers that count for a while.
//!
//! No library: all have one life, so that a queue in the order of their ages is all that a cache needs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use admission::{Known, Question};

/// How long an answer about rights or served resources counts. Rights that are taken back are good for so long. Objects are asked for anew.
pub const ANSWER_LIFE: Duration = Duration::from_secs(10);
/// Answers that are kept. With one more, the oldest goes: who asks much cannot keep the answers to others out.
const KEPT: usize = 4096;
/// Bytes of the largest question whose answer is kept: all of them take at most 16 MiB.
const LARGEST: usize = 4096;

/// The answers.
#[derive(Debug, Default)]
pub struct Remembered(Mutex<ByTime>);

#[derive(Debug, Default)]
struct ByTime {
    known: HashMap<Arc<Question>, (Known, Instant)>,
    /// All of them, the oldest first. A question that was answered twice is here twice.
    order: VecDeque<(Arc<Question>, Instant)>,
}

impl Remembered {
    /// The answer, if it still counts.
    pub fn get(&self, question: &Question) -> Option<Known> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, since) = all.known.get(question)?;
        (since.elapsed() < ANSWER_LIFE).then(|| known.clone())
    }

    /// Keeps an answer, if others than who asked may use it.
    pub fn keep(&self, question: &Question, known: &Known) {
        if counts_later(question, known) && size(question) <= LARGEST {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.keep(question, known, Instant::now());
        }
    }
}

impl ByTime {
    fn keep(&mut self, question: &Question, known: &Known, now: Instant) {
        let is_over = |(_, since): &(Arc<Question>, Instant)| now.saturating_duration_since(*since) >= ANSWER_LIFE;
        while self.order.len() >= KEPT || self.order.front().is_some_and(is_over) {
            let Some((oldest, since)) = self.order.pop_front() else { break };
            if self.known.get(&oldest).is_some_and(|(_, latest)| *latest == since) {
                self.known.remove(&oldest);
            }
        }
        let question = Arc::new(question.clone());
        self.known.insert(Arc::clone(&question), (known.clone(), now));
        self.order.push_back((question, now));
    }
}

/// That a version has no kinds may change at any moment, when somebody installs them. What an authorizer could not decide is no answer of
/// its rules.
fn counts_later(question: &Question, known: &Known) -> bool {
    // A verdict on images counts for as long as the AdmissionPlugin says.
    let is_object = matches!(question, Question::Object(_) | Question::Images(_));
    match known {
        Known::Failed(_) | Known::Unsure { .. } => false,
        Known::Resources(resources) => !resources.is_empty(),
        _ => !is_object,
    }
}

/// The bytes of a question, roughly.
fn size(question: &Question) -> usize {
    let all = |list: &[String]| list.iter().map(|one| one.len() + size_of::<String>()).sum::<usize>();
    match question {
        Question::Access(access) => {
            let extra = access.extra.iter().map(|(key, values)| key.len() + size_of::<String>() + all(values));
            let names = access.user.len() + access.uid.len() + access.name.len();
            names + all(&access.groups) + extra.sum::<usize>()
        }
        Question::Resources(of) => of.group.len() + of.version.len(),
        Question::Images(_) | Question::Object(_) | Question::Tokens(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use admission::question::{Access, GroupVersion};

    use super::*;

    fn about(user: &str) -> Question {
        Question::Access(Access { user: user.to_owned(), ..Access::default() })
    }

    fn yes() -> Known {
        Known::Allowed(true, String::new())
    }

    #[test]
    fn what_is_large_failed_unsure_or_empty_is_not_kept() {
        let all = Remembered::default();
        let served = Question::Resources(GroupVersion { group: "x".to_owned(), version: "v1".to_owned() });
        let extra = BTreeMap::from([("k".to_owned(), vec![String::new(); LARGEST])]);
        let unsure = Known::Unsure { reason: String::new(), error: "no".to_owned() };
        for (question, known) in [
            (about(&"k".repeat(LARGEST + 1)), yes()),
            (Question::Access(Access { extra, ..Access::default() }), yes()),
            (about("kim"), Known::Failed("no".to_owned())),
            (about("kim"), unsure),
            (served, Known::Resources(Arc::new([]))),
        ] {
            all.keep(&question, &known);
            assert_eq!(all.get(&question), None, "{known:?}");
        }
        all.keep(&about("kim"), &yes());
        assert_eq!(all.get(&about("kim")), Some(yes()));
    }

    #[test]
    fn the_oldest_goes_for_the_newest_and_what_counts_no_more_goes_with_the_next() {
        let (mut all, began) = (ByTime::default(), Instant::now());
        for at in 0..=KEPT {
            all.keep(&about(&at.to_string()), &yes(), began);
        }
        assert_eq!((all.known.len(), all.order.len()), (KEPT, KEPT));
        assert!(!all.known.contains_key(&about("0")) && all.known.contains_key(&about(&KEPT.to_string())));
        all.keep(&about("late"), &yes(), began + ANSWER_LIFE);
        assert_eq!((all.known.len(), all.order.len()), (1, 1));
    }

    #[test]
    fn an_answer_that_was_given_twice_counts_from_the_second_time() {
        let (mut all, began) = (ByTime::default(), Instant::now());
        all.keep(&about("kim"), &yes(), began);
        all.keep(&about("kim"), &yes(), began + ANSWER_LIFE / 2);
        all.keep(&about("lee"), &yes(), began + ANSWER_LIFE);
        assert!(all.known.contains_key(&about("kim")));
    }
}
