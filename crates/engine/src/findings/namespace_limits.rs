//! `LimitRange`s and `ResourceQuota`s of namespaces, and which containers of a set they keep out.

use std::collections::{BTreeMap, HashMap};

use admission::bounded::ellipsis;
use admission::format::Quantity;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::limitrange::api::{ClusterLimitRange, LimitType, RangeSpec, WrittenAmounts};
use crate::limitrange::bounds::{Strictest, Usage};
use crate::limitrange::compiled::CompiledRange;
use crate::limitrange::faults::RangeFaults;
use crate::plugins::amounts::Amounts;
use crate::sidecarset::api::Metadata;
use crate::sidecarset::compiled::Piece;

/// Objects of one kind that are kept of one namespace. There are one or two, and each costs every set that reaches there.
const KEPT: usize = 8;
/// Characters of what a range says.
const LONGEST: usize = 256;

/// Whether requests or limits are counted.
#[derive(Clone, Copy)]
enum Side {
    Requests,
    Limits,
}

/// What quotas count of containers, of which resource and side, and whether each container then has to have an amount
/// (`validationSet` of k8s.io/kubernetes/pkg/quota/v1/evaluator/core).
const COUNTED: [(&str, &str, Side, bool); 9] = [
    ("cpu", "cpu", Side::Requests, true),
    ("memory", "memory", Side::Requests, true),
    ("requests.cpu", "cpu", Side::Requests, true),
    ("requests.memory", "memory", Side::Requests, true),
    ("limits.cpu", "cpu", Side::Limits, true),
    ("limits.memory", "memory", Side::Limits, true),
    ("ephemeral-storage", "ephemeral-storage", Side::Requests, false),
    ("requests.ephemeral-storage", "ephemeral-storage", Side::Requests, false),
    ("limits.ephemeral-storage", "ephemeral-storage", Side::Limits, false),
];

/// What a quota has of each resource, in thousandths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left([Option<OfResource>; COUNTED.len()]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OfResource {
    left: i64,
    hard: i64,
}

/// What new pods find of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// What is left of it.
    Left,
    /// Perhaps all of it: other pods end.
    Whole,
}

/// What is read of the spec of a quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QuotaScopes {
    scopes: Option<Vec<IgnoredAny>>,
    scope_selector: Option<IgnoredAny>,
}

/// What is read of the status of a quota.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct QuotaUse {
    hard: Option<WrittenAmounts>,
    used: Option<WrittenAmounts>,
}

impl Left {
    /// What is left; none of a quota that is not about every pod, or about nothing that containers ask for.
    pub fn of(scopes: Option<&QuotaScopes>, status: Option<&QuotaUse>) -> Option<Self> {
        let is_scoped = |spec: &QuotaScopes| {
            spec.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty()) || spec.scope_selector.is_some()
        };
        let status = status.filter(|_| !scopes.is_some_and(is_scoped))?;
        let millis = |list: &Option<WrittenAmounts>, name: &str| {
            let amount = list.as_ref()?.get(name)?.0.parse::<Quantity>().ok()?;
            Some(amount.milli_value())
        };
        let left = COUNTED.map(|(name, ..)| {
            // The API server refuses every pod until the quota has been counted, and that passes.
            let hard = millis(&status.hard, name)?;
            Some(OfResource { left: hard.saturating_sub(millis(&status.used, name)?), hard })
        });
        left.iter().any(Option::is_some).then_some(Self(left))
    }
}

/// A container of a set.
pub struct Part<'s> {
    name: &'s str,
    runs_on: bool,
    // None where it depends on the pod.
    usage: Option<Usage>,
}

impl<'s> Part<'s> {
    /// The container of a piece. `runs_on`: beside the containers of the pod.
    pub fn of(piece: &'s Piece, runs_on: bool) -> Self {
        let needs = &piece.needs;
        let owned = |amounts: &crate::sidecarset::needs::NamedAmounts| -> Amounts {
            amounts.iter().map(|(name, amount)| (name.to_owned(), amount.clone())).collect()
        };
        let usage = || Usage { requests: owned(&needs.requests), limits: owned(&needs.limits) };
        Self { name: &piece.name, runs_on, usage: piece.policy.is_none().then(usage) }
    }
}

/// What limits the pods of a namespace.
#[derive(Debug, Default)]
pub struct Limits {
    ranges: BTreeMap<String, CompiledRange>,
    quotas: BTreeMap<String, Left>,
}

/// What limits the pods of each namespace.
#[derive(Debug, Default)]
pub struct NamespaceLimits {
    known: HashMap<String, Limits>,
}

impl NamespaceLimits {
    /// What limits the pods of this namespace, if anything does.
    pub fn of(&self, namespace: &str) -> Option<&Limits> {
        self.known.get(namespace)
    }

