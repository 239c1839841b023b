//! The sections of plugins whose decisions ask: for rights, or for tokens.

use admission::field::{Error, ErrorList, Path};
use admission::format::names::{dns1123_label, dns1123_subdomain};
use admission::registry::FailurePolicy;

use super::Settings;
use super::sections::bounded;
use crate::plugins::api::{EVENT_LIMITS, PluginSpec};
use crate::plugins::event_rate_limit::{BucketType, EventRateLimit, Limit};
use crate::plugins::owner_references::OwnerReferences;
use crate::plugins::{Plugin, shortened};

/// Limits of one object: each costs a lookup for every event.
const MAX_LIMITS: usize = 16;
/// Buckets of a limit. The API server has no maximum; here one takes up to 150 bytes, in a process of 256 MiB.
const MAX_BUCKETS: u32 = 65_536;
/// Buckets where nothing is given, as in the API server.
const BUCKETS: u32 = 4096;
/// Most seconds that the API server waits for a decision on an event, a binding or a node.
const SHORT_TIMEOUT: u8 = 2;

/// How the API server calls. Changes of owners are judged for every kind of object, events are the busiest of writes, the scheduler waits
/// for bindings, and kubelets for their nodes: none of them fails because no replica answers, unless, for owners, the author of the object
/// chooses so.
pub(super) fn calling(
    spec: &PluginSpec,
    (policy, seconds): (Option<FailurePolicy>, Option<u8>),
    path: &Path,
    errors: &mut ErrorList,
) -> (Option<FailurePolicy>, Option<u8>) {
    match Plugin::named(&spec.plugin) {
        Some(Plugin::OwnerReferencesPermissionEnforcement | Plugin::StorageObjectInUseProtection) => {
            (policy.or(Some(FailurePolicy::Ignore)), seconds)
        }
        Some(plugin) if plugin.never_fails() => {
            let (what, waiting) = match plugin {
                Plugin::EventRateLimit => {
                    ("events are the busiest of writes, and none may depend on Outrider", "every event")
                }
                Plugin::PodTopologyLabels => ("no pod may stay without a node for lack of Outrider", "the scheduler"),
                _ => ("no node may stay out of the cluster for lack of Outrider", "a kubelet"),
            };
            if policy == Some(FailurePolicy::Fail) {
                errors.push(Error::invalid(&path.child("failurePolicy"), "Fail", format!("must be Ignore: {what}")));
            }
            if let Some(seconds) = seconds.filter(|seconds| *seconds > SHORT_TIMEOUT) {
                let detail = format!("must be 1 or {SHORT_TIMEOUT}: {waiting} would wait for as long");
                errors.push(Error::invalid(&path.child("timeoutSeconds"), i64::from(seconds), detail));
            }
            (
                Some(FailurePolicy::Ignore),
                seconds.or_else(|| Some(if plugin.is_of_nodes() { SHORT_TIMEOUT } else { 1 })),
            )
        }
        _ => (policy, seconds),
    }
}

pub(super) fn owner_references(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let resources = spec.owner_references_permission_enforcement.clone().unwrap_or_default().resources;
    bounded(&resources, &path.child("resources"), errors, |text| {
        let (resource, group) = text.split_once('.').unwrap_or((text, "group"));
        let is_one = dns1123_label(resource).is_empty() && dns1123_subdomain(group).is_empty();
        (!is_one).then(|| {
            "must be a resource such as pods, or a resource with its group such as deployments.apps".to_owned()
        })
    });
    Settings::OwnerReferences(OwnerReferences { resources: resources.into_iter().collect() })
}

/// What the API server's own validation says (`ValidateConfiguration` of
/// k8s.io/kubernetes/plugin/pkg/admission/eventratelimit/apis/eventratelimit/validation), and upper bounds.
pub(super) fn event_rate_limit(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.event_rate_limit.clone().unwrap_or_default();
    let path = path.child("limits");
    if section.limits.is_empty() {
        errors.push(Error::required(&path, "at least one limit, such as {type: Namespace, qps: 50, burst: 100}"));
    }
    if section.limits.len() > MAX_LIMITS {
        errors.push(Error::too_many(&path, section.limits.len(), MAX_LIMITS));
    }
    let mut limits = Vec::new();
    for (index, limit) in section.limits.iter().take(MAX_LIMITS).enumerate() {
        let path = path.index(index);
        let type_ = BucketType::named(&limit.type_);
        if type_.is_none() {
            errors.push(Error::not_supported(&path.child("type"), shortened(&limit.type_), &EVENT_LIMITS));
        }
        let mut positive = |field: &'static str, value: i64| {
            let found = u32::try_from(value).ok().filter(|value| (1..=i32::MAX.unsigned_abs()).contains(value));
            if found.is_none() {
                let detail = if value > 0 { "must be at most 2147483647" } else { "must be positive" };
                errors.push(Error::invalid(&path.child(field), value, detail));
            }
            found.unwrap_or(1)
        };
        let (qps, burst) = (positive("qps", limit.qps), positive("burst", limit.burst));
        let buckets = match limit.cache_size.unwrap_or_default() {
            0 => BUCKETS,
            size => u32::try_from(size).ok().filter(|size| *size <= MAX_BUCKETS).unwrap_or_else(|| {
                let detail = format!("must be between 0 and {MAX_BUCKETS}, inclusive");
                errors.push(Error::invalid(&path.child("cacheSize"), size, detail));
                BUCKETS
            }),
        };
        limits.extend(type_.map(|type_| Limit { type_, qps, burst, buckets }));
    }
    Settings::EventRateLimit(EventRateLimit { limits, covers_events_v1: section.cover_events_v1.unwrap_or_default() })
}
