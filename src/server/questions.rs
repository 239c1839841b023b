//! Questions of decisions, asked within the deadline of their review.
//!
//! What is asked is bounded, in one review and of all reviews together, and what the API server said of a right counts for a while.
//! Tokens of rate limits are taken in the process itself: decisions have neither the clock nor the lock that it needs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use admission::{Answers, Known, Question, Unserved};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::rate_limits::RateLimits;
use crate::metrics::{Metrics, QuestionResult};

/// Questions that are asked at one time, of all reviews together.
const IN_FLIGHT: usize = 32;
/// Questions of one review in one round.
pub const OF_ONE_REVIEW: usize = 16;
/// Rounds of one review: a question may depend on the answer to an earlier one.
pub const ROUNDS: usize = 4;
/// How long an answer about rights, images or served resources counts. Rights that are taken back are good for so long. Objects are asked for anew.
pub const ANSWER_LIFE: Duration = Duration::from_secs(10);
/// Answers that are remembered. While so many count, no further one is.
const REMEMBERED: usize = 4096;

/// Bytes of the largest question whose answer is remembered: all of them take at most 16 MiB.
const LARGEST: usize = 4096;

/// The bytes of a question, roughly.
fn size(question: &Question) -> usize {
    match question {
        Question::Access(access) => {
            let lists =
                access.extra.iter().map(|(key, values)| key.len() + values.iter().map(String::len).sum::<usize>());
            let groups = access.groups.iter().map(|group| group.len() + size_of::<String>());
            access.user.len() + access.uid.len() + access.name.len() + groups.sum::<usize>() + lists.sum::<usize>()
        }
        Question::Images(images) => images.images.iter().map(String::len).sum(),
        Question::Resources(of) => of.group.len() + of.version.len(),
        Question::Object(_) | Question::Tokens(_) => 0,
    }
}

/// Who knows the answers.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Asks. The error is for the log.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Known, String>>;
}

/// Says yes to all about rights and images, and knows no object.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Asker for AllowAll {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Known, String>> {
        let known = match question {
            Question::Access(_) | Question::Images(_) => Ok(Known::Allowed(true, String::new())),
            Question::Object(_) => Err("there is no cluster to get objects from".to_owned()),
            Question::Resources(_) => Err("there is no cluster that serves resources".to_owned()),
            Question::Tokens(tokens) => Ok(Known::Tokens(vec![true; tokens.len()])),
        };
        std::future::ready(known).boxed()
    }
}

/// What asks, remembers and counts.
#[derive(Debug)]
pub struct Questions {
    /// Answers no question, for a process without a cluster.
    asker: Option<Arc<dyn Asker>>,
    in_flight: Semaphore,
    remembered: Mutex<HashMap<Question, (Known, Instant)>>,
    rate_limits: RateLimits,
    began: Instant,
    metrics: Metrics,
}

impl Questions {
    /// Asks this one.
    pub fn new(asker: Option<Arc<dyn Asker>>, metrics: Metrics) -> Self {
        Self {
            asker,
            in_flight: Semaphore::new(IN_FLIGHT),
            remembered: Mutex::default(),
            rate_limits: RateLimits::default(),
            began: Instant::now(),
            metrics,
        }
    }

    /// Adds the answers to these questions.
    ///
    /// # Errors
    /// [`Unserved::Unanswered`] when one of them cannot be answered, [`Unserved::OutOfTime`] when the deadline passes.
    pub async fn answer(
        &self,
        questions: Vec<Question>,
        answers: &mut Answers,
        deadline: Instant,
    ) -> Result<(), Unserved> {
        if questions.len() > OF_ONE_REVIEW {
            return Err(Unserved::Unanswered(questions));
        }
        let asked = timeout_at(deadline.into(), join_all(questions.iter().map(|question| self.one(question)))).await;
        let Ok(asked) = asked else {
            for question in &questions {
                self.metrics.question(question.kind(), QuestionResult::timeout);
            }
            return Err(Unserved::OutOfTime);
        };
        let mut open = Vec::new();
        for (question, known) in questions.into_iter().zip(asked) {
            match known {
                Some(known) => answers.insert(question, known),
                None => open.push(question),
            }
        }
        if open.is_empty() { Ok(()) } else { Err(Unserved::Unanswered(open)) }
    }

    async fn one(&self, question: &Question) -> Option<Known> {
        if let Question::Tokens(tokens) = question {
            self.metrics.question(question.kind(), QuestionResult::answered);
            return Some(Known::Tokens(self.rate_limits.take(tokens, self.began.elapsed())));
        }
        if let Some(known) = self.remembers(question) {
            self.metrics.question(question.kind(), QuestionResult::cached);
            return Some(known);
        }
        let asker = self.asker.as_ref()?;
        let Ok(_turn) = self.in_flight.acquire().await else { return None };
        match asker.ask(question).await {
            Ok(known) => {
                self.metrics.question(question.kind(), QuestionResult::answered);
                self.remember(question, &known);
                Some(known)
            }
            Err(error) => {
                self.metrics.question(question.kind(), QuestionResult::error);
                tracing::warn!(kind = question.kind(), error, "A question of a review was not answered");
                None
            }
        }
    }

