//! A request to a webhook path: from its head to its reply.
//!
//! The routes are the registry's, so the paths are compared here without a router in between. What the framework decides is
//! called inline: it takes microseconds, never waits, and a panic in it ends one review, not the process. A large body takes
//! longer, and is decided in a thread apart.
//!
//! On hyper and not on axum, whose router costs a microsecond and ten allocations per request: see docs/architecture.md.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use admission::{Answers, Registry, Unserved};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Body;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{timeout, timeout_at};

use super::body::{self, WholeBody};
use super::body_memory::BodyMemory;
use super::connections::Activity;
use super::deadline::{Time, budget};
use super::decision::{Answered, Decision, Refusal, Target};
use super::limits::Limits;
use super::questions::{Asker, Questions, ROUNDS};
use super::waiting::Waiting;
use super::{record, reply};
use crate::metrics::{Metrics, PathMetrics};
use crate::readiness::Readiness;

/// Where `CustomResourceDefinition`s send their conversions.
pub const CONVERT_PATH: &str = "/convert";

/// All webhook paths of the process.
pub struct Webhooks<W> {
    registry: Arc<Registry<W>>,
    snapshot: Arc<ArcSwap<W>>,
    routes: Vec<Route>,
    metrics: Metrics,
    readiness: Readiness,
    limits: Limits,
    turns: Semaphore,
    // A decision on a large body holds one of these to its end, also when the client is gone.
    large: Arc<Semaphore>,
    memory: BodyMemory,
    questions: Questions,
    waiting: Waiting,
}

struct Route {
    path: String,
    target: Target,
    /// Bytes above which a body is decided apart from the others.
    large: usize,
    /// Of conversions not before the first: there may be nothing to convert.
    counted: OnceLock<PathMetrics>,
}

/// Where a body is decided on.
enum HeldBody {
    /// Here, at once.
    Here(WholeBody),
    /// In a separate thread, which may go on when the client is gone.
    Apart(Arc<WholeBody>),
}

impl HeldBody {
    fn whole(&self) -> &WholeBody {
        match self {
            Self::Here(body) => body,
            Self::Apart(body) => body,
        }
    }
}

