//! Questions of decisions, asked within the deadline of their review.
//!
//! What is asked is bounded, in one review and of all reviews together, and what the API server said of a right counts for a while.
//! Tokens of rate limits are taken in the process itself: decisions have neither the clock nor the lock that it needs.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use admission::{Answers, Known, Question, Unserved};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared, join_all};
use tokio::sync::Semaphore;
use tokio::time::{timeout, timeout_at};

use super::deadline::{Time, within};
use super::rate_limits::RateLimits;
use super::remembered::Remembered;
use super::shares::Shares;
use crate::metrics::{Metrics, QuestionResult};

/// Questions that are asked at one time, of all reviews together.
const IN_FLIGHT: usize = 32;
/// Those of them about served resources, which an aggregated API that does not answer holds up.
const DISCOVERIES: usize = 4;
/// Those of them about images, which a slow reviewer holds up.
const REVIEWS_OF_IMAGES: usize = 256;
/// Those of one reviewer.
const REVIEWS_OF_ONE: usize = 128;
/// How long a reviewer of images may take: as long as the longest review. What ends sooner is who waits.
const ONE_REVIEW_OF_IMAGES: Duration = Duration::from_secs(30);
/// That there was none in time.
const NO_REVIEW: &str = "the image policy backend did not answer in time";
/// How long one question may take from when it is sent.
const ONE_QUESTION: Duration = Duration::from_secs(2);
/// Questions of one review in one round.
pub const OF_ONE_REVIEW: usize = 16;
/// Rounds of one review: a question may depend on the answer to an earlier one.
pub const ROUNDS: usize = 4;

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

