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
type Asked = Shared<BoxFuture<'static, Option<Known>>>;
/// Questions that are open. Who waits holds them, so that one that no review waits for any more is given up.
type Open = Mutex<HashMap<Question, (WeakShared<BoxFuture<'static, Option<Known>>>, Arc<AtomicBool>)>>;

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
    patience: Duration,
    patience_for_images: Duration,
    open: Arc<Open>,
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
            patience: ONE_QUESTION,
            patience_for_images: ONE_REVIEW_OF_IMAGES,
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
    fn asked(&self, question: &Question, sent: &Sent) -> Option<Asked> {
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
        let entry = Entry { open: Arc::clone(&self.open), question: question.clone() };
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
        entry: Option<Entry>,
        is_sent: Arc<AtomicBool>,
    ) -> impl Future<Output = Option<Known>> + Send + use<> {
        let (turns, patience) = match &question {
            Question::Resources(_) => (&self.discoveries, self.patience),
            Question::Images(_) => (&self.images, self.patience_for_images),
            _ => (&self.in_flight, self.patience),
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
            let answer = match timeout(patience, asker.ask(&question)).await {
                Ok(answer) => answer,
                Err(_) => match question {
                    // An API that does not answer has no kinds, as one whose discovery fails.
                    Question::Resources(_) => Ok(Known::Failed(format!("no answer in {patience:?}"))),
                    // Who began to wait late gets no other answer than who waited for all of it.
                    Question::Images(_) => Ok(Known::Failed(NO_REVIEW.to_owned())),
                    _ => Err(format!("no answer in {patience:?}")),
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
struct Entry {
    open: Arc<Open>,
    question: Question,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.question);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use admission::question::{Access, GroupVersion, ImageBackend, Images, Object, RateLimit, Token};

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
                    Question::Resources(_) => std::future::pending().await,
                    Question::Images(images) if images.namespace == "slow" => std::future::pending().await,
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

    async fn one(questions: &Questions, question: &Question) -> Option<Known> {
        questions.one(question, &Sent::default()).await
    }

    fn soon() -> Time {
        of(Duration::from_millis(50))
    }

    /// A review of so long, which begins now.
    fn of(in_all: Duration) -> Time {
        Time { until: Instant::now() + in_all, in_all }
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

    fn version(name: &str) -> Question {
        Question::Resources(GroupVersion { group: "x".to_owned(), version: name.to_owned() })
    }

    #[tokio::test]
    async fn equal_questions_share_one_request_and_one_that_nobody_waits_for_is_given_up() {
        let asker = Arc::new(Counts::default());
        let questions = Questions::new(Some(asker.clone()), Metrics::new(Freshness::default()));
        let hung = version("v1");
        for sent in 1..=2 {
            let many = join_all((0..40).map(|_| one(&questions, &hung)));
            assert!(timeout(Duration::from_millis(20), many).await.is_err());
            assert_eq!(asker.0.load(Ordering::SeqCst), sent);
            assert!(questions.open.lock().unwrap().is_empty(), "it was given up with those who waited for it");
        }
    }

    #[tokio::test]
    async fn apis_that_do_not_answer_take_four_places_for_a_while_and_hold_up_nobody_else() {
        let asker = Arc::new(Counts::default());
        let mut questions = Questions::new(Some(asker.clone()), Metrics::new(Freshness::default()));
        questions.patience = Duration::from_millis(50);
        let hung: Vec<Question> = (0..40).map(|at| version(&format!("v{at}"))).collect();
        let all = join_all(hung.iter().map(|question| one(&questions, question)));
        let other = async { (asker.0.load(Ordering::SeqCst), one(&questions, &about("kim")).await) };
        let (failed, (sent, known)) = futures::join!(all, other);
        assert_eq!((sent, known), (DISCOVERIES, Some(Known::Allowed(true, String::new()))));
        assert_eq!(failed, vec![Some(Known::Failed("no answer in 50ms".to_owned())); 40]);
        assert_eq!(one(&questions, &about("slow")).await, None, "of a right, no answer is no verdict");
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
    async fn a_late_review_of_images_is_an_answer_beside_another_late_question_and_is_given_up() {
        let questions = Questions::new(Some(Arc::new(Counts::default())), Metrics::new(Freshness::default()));
        let images = Question::Images(Arc::new(Images { namespace: "slow".to_owned(), ..Images::default() }));
        for (beside, expected) in [(None, Ok(())), (Some(about("slow")), Err(Unserved::OutOfTime))] {
            let mut answers = Answers::default();
            let asked = std::iter::once(images.clone()).chain(beside).collect();
            assert_eq!(questions.answer(asked, &mut answers, soon()).await, expected);
            assert_eq!(answers.get(&images), Some(&Known::Failed(NO_REVIEW.to_owned())));
            assert!(questions.open.lock().unwrap().is_empty(), "it was given up");
            assert_eq!(questions.images.available_permits(), REVIEWS_OF_IMAGES);
        }
    }

    #[tokio::test]
    async fn a_backend_that_had_less_time_than_its_object_gives_or_was_not_asked_said_nothing() {
        let questions = Questions::new(Some(Arc::new(Counts::default())), Metrics::new(Freshness::default()));
        let backend = |timeout_seconds| ImageBackend { timeout_seconds, ..ImageBackend::default() };
        let slow = |timeout_seconds, image: String| {
            let (backend, images) = (backend(timeout_seconds), vec![image]);
            Question::Images(Arc::new(Images { backend, images, namespace: "slow".to_owned(), ..Images::default() }))
        };
        let mut answers = Answers::default();
        let shortened = questions.answer(vec![slow(1, String::new())], &mut answers, soon()).await;
        assert_eq!(shortened, Err(Unserved::OutOfTime));
        let taken: Vec<Question> = (0..REVIEWS_OF_ONE).map(|at| slow(0, at.to_string())).collect();
        let sent: Vec<Sent> = taken.iter().map(|_| Sent::default()).collect();
        let hung = join_all(taken.iter().zip(&sent).map(|(question, sent)| questions.one(question, sent)));
        let waiting = async {
            tokio::task::yield_now().await;
            let waited = questions.answer(vec![slow(0, "another".to_owned())], &mut answers, soon()).await;
            // Another backend is asked, though this one holds all that it may.
            let backend = ImageBackend { name: "other".to_owned(), ..ImageBackend::default() };
            let other =
                Question::Images(Arc::new(Images { backend, namespace: "slow".to_owned(), ..Images::default() }));
            questions.answer(vec![other.clone()], &mut answers, soon()).await.unwrap();
            assert_eq!(answers.get(&other), Some(&Known::Failed(NO_REVIEW.to_owned())), "it did not answer in time");
            waited
        };
        tokio::select! {
            _ = hung => panic!("the backend never answers"),
            waited = waiting => assert_eq!(waited, Err(Unserved::Overloaded)),
        }
        assert!(answers.get(&slow(0, "another".to_owned())).is_none());
    }

    #[tokio::test]
    async fn a_review_of_images_that_takes_longer_than_any_review_is_an_answer_for_all_who_wait() {
        let mut questions = Questions::new(Some(Arc::new(Counts::default())), Metrics::new(Freshness::default()));
        questions.patience_for_images = Duration::from_millis(20);
        let images = Question::Images(Arc::new(Images { namespace: "slow".to_owned(), ..Images::default() }));
        let mut answers = Answers::default();
        questions.answer(vec![images.clone()], &mut answers, of(Duration::from_secs(30))).await.unwrap();
        assert_eq!(answers.get(&images), Some(&Known::Failed(NO_REVIEW.to_owned())));
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
