//! Endpoints that do one thing each, so that the server's part can be seen.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use admission::conversion::{Conversion, Hub, Spoke};
use admission::patch::{PatchBuilder, PatchError};
use admission::question::{Access, Question};
use admission::registry::{MatchPolicy, Registry, Resource, Rule};
use admission::{Defaulting, Denial, Mutating, Reason, Request, Unserved, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longer than any test holds a review.
const LONGEST: Duration = Duration::from_secs(20);

/// Holds the endpoint `wait` until the test lets it go.
#[derive(Debug, Clone, Default)]
pub struct Latch {
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    waiting: usize,
    most: usize,
}

impl Latch {
    pub fn open(&self) {
        self.state.0.lock().unwrap().is_open = true;
        self.state.1.notify_all();
    }

    fn wait(&self) {
        let mut state = self.state.0.lock().unwrap();
        state.waiting += 1;
        state.most = state.most.max(state.waiting);
        if !state.is_open {
            // A test that failed before it opened the latch must still end.
            state = self.state.1.wait_timeout_while(state, LONGEST, |state| !state.is_open).unwrap().0;
        }
        state.waiting -= 1;
    }

    /// Returns when a review is being held.
    pub async fn held(&self) {
        self.held_at_once(1).await;
    }

    /// Returns when so many reviews are being held.
    pub async fn held_at_once(&self, reviews: usize) {
        while self.state.0.lock().unwrap().waiting < reviews {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The most reviews that were held at one time.
    pub fn most_at_once(&self) -> usize {
        self.state.0.lock().unwrap().most
    }
}

#[derive(Debug, Clone, Default)]
pub struct ToySnapshot {
    pub latch: Latch,
}

type Decide = fn(&Request<'_, Value>, &ToySnapshot) -> Result<Verdict, Unserved>;

struct Toy(Decide);

impl Mutating<ToySnapshot> for Toy {
    type Object<'a> = Value;

    fn mutate(&self, request: &Request<'_, Value>, snapshot: &ToySnapshot) -> Result<Verdict, Unserved> {
        (self.0)(request, snapshot)
    }
}

/// The strict object: `replicas` must be a number.
#[derive(Deserialize)]
struct Strict {
    #[serde(rename = "replicas")]
    _replicas: u32,
}

struct Decoding;

impl Mutating<ToySnapshot> for Decoding {
    type Object<'a> = Strict;

    fn mutate(&self, _: &Request<'_, Strict>, _: &ToySnapshot) -> Result<Verdict, Unserved> {
        Ok(Verdict::allow(Reason::ALLOWED))
    }
}

fn rule(kind: &'static str) -> Rule {
    let resource = |kind| Resource { group: "toy.example", version: "v1", resource: "*", kind };
    Rule { match_policy: MatchPolicy::Exact, ..Rule::new(kind, vec![resource(kind), resource("Toy")].leak(), &[]) }
}

/// The path of a toy.
pub fn path(kind: &'static str) -> String {
    rule(kind).path(admission::registry::Phase::Mutating)
}

#[derive(Deserialize, Serialize)]
struct Old {
    size: u32,
}

#[derive(Deserialize, Serialize)]
struct New {
    length: u32,
}

impl Hub for New {
    const VERSION: &'static str = "v2";
}

impl Spoke<New> for Old {
    const VERSION: &'static str = "v1";

    fn into_hub(self) -> Result<New, String> {
        Ok(New { length: self.size })
    }

    fn from_hub(hub: New) -> Result<Self, String> {
        Ok(Self { size: hub.length })
    }
}

fn patch(request: &Request<'_, Value>) -> Verdict {
    let mut patch = PatchBuilder::new(request.object.as_ref().unwrap());
    patch.set("/spec/added", json!(true)).unwrap();
    Verdict::patch(Reason::DEFAULTED, patch.finish())
}

/// Decodes its object as a whole, and holds whatever decides.
struct Whole;

impl Defaulting<ToySnapshot> for Whole {
    fn default(&self, _: &Request<'_, Value>, _: &mut PatchBuilder, snapshot: &ToySnapshot) -> Result<(), PatchError> {
        snapshot.latch.wait();
        Ok(())
    }
}

/// Every toy.
pub fn registry() -> Registry<ToySnapshot> {
    Registry::default()
        .mutating(rule("allow"), Toy(|_, _| Ok(Verdict::allow(Reason::ALLOWED))))
        .mutating(
            rule("deny"),
            Toy(|request, _| Ok(Verdict::deny(Reason::INVALID, Denial::forbidden(request, "not today")))),
        )
        .mutating(rule("patch"), Toy(|request, _| Ok(patch(request))))
        .mutating(rule("panic"), Toy(|request, _| panic!("the toy broke on {}", request.name)))
        .mutating(
            rule("asks"),
            Toy(|request, _| {
                let access = Access { user: "kim".to_owned(), ..Access::default() };
                request.ask(Question::Access(access)).map(|_| Verdict::allow(Reason::ALLOWED))
            }),
        )
        .mutating(rule("unknown"), Toy(|_, _| Err(Unserved::NamespaceUnknown("shop".to_owned()))))
        .mutating(rule("labels"), Toy(|_, _| Err(Unserved::NamespaceLabels("shop".to_owned()))))
        .mutating(
            rule("wait"),
            Toy(|_, snapshot| {
                // A worker that only blocks may be the one that polls for I/O; this hands its duties on.
                tokio::task::block_in_place(|| snapshot.latch.wait());
                Ok(Verdict::allow(Reason::ALLOWED))
            }),
        )
        .mutating(rule("strict"), Decoding)
        .defaulting(rule("whole"), Whole)
        .aware_of(Registry::default().mutating(rule("off"), Toy(|_, _| Ok(Verdict::allow(Reason::ALLOWED)))))
        .converting(Conversion::new::<New>("toy.example", "Ruler").spoke::<New, Old>())
}