/// A question that was sent, for all who wait for its answer.
type PendingAnswer = Shared<BoxFuture<'static, Option<Known>>>;
/// Questions that are open. Who waits holds them, so that one that no review waits for any more is given up.
type OpenQuestions = Mutex<HashMap<Question, (WeakShared<BoxFuture<'static, Option<Known>>>, Arc<AtomicBool>)>>;

/// Whether the request that answers a question was sent, and did not only wait for its turn.
#[derive(Debug, Default)]
struct Sent(OnceLock<Arc<AtomicBool>>);

impl Sent {
    /// The request with this flag answers it.
    fn of_request(&self, flag: Arc<AtomicBool>) -> Arc<AtomicBool> {
        Arc::clone(self.0.get_or_init(|| flag))
    }

    fn is_sent(&self) -> bool {
        self.0.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// What asks, remembers and counts.
#[derive(Debug)]
pub struct Questions {
    /// Answers no question, for a process without a cluster.
    asker: Option<Arc<dyn Asker>>,
    in_flight: Arc<Semaphore>,
    discoveries: Arc<Semaphore>,
    images: Arc<Semaphore>,
    reviewers: Shares<Semaphore>,
    time_limit: Duration,
    time_limit_for_images: Duration,
    open: Arc<OpenQuestions>,
    remembered: Arc<Remembered>,
    rate_limits: RateLimits,
    began: Instant,
    metrics: Metrics,
}

impl Questions {
    /// Asks this one.
    pub fn new(asker: Option<Arc<dyn Asker>>, metrics: Metrics) -> Self {
        Self {
            asker,
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT)),
            discoveries: Arc::new(Semaphore::new(DISCOVERIES)),
            images: Arc::new(Semaphore::new(REVIEWS_OF_IMAGES)),
            reviewers: Shares::default(),
            time_limit: ONE_QUESTION,
            time_limit_for_images: ONE_REVIEW_OF_IMAGES,
            open: Arc::default(),
            remembered: Arc::default(),
            rate_limits: RateLimits::default(),
            began: Instant::now(),
            metrics,
        }
    }

    /// Adds the answers to these questions.
    ///
    /// # Errors
    /// [`Unserved::Unanswered`] when one of them cannot be answered, [`Unserved::OutOfTime`] when the time is over, and
    /// [`Unserved::Overloaded`] when it was over before a question was sent.
    pub async fn answer(&self, questions: Vec<Question>, answers: &mut Answers, time: Time) -> Result<(), Unserved> {
        if questions.len() > OF_ONE_REVIEW {
            return Err(Unserved::Unanswered(questions));
        }
        let asked = join_all(questions.iter().map(|question| self.until(question, time))).await;
        let (mut open, mut late) = (Vec::new(), None);
        for (question, known) in questions.into_iter().zip(asked) {
            match known {
                Ok(Some(known)) => answers.insert(question, known),
                Ok(None) => open.push(question),
                Err(unserved) => late = Some(unserved),
            }
        }
        match (late, open.is_empty()) {
            (Some(unserved), _) => Err(unserved),
            (None, false) => Err(Unserved::Unanswered(open)),
            (None, true) => Ok(()),
        }
    }

    /// The answer by the end, which is that of this question alone, so that no other one decides what it means: that there was no
    /// verdict on images in time is an answer, and the plugin's object says what follows. It is none where the backend was not asked, or
    /// had less time than the object gives it: both are in the hands of who creates pods.
    async fn until(&self, question: &Question, time: Time) -> Result<Option<Known>, Unserved> {
        let sent = Sent::default();
        if let Ok(known) = timeout_at(time.until.into(), self.one(question, &sent)).await {
            return Ok(known);
        }
        self.metrics.question(question.kind(), QuestionResult::timeout);
        let Question::Images(images) = question else { return Err(Unserved::OutOfTime) };
        if !sent.is_sent() {
            return Err(Unserved::Overloaded);
        }
        if time.in_all < within(Duration::from_secs(images.backend.timeout_seconds.into())) {
            return Err(Unserved::OutOfTime);
        }
        Ok(Some(Known::Failed(NO_REVIEW.to_owned())))
    }

    async fn one(&self, question: &Question, sent: &Sent) -> Option<Known> {
        if let Question::Tokens(tokens) = question {
            self.metrics.question(question.kind(), QuestionResult::answered);
            return Some(Known::Tokens(self.rate_limits.take(tokens, self.began.elapsed())));
        }
        if let Some(known) = self.remembered.get(question) {
            self.metrics.question(question.kind(), QuestionResult::cached);
            return Some(known);
        }
        let known = self.asked(question, sent)?.await;
        let result = if known.is_some() { QuestionResult::answered } else { QuestionResult::error };
        self.metrics.question(question.kind(), result);
        known
    }

    /// The request for this question: the one that is open already, or a new one.
    fn asked(&self, question: &Question, sent: &Sent) -> Option<PendingAnswer> {
        let asker = Arc::clone(self.asker.as_ref()?);
        // An object may have come while an earlier request for it was open.
        if matches!(question, Question::Object(_)) {
            return Some(self.request(asker, question.clone(), None, sent.of_request(Arc::default())).boxed().shared());
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((asked, flag)) = open.get(question).and_then(|(weak, flag)| Some((weak.upgrade()?, flag))) {
            sent.of_request(Arc::clone(flag));
            return Some(asked);
        }
        let flag = sent.of_request(Arc::default());
        let entry = AskedEntry { open: Arc::clone(&self.open), question: question.clone() };
        let shared = self.request(asker, question.clone(), Some(entry), Arc::clone(&flag)).boxed().shared();
        if let Some(weak) = shared.downgrade() {
            open.insert(question.clone(), (weak, flag));
        }
        Some(shared)
    }

    fn request(
        &self,
        asker: Arc<dyn Asker>,
        question: Question,
        entry: Option<AskedEntry>,
        is_sent: Arc<AtomicBool>,
    ) -> impl Future<Output = Option<Known>> + Send + use<> {
        let (turns, time_limit) = match &question {
            Question::Resources(_) => (&self.discoveries, self.time_limit),
            Question::Images(_) => (&self.images, self.time_limit_for_images),
            _ => (&self.in_flight, self.time_limit),
        };
        let (turns, remembered) = (Arc::clone(turns), Arc::clone(&self.remembered));
        let reviewer = match &question {
            Question::Images(images) => {
                Some(self.reviewers.of(&images.backend.name, || Semaphore::new(REVIEWS_OF_ONE)))
            }
            _ => None,
        };
        async move {
            let _entry = entry;
            // First that of the reviewer: who waits for one that hangs keeps no turn from the others.
            let _of_reviewer = match &reviewer {
                Some(reviewer) => Some(reviewer.acquire().await.ok()?),
                None => None,
            };
            let _turn = turns.acquire().await.ok()?;
            is_sent.store(true, Ordering::Relaxed);
            let answer = match timeout(time_limit, asker.ask(&question)).await {
                Ok(answer) => answer,
                Err(_) => match question {
                    // An API that does not answer has no kinds, as one whose discovery fails.
                    Question::Resources(_) => Ok(Known::Failed(format!("no answer in {time_limit:?}"))),
                    // Who began to wait late gets no other answer than who waited for all of it.
                    Question::Images(_) => Ok(Known::Failed(NO_REVIEW.to_owned())),
                    _ => Err(format!("no answer in {time_limit:?}")),
                },
            };
            match answer {
                Ok(known) => {
                    remembered.keep(&question, &known);
                    Some(known)
                }
                Err(error) => {
                    tracing::warn!(kind = question.kind(), error, "A question of a review was not answered");
                    None
                }
            }
        }
    }
}

/// The place of a question among those that are open, which goes with its request.
struct AskedEntry {
    open: Arc<OpenQuestions>,
    question: Question,
}

impl Drop for AskedEntry {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.question);
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