    /// Takes in a range, or that it is gone. Returns whether anything is another.
    pub fn range(&mut self, namespace: &str, name: &str, spec: Option<RangeSpec>) -> bool {
        let compile = |spec| {
            let metadata = Metadata { name: Some(name.to_owned()), ..Metadata::default() };
            let range = CompiledRange::compile(&ClusterLimitRange { metadata, spec, status: None }).ok()?;
            let bounds_containers = range.bounds().iter().any(|(type_, _)| *type_ == LimitType::Container);
            (bounds_containers || range.fills()).then_some(range)
        };
        self.put(namespace, name, spec.and_then(compile), |limits| &mut limits.ranges)
    }

    /// Takes in what is left of a quota, or that it is gone. Returns whether anything is another.
    pub fn quota(&mut self, namespace: &str, name: &str, left: Option<Left>) -> bool {
        self.put(namespace, name, left, |limits| &mut limits.quotas)
    }

    fn put<T: PartialEq>(
        &mut self,
        namespace: &str,
        name: &str,
        new: Option<T>,
        list: impl Fn(&mut Limits) -> &mut BTreeMap<String, T>,
    ) -> bool {
        let Some(new) = new else {
            let Some(limits) = self.known.get_mut(namespace) else { return false };
            let is_other = list(limits).remove(name).is_some();
            if limits.ranges.is_empty() && limits.quotas.is_empty() {
                self.known.remove(namespace);
            }
            return is_other;
        };
        let list = list(self.known.entry(namespace.to_owned()).or_default());
        if list.get(name) == Some(&new) || (list.len() >= KEPT && !list.contains_key(name)) {
            return false;
        }
        list.insert(name.to_owned(), new);
        true
    }
}

impl Limits {
    /// Why pods with these containers are refused in the namespace of this name: by the ranges, and by each quota.
    pub fn refused(&self, namespace: &str, parts: &[Part<'_>], room: Room) -> Vec<String> {
        let known: Vec<(&Part<'_>, Usage)> =
            parts.iter().filter_map(|part| Some((part, self.filled(part.usage.as_ref()?)))).collect();
        let by_quotas = self.quotas.iter().filter_map(|(name, left)| {
            let cause = left.refused(&known, room)?;
            Some(format!("ResourceQuota {name} of namespace {namespace}: {cause}"))
        });
        self.refused_by_ranges(namespace, &known).into_iter().chain(by_quotas).collect()
    }

    /// What a container asks for once the API server has filled in what it leaves open (`mergeContainerResources`).
    fn filled(&self, usage: &Usage) -> Usage {
        let mut filled = usage.clone();
        for range in self.ranges.values() {
            for (own, defaults) in [(&mut filled.requests, &range.requests), (&mut filled.limits, &range.limits)] {
                for (name, amount) in defaults {
                    own.entry(name.clone()).or_insert_with(|| amount.clone());
                }
            }
        }
        filled
    }

    fn refused_by_ranges(&self, namespace: &str, parts: &[(&Part<'_>, Usage)]) -> Option<String> {
        let mut strictest = Strictest::default();
        for (name, range) in &self.ranges {
            let of_containers = range.bounds().iter().filter(|(type_, _)| *type_ == LimitType::Container);
            of_containers.for_each(|(_, bounds)| strictest.add(bounds, name));
        }
        parts.iter().find_map(|(part, usage)| {
            let mut faults = RangeFaults::default();
            strictest.check(LimitType::Container, usage, &mut faults);
            if let Some(refusal) = faults.into_refusal() {
                let by = refusal.by.into_iter().next().unwrap_or_default();
                let why = ellipsis(&refusal.text, LONGEST);
                return Some(format!("LimitRange {by} of namespace {namespace}: container {}: {why}", part.name));
            }
            let (name, request) = usage
                .requests
                .iter()
                .find(|(name, request)| usage.limits.get(*name).is_some_and(|limit| *request > limit))?;
            let by = self.ranges.iter().find(|(_, range)| range.limits.contains_key(name))?.0;
            let why = format!("the default limit of {name} is less than the request of {request}");
            Some(format!("LimitRange {by} of namespace {namespace}: container {}: {why}", part.name))
        })
    }
}

impl Left {
    fn refused(&self, parts: &[(&Part<'_>, Usage)], room: Room) -> Option<String> {
        for ((counted, resource, side, is_demanded), of_resource) in COUNTED.into_iter().zip(self.0) {
            let Some(OfResource { left, hard }) = of_resource else { continue };
            let (most, there_is) = if room == Room::Left { (left, "is left") } else { (hard, "there is") };
            let mut together = 0_i64;
            for (part, usage) in parts {
                let amounts = match side {
                    Side::Requests => &usage.requests,
                    Side::Limits => &usage.limits,
                };
                let name = part.name;
                let Some(amount) = amounts.get(resource).map(Quantity::milli_value) else {
                    if is_demanded {
                        return Some(format!("container {name} has no {counted}, which the quota demands"));
                    }
                    continue;
                };
                let needed = if part.runs_on { together.saturating_add(amount) } else { amount };
                if amount > 0 && needed > most {
                    let others = if needed > amount { " with those before it" } else { "" };
                    return Some(format!("container {name}{others} needs more {counted} than {there_is}"));
                }
                together = if part.runs_on { needed } else { together };
            }
        }
        None
    }
}