impl<W: Send + Sync + 'static> Webhooks<W> {
    /// The paths of `registry`, decided from `snapshot` as it is when a request has been read.
    pub fn new(
        registry: Arc<Registry<W>>,
        snapshot: Arc<ArcSwap<W>>,
        readiness: Readiness,
        metrics: Metrics,
        limits: Limits,
        asker: Option<Arc<dyn Asker>>,
    ) -> Self {
        let mut routes: Vec<Route> = registry
            .entries()
            .iter()
            .enumerate()
            .map(|(index, entry)| Route {
                path: entry.path.clone(),
                target: Target::Endpoint(index),
                large: if entry.endpoint.decodes_objects() { limits.large_object } else { limits.large },
                counted: metrics.path(&entry.path).into(),
            })
            .collect();
        if !registry.conversions().is_empty() {
            let (path, target) = (CONVERT_PATH.to_owned(), Target::Conversion);
            routes.push(Route { path, target, large: limits.large, counted: OnceLock::new() });
        }
        Self {
            registry,
            snapshot,
            routes,
            readiness,
            turns: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            large: Arc::new(Semaphore::new(limits.large_at_once.clamp(1, Semaphore::MAX_PERMITS))),
            memory: BodyMemory::new(limits.body_memory),
            questions: Questions::new(asker, metrics.clone()),
            waiting: Waiting::new(limits.body_memory),
            metrics,
            limits,
        }
    }

    /// Answers any request that reaches the webhook port, on that connection.
    pub async fn answer<B>(&self, request: Request<B>, connection: Option<&Arc<Activity>>) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        let Some(route) = self.routes.iter().find(|route| route.path == path) else {
            self.metrics.not_found();
            body::discard(body, self.limits.body);
            return self.not_found(path, parts.version);
        };
        let counted = route.counted.get_or_init(|| self.metrics.path(path));
        if parts.method != Method::POST {
            counted.wrong_method();
            body::discard(body, self.limits.body);
            return reply::method_not_allowed();
        }
        let _counted = CountedGauge::up(&self.metrics.in_flight);
        let budget = budget(parts.uri.query(), self.limits.default_deadline);
        let time = Time { until: started + budget, in_all: budget };
        let outcome = match self.serve(route, &parts, body, time).await {
            Ok(mut answered) => {
                let writing = self.memory.reply(answered.take_body(), connection, parts.version);
                match timeout_at(time.until.into(), writing).await.unwrap_or(Err(Unserved::OutOfTime)) {
                    Ok(bytes) => Ok((answered, bytes)),
                    Err(unserved) => Err(Refusal { unserved, uid: answered.uid().map(str::to_owned) }),
                }
            }
            Err(refusal) => Err(refusal),
        };
        let took = started.elapsed();
        counted.took(took);
        match outcome {
            Ok((answered, bytes)) => Self::answered(path, counted, answered, bytes, took, budget),
            Err(refusal) => {
                counted.unserved(&refusal.unserved);
                record::unserved(path, refusal.uid.as_deref(), &refusal.unserved, took);
                reply::unserved_within(&refusal.unserved, budget)
            }
        }
    }

    /// During a rollout, the API server may learn of an endpoint before this replica has it, or send a request to one that ends.
    /// Its next try goes to another replica.
    fn not_found(&self, path: &str, version: Version) -> Response<Full<Bytes>> {
        let is_endpoint = || ["/mutate-", "/validate-"].iter().any(|verb| path.starts_with(verb));
        let is_elsewhere = self.registry.is_elsewhere(path) || (self.readiness.is_draining() && is_endpoint());
        if !is_elsewhere {
            return reply::not_found(path, self.routes.iter().map(|route| route.path.as_str()));
        }
        let mut response = reply::unserved(&Unserved::Elsewhere(reply::shortened(path)));
        if version < Version::HTTP_2 {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn answered(
        path: &str,
        counted: &PathMetrics,
        answered: Answered,
        body: Bytes,
        took: Duration,
        budget: Duration,
    ) -> Response<Full<Bytes>> {
        match answered {
            Answered::Review(answer) => {
                counted.decided(answer.decision, answer.reason, answer.summary.dry_run);
                if !answer.summary.dry_run {
                    counted.plugins_decided(&answer.counts);
                }
                record::decided(path, &answer, took, budget);
                reply::json(body)
            }
            Answered::Conversion(_) => {
                counted.converted();
                tracing::debug!(path, duration = took.as_secs_f64(), "Conversion answered");
                reply::json(body)
            }
        }
    }

    async fn serve<B>(&self, route: &Route, parts: &Parts, mut body: B, time: Time) -> Result<Answered, Refusal>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        if let Err(unserved) = self.acceptable(parts, &body) {
            body::discard(body, self.limits.body);
            return Err(unserved.into());
        }
        let deadline = time.until;
        let reading = body::read(&mut body, self.limits.body, &self.memory);
        let body = match timeout_at(deadline.into(), reading).await {
            Ok(Ok(whole)) => whole,
            Ok(Err(unserved)) => {
                body::discard(body, self.limits.body);
                return Err(unserved.into());
            }
            Err(_) => return Err(Unserved::OutOfTime.into()),
        };
        let body = if body.bytes.len() > route.large { HeldBody::Apart(Arc::new(body)) } else { HeldBody::Here(body) };
        let mut answers = Answers::default();
        for _ in 0..ROUNDS {
            let (questions, uid) = match self.decided(route, &body, &answers, deadline).await {
                Err(Refusal { unserved: Unserved::Unanswered(questions), uid }) => (questions, uid),
                decided => return decided,
            };
            let time = Time { until: time_for_questions(deadline), ..time };
            let asked = match self.waiting.enter(body.whole(), &questions) {
                Ok(_place) => self.questions.answer(questions, &mut answers, time).await,
                Err(unserved) => Err(unserved),
            };
            if let Err(unserved) = asked {
                // What is known may be enough: for a refusal, which no question that fails takes back, or for plugins that only report.
                answers.close();
                return match self.decided(route, &body, &answers, deadline).await {
                    Err(Refusal { unserved: Unserved::Unanswered(_), .. }) => Err(Refusal { unserved, uid }),
                    decided => decided,
                };
            }
        }
        answers.close();
        self.decided(route, &body, &answers, deadline).await
    }

    /// Decides with what is known so far.
    async fn decided(
        &self,
        route: &Route,
        body: &HeldBody,
        answers: &Answers,
        deadline: Instant,
    ) -> Result<Answered, Refusal> {
        let body = match body {
            HeldBody::Here(body) => body,
            HeldBody::Apart(body) => {
                return self.decide_apart(route, Arc::clone(body), answers.clone(), deadline).await;
            }
        };
        let _turn = self.turn(deadline).await?;
        let answered = self.decision(route).decide(&body.bytes, answers, deadline)?;
        // The client is gone, and a verdict in the log would say otherwise.
        if Instant::now() > deadline {
            return Err(Refusal { unserved: Unserved::OutOfTime, uid: record::uid_of(&body.bytes) });
        }
        Ok(answered)
    }

    /// What can be refused without reading the body.
    fn acceptable<B: Body>(&self, parts: &Parts, body: &B) -> Result<(), Unserved> {
        require_json(&parts.headers)?;
        if body.size_hint().lower() > self.limits.body as u64 {
            return Err(Unserved::TooLarge(self.limits.body));
        }
        if !self.readiness.can_serve() {
            return Err(Unserved::NotReady(self.readiness.missing()));
        }
        Ok(())
    }

    /// Waits a little for a free place: a short burst is better served late than refused.
    async fn turn(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, Unserved> {
        if let Ok(turn) = self.turns.try_acquire() {
            return Ok(turn);
        }
        let longest_wait = self.limits.queue.min(deadline.saturating_duration_since(Instant::now()));
        match timeout(longest_wait, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Unserved::Overloaded),
        }
    }

    fn decision(&self, route: &Route) -> Decision<W> {
        Decision {
            registry: Arc::clone(&self.registry),
            snapshot: Arc::clone(&self.snapshot),
            target: route.target,
            panics: self.metrics.panics.clone(),
        }
    }

    /// Decides on a large body in a thread that serves no other reviews, so that it can delay only others of its kind.
    async fn decide_apart(
        &self,
        route: &Route,
        body: Arc<WholeBody>,
        answers: Answers,
        deadline: Instant,
    ) -> Result<Answered, Refusal> {
        let waiting = timeout_at(deadline.into(), Arc::clone(&self.large).acquire_owned());
        let Ok(Ok(turn)) = waiting.await else { return Err(Unserved::Overloaded.into()) };
        let decision = self.decision(route);
        let (decided, mut answer) = oneshot::channel::<Arc<Result<Answered, Refusal>>>();
        let (copied, is_copied) = mpsc::channel::<()>();
        // A thread of its own, which gives its memory back when it ends: the allocator caches in each thread what that thread frees, and
        // gives back no more than the top of a heap. So nothing of what was taken here is freed in another thread.
        let deciding = thread::Builder::new().name("large".to_owned()).spawn(move || {
            let _turn = turn;
            // The body and its share of the memory go when the decision has ended, not when the client has gone.
            let body = body;
            let answer = Arc::new(decision.decide(&body.bytes, &answers, deadline));
            if decided.send(Arc::clone(&answer)).is_ok() {
                let _ = is_copied.recv();
            }
        });
        if let Err(error) = deciding {
            tracing::warn!(%error, "There is no thread for a large body");
            return Err(Unserved::Overloaded.into());
        }
        match timeout_at(deadline.into(), &mut answer).await {
            Ok(Ok(answer)) => {
                let copy = (*answer).clone();
                drop(answer);
                drop(copied);
                copy
            }
            Ok(Err(_ended)) => Err(Unserved::Fault.into()),
            Err(_) => Err(Unserved::OutOfTime.into()),
        }
    }
}

/// How long questions may take: a little time is left for the decision without their answers.
fn time_for_questions(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) * 9 / 10
}

fn require_json(headers: &HeaderMap) -> Result<(), Unserved> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Err(Unserved::ContentType(String::new()));
    };
    if value == "application/json" {
        return Ok(());
    }
    let text = value.to_str().unwrap_or("(not readable)");
    let media_type = text.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Unserved::ContentType(reply::shortened(text)))
    }
}

/// Counts for as long as it lives, also when the client goes away in the middle.
struct CountedGauge<'a>(&'a Gauge);

impl<'a> CountedGauge<'a> {
    fn up(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for CountedGauge<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
