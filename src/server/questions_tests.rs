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
    questions.time_limit = Duration::from_millis(50);
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
        let other = Question::Images(Arc::new(Images { backend, namespace: "slow".to_owned(), ..Images::default() }));
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
    questions.time_limit_for_images = Duration::from_millis(20);
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
