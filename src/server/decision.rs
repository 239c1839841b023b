//! A decision on a body: pure, and safe from its own panics.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use admission::registry::Entry;
use admission::{Answer, Answers, Deadline, Registry, Unserved};
use arc_swap::ArcSwap;
use prometheus_client::metrics::counter::Counter;

use super::record;

/// What a path is for.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The endpoint's place in the registry.
    Endpoint(usize),
    Conversion,
}

/// A request that got no verdict, with its uid if that could be read.
#[derive(Clone)]
pub(super) struct Refusal {
    pub(super) unserved: Unserved,
    pub(super) uid: Option<String>,
}

impl From<Unserved> for Refusal {
    fn from(unserved: Unserved) -> Self {
        Self { unserved, uid: None }
    }
}

/// What a request is answered with.
#[derive(Clone)]
pub(super) enum Answered {
    Review(Answer),
    Conversion(Vec<u8>),
}

impl Answered {
    /// The body of the reply, once.
    pub(super) fn take_body(&mut self) -> Vec<u8> {
        match self {
            Self::Review(answer) => mem::take(&mut answer.body),
            Self::Conversion(body) => mem::take(body),
        }
    }

    pub(super) fn uid(&self) -> Option<&str> {
        match self {
            Self::Review(answer) => Some(&answer.summary.uid),
            Self::Conversion(_) => None,
        }
    }
}

/// What a decision is made with; it can be made in any thread.
pub(super) struct Decision<W> {
    pub(super) registry: Arc<Registry<W>>,
    pub(super) snapshot: Arc<ArcSwap<W>>,
    pub(super) target: Target,
    pub(super) panics: Counter,
}

impl<W: Send + Sync + 'static> Decision<W> {
    pub(super) fn decide(&self, body: &[u8], answers: &Answers, deadline: Instant) -> Result<Answered, Refusal> {
        let is_over = || Instant::now() > deadline;
        let limit = Deadline::until(&is_over);
        // What the closure leaves behind is not read again: the snapshot is immutable, the body is dropped.
        let caught = catch_unwind(AssertUnwindSafe(|| match self.target {
            Target::Conversion => self.registry.convert_within(body, limit).map(Answered::Conversion),
            Target::Endpoint(index) => {
                let entry: &Entry<W> = self.registry.entries().get(index).ok_or(Unserved::Fault)?;
                let snapshot = self.snapshot.load();
                entry.endpoint.answer_with(body, &snapshot, answers, limit).map(Answered::Review)
            }
        }));
        let unserved = match caught {
            Ok(Ok(answered)) => return Ok(answered),
            Ok(Err(unserved)) => unserved,
            Err(_panic) => {
                self.panics.inc();
                Unserved::Fault
            }
        };
        Err(Refusal { unserved, uid: record::uid_of(body) })
    }
}
