//! `EventRateLimit`: how many events are stored. Only the buckets are named here; their tokens are counted where there is a clock.

use admission::Text;
use admission::question::{RateLimit, Token};
use admission::review::null_as_default;
use serde::Deserialize;

use super::shortened;

/// What has a bucket of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketType {
    /// All events.
    Server,
    /// Those of a namespace.
    Namespace,
    /// Those of a user.
    User,
    /// Those of a source about an object.
    SourceAndObject,
}

impl BucketType {
    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Server => "Server",
            Self::Namespace => "Namespace",
            Self::User => "User",
            Self::SourceAndObject => "SourceAndObject",
        }
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Server, Self::Namespace, Self::User, Self::SourceAndObject].into_iter().find(|one| one.name() == name)
    }
}

/// A limit of events: a bucket of tokens for each server, namespace, user, or source and object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What has a bucket of its own.
    pub type_: BucketType,
    /// Events in a second.
    pub qps: u32,
    /// Events at once.
    pub burst: u32,
    /// Buckets that are kept.
    pub buckets: u32,
}

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventRateLimit {
    /// All limits, which an event must pass.
    pub limits: Vec<Limit>,
    /// Whether events of `events.k8s.io` are limited as well.
    pub covers_events_v1: bool,
}

/// An event of the core group.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct EventFacts<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    source: Source<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    involved_object: InvolvedObject<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Source<'a> {
    #[serde(borrow)]
    component: Text<'a>,
    #[serde(borrow)]
    host: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct InvolvedObject<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    namespace: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    api_version: Text<'a>,
}

admission::only_objects!(EventFacts<'a>, Source<'a>, InvolvedObject<'a>);

impl EventFacts<'_> {
    /// What the API server's own plugin joins, without a separator.
    fn source_and_object(&self) -> String {
        let Self { source, involved_object: object } = self;
        let parts = [
            &source.component,
            &source.host,
            &object.kind,
            &object.namespace,
            &object.name,
            &object.uid,
            &object.api_version,
        ];
        parts.into_iter().map(Text::as_str).collect()
    }
}

impl EventRateLimit {
    /// The tokens that an event takes: one of each limit, also if one of them has none left. `object` names the
    /// `AdmissionPlugin`.
    pub fn tokens(&self, object: &str, event: &EventFacts<'_>, namespace: &str, user: &str) -> Vec<Token> {
        let token = |(index, limit): (usize, &Limit)| {
            let Limit { type_, qps, burst, buckets } = *limit;
            let key = match type_ {
                BucketType::Server => String::new(),
                BucketType::Namespace => namespace.to_owned(),
                BucketType::User => user.to_owned(),
                BucketType::SourceAndObject => event.source_and_object(),
            };
            let buckets = if type_ == BucketType::Server { 1 } else { buckets };
            Token { limit: RateLimit { name: format!("{object}/{index}"), qps, burst, buckets }, key }
        };
        self.limits.iter().enumerate().map(token).collect()
    }

    /// What is said of those tokens that there were none of.
    pub fn refusals<'t>(&self, tokens: &'t [Token], taken: &'t [bool]) -> impl Iterator<Item = String> {
        let refused = self.limits.iter().zip(tokens).zip(taken).filter(|(_, taken)| !**taken);
        refused.map(|((limit, token), _)| {
            let (type_, key) = (limit.type_.name(), shortened(&token.key));
            format!("limit reached on type {type_} for key {key}")
        })
    }
}

/// The refusal of an event for these reasons, each said once (`NewAggregate` of k8s.io/apimachinery/pkg/util/errors).
pub fn refusal(reasons: &[String]) -> String {
    let mut said: Vec<&str> = Vec::new();
    for reason in reasons {
        if !said.contains(&reason.as_str()) {
            said.push(reason);
        }
    }
    match said.as_slice() {
        [one] => too_many(one),
        several => too_many(&format!("[{}]", several.join(", "))),
    }
}

/// As the API server words it (`NewTooManyRequestsError` of k8s.io/apimachinery/pkg/api/errors).
fn too_many(message: &str) -> String {
    format!("Too many requests: {message}")
}