    fn remembers(&self, question: &Question) -> Option<Known> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, since) = remembered.get(question)?;
        (since.elapsed() < ANSWER_LIFE).then(|| known.clone())
    }

    fn remember(&self, question: &Question, known: &Known) {
        if matches!(question, Question::Object(_)) || matches!(known, Known::Failed(_)) || size(question) > LARGEST {
            return;
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.retain(|_, (_, since)| since.elapsed() < ANSWER_LIFE);
        if remembered.len() < REMEMBERED {
            remembered.insert(question.clone(), (known.clone(), Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use admission::question::{Access, Object, RateLimit, Token};

    use super::*;
    use crate::metrics::Freshness;

    #[derive(Debug, Default)]
    struct Counts(AtomicUsize);

    impl Asker for Counts {
        fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Known, String>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            async move {
                match question {
                    Question::Access(access) if access.user == "slow" => std::future::pending().await,
                    Question::Access(access) if access.user == "broken" => Err("no".to_owned()),
                    _ => Ok(Known::Allowed(true, String::new())),
                }
            }
            .boxed()
        }
    }

    fn about(user: &str) -> Question {
        Question::Access(Access { user: user.to_owned(), ..Access::default() })
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[tokio::test]
    async fn answers_about_rights_are_remembered_and_objects_are_asked_for_anew() {
        let (asker, metrics) = (Arc::new(Counts::default()), Metrics::new(Freshness::default()));
        let questions = Questions::new(Some(asker.clone()), metrics.clone());
        for (question, asked) in [(about("kim"), 1), (Question::Object(Object::default()), 3)] {
            for _ in 0..2 {
                let mut answers = Answers::default();
                questions.answer(vec![question.clone()], &mut answers, soon()).await.unwrap();
                assert!(answers.get(&question).unwrap().is_yes());
            }
            assert_eq!(asker.0.load(Ordering::SeqCst), asked);
        }
        let text = metrics.encode().unwrap();
        for line in [
            "outrider_questions_total{kind=\"access\",result=\"answered\"} 1",
            "outrider_questions_total{kind=\"access\",result=\"cached\"} 1",
            "outrider_questions_total{kind=\"object\",result=\"answered\"} 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[tokio::test]
    async fn what_is_large_failed_or_old_is_not_remembered() {
        let questions = Questions::new(None, Metrics::new(Freshness::default()));
        let kept = || questions.remembered.lock().unwrap().len();
        let yes = Known::Allowed(true, String::new());
        questions.remember(&about(&"k".repeat(LARGEST + 1)), &yes);
        questions.remember(&about("kim"), &Known::Failed("no".to_owned()));
        assert_eq!(kept(), 0);
        let Some(before) = Instant::now().checked_sub(ANSWER_LIFE) else { return };
        questions.remembered.lock().unwrap().insert(about("old"), (yes.clone(), before));
        questions.remember(&about("kim"), &yes);
        assert_eq!(kept(), 1, "an answer that counts no more goes with the next one");
    }

    #[tokio::test]
    async fn tokens_are_taken_in_the_process_once_for_each_question() {
        let questions = Questions::new(None, Metrics::new(Freshness::default()));
        let limit = RateLimit { name: "a/0".to_owned(), qps: 1, burst: 2, buckets: 1 };
        let question = Question::Tokens(vec![Token { limit, key: String::new() }]);
        for is_there in [true, true, false] {
            let mut answers = Answers::default();
            questions.answer(vec![question.clone()], &mut answers, soon()).await.unwrap();
            assert_eq!(answers.get(&question), Some(&Known::Tokens(vec![is_there])));
        }
    }

    #[tokio::test]
    async fn what_nobody_answers_in_time_is_no_verdict() {
        let metrics = Metrics::new(Freshness::default());
        let questions = Questions::new(Some(Arc::new(Counts::default())), metrics.clone());
        let mut answers = Answers::default();
        let open = questions.answer(vec![about("kim"), about("broken")], &mut answers, soon()).await;
        assert_eq!(open, Err(Unserved::Unanswered(vec![about("broken")])));
        let late = questions.answer(vec![about("slow")], &mut answers, soon()).await;
        assert_eq!(late, Err(Unserved::OutOfTime));
        let many: Vec<Question> = (0..=OF_ONE_REVIEW).map(|user| about(&user.to_string())).collect();
        assert!(matches!(questions.answer(many, &mut answers, soon()).await, Err(Unserved::Unanswered(_))));
        let yes = Questions::new(Some(Arc::new(AllowAll)), metrics.clone());
        yes.answer(vec![about("kim")], &mut answers, soon()).await.unwrap();
        assert!(answers.get(&about("kim")).unwrap().is_yes());
        let nobody = Questions::new(None, metrics);
        assert!(matches!(nobody.answer(vec![about("kim")], &mut answers, soon()).await, Err(Unserved::Unanswered(_))));
    }
}
