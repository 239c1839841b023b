//! The watches of `LimitRange`s and `ResourceQuota`s, which are there only while there are sets.

use std::future::pending;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt as _};

use crate::watch::follow::{EventStream, Follower, WatchStep, events};
use crate::watch::partial::Partial;
use crate::watch::read_model::watch_config;
use crate::watch::ungated::UngatedWatches;
use engine::findings::namespace_limits::{Left, NamespaceLimits, QuotaScopes, QuotaUse};
use engine::limitrange::api::RangeSpec;

/// A `LimitRange` as it is watched.
type Range = Partial<LimitRange, RangeSpec>;
/// A quota as it is watched.
type Quota = Partial<ResourceQuota, QuotaScopes, QuotaUse>;

type NamespacedName = (String, String);

/// Both watches.
pub struct LimitsWatch {
    ranges: Watch<Range>,
    quotas: Watch<Quota>,
}

/// What of one of them is next.
pub enum Read {
    /// Of ranges.
    Range(Result<Event<Range>, watcher::Error>),
    /// Of quotas.
    Quota(Result<Event<Quota>, watcher::Error>),
}

/// A watch, and whether its list was complete once, or could not be had.
struct Watch<K> {
    events: EventStream<K>,
    follower: Follower<NamespacedName>,
    is_answered: bool,
}

impl<K: Resource<DynamicType = ()>> Watch<K> {
    fn new(events: EventStream<K>) -> Self {
        Self { events, follower: Follower::default(), is_answered: false }
    }

    /// Takes an event in; returns whether anything is another.
    fn take(
        &mut self,
        event: Result<Event<K>, watcher::Error>,
        mut put: impl FnMut(&str, &str, Option<K>) -> bool,
    ) -> bool {
        self.is_answered |= matches!(event, Err(_) | Ok(Event::InitDone));
        let key = |object: &K| (object.namespace().unwrap_or_default(), object.name_any());
        let mut is_other = false;
        self.follower.follow(event, key, |step| {
            is_other |= match step {
                WatchStep::Is(object) => {
                    let (namespace, name) = key(&object);
                    put(&namespace, &name, Some(object))
                }
                WatchStep::Gone((namespace, name)) => put(&namespace, &name, None),
                WatchStep::Listed => false,
            };
        });
        is_other
    }
}

impl LimitsWatch {
    /// Begins to watch.
    pub fn new(ranges: Api<Range>, quotas: Api<Quota>, watches: &UngatedWatches) -> Self {
        let ranges = watches.counting("limitranges".into(), events(ranges, watch_config()));
        let quotas = watches.counting("resourcequotas".into(), events(quotas, watch_config()));
        Self { ranges: Watch::new(Box::pin(ranges)), quotas: Watch::new(Box::pin(quotas)) }
    }

    /// Whether everything that can be read has been read once. What may not be watched, by an older role, limits nothing.
    pub const fn is_answered(&self) -> bool {
        self.ranges.is_answered && self.quotas.is_answered
    }

    /// The next event.
    pub async fn next(&mut self) -> Read {
        tokio::select! {
            Some(event) = self.ranges.events.next() => Read::Range(event),
            Some(event) = self.quotas.events.next() => Read::Quota(event),
            else => pending().await,
        }
    }

    /// Takes an event in; returns whether anything is another.
    pub fn take(&mut self, event: Read, limits: &mut NamespaceLimits) -> bool {
        match event {
            Read::Range(event) => self.ranges.take(event, |namespace, name, range| {
                limits.range(namespace, name, range.and_then(|range| range.spec))
            }),
            Read::Quota(event) => self.quotas.take(event, |namespace, name, quota| {
                let left = quota.and_then(|quota| Left::of(quota.spec.as_ref(), quota.status.as_ref()));
                limits.quota(namespace, name, left)
            }),
        }
    }
}
