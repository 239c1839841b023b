//! Least, most and ratio: what may be asked for, and the messages of `LimitRanger` where it is not kept.

use std::collections::BTreeMap;

use admission::format::Quantity;

use super::api::LimitType;
use super::faults::{BoundRule, Fault, Lack, RangeFaults};
use crate::plugins::amounts::Amounts;
use crate::plugins::{shortened, work};

/// The greatest amount that can be compared in thousandths (`MaxMilliValue` of k8s.io/apimachinery/pkg/api/resource).
pub const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// What something asks for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Requests by resource; one that is not named is not requested.
    pub requests: Amounts,
    /// Limits by resource; one that is not named has no limit.
    pub limits: Amounts,
}

/// What may be asked for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub min: Amounts,
    /// The most.
    pub max: Amounts,
    /// The most that a limit may be, as a multiple of the request.
    pub ratio: Amounts,
}

impl Bounds {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        self.min.is_empty() && self.max.is_empty() && self.ratio.is_empty()
    }
}

/// By resource the strictest amount, with the first range by name that has it.
type Strict<'r> = BTreeMap<&'r str, (&'r Quantity, &'r str)>;

/// What may be asked for by several ranges: of each resource the strictest bound. What is judged is compared with each resource once,
/// however many ranges name it.
#[derive(Debug, Default)]
pub struct Strictest<'r> {
    min: Strict<'r>,
    max: Strict<'r>,
    ratio: Strict<'r>,
}

impl<'r> Strictest<'r> {
    /// Adds the bounds of a range.
    pub fn add(&mut self, bounds: &'r Bounds, by: &'r str) {
        type IsStricter = fn(&Quantity, &Quantity) -> bool;
        let lists: [(&mut Strict<'r>, &'r Amounts, IsStricter); 3] = [
            (&mut self.min, &bounds.min, |new, known| new > known),
            (&mut self.max, &bounds.max, |new, known| new < known),
            (&mut self.ratio, &bounds.ratio, |new, known| new < known),
        ];
        for (known, new, is_stricter) in lists {
            work::done(new.len());
            for (name, amount) in new {
                let strictest = known.entry(name).or_insert((amount, by));
                if is_stricter(amount, strictest.0) {
                    *strictest = (amount, by);
                }
            }
        }
    }

    /// Whether the resource has a bound.
    pub fn is_about(&self, resource: &str) -> bool {
        [&self.min, &self.max, &self.ratio].into_iter().any(|bounds| bounds.contains_key(resource))
    }

    /// Judges what a container, a pod or a claim asks for. Of claims only requests count.
    pub fn check(&self, type_: LimitType, usage: &Usage, faults: &mut RangeFaults<'r>) {
        type Check = fn(&Quantity, Option<&Quantity>, Option<&Quantity>) -> Option<Lack>;
        let is_claim = type_ == LimitType::PersistentVolumeClaim;
        let most: Check = if is_claim { request_at_most } else { at_most };
        let mut rules: Vec<(BoundRule, &Strict<'r>, Check)> =
            vec![(BoundRule::Min, &self.min, at_least), (BoundRule::Max, &self.max, most)];
        if !is_claim {
            rules.push((BoundRule::Ratio, &self.ratio, in_ratio));
        }
        for (rule, bounds, check) in rules {
            for (name, (bound, by)) in bounds {
                if faults.is_cut() {
                    return;
                }
                work::done(1);
                if let Some(lack) = check(bound, usage.requests.get(*name), usage.limits.get(*name)) {
                    faults.note(Fault { rule, type_, name, lack }, bound, by);
                }
            }
        }
    }
}

/// Request, limit and bound as numbers that can be compared (`requestLimitEnforcedValues`).
fn compared(request: Option<&Quantity>, limit: Option<&Quantity>, bound: &Quantity) -> [i64; 3] {
    let values = [request, limit, Some(bound)];
    let whole = values.map(|one| one.map_or(0, Quantity::value));
    if whole.iter().all(|value| *value <= MAX_MILLI_VALUE) {
        values.map(|one| one.map_or(0, Quantity::milli_value))
    } else {
        whole
    }
}

/// An amount in a message: the author of a pod may write as many digits as fit into it.
fn said(amount: &Quantity) -> String {
    shortened(&amount.to_string()).to_owned()
}

/// `minConstraint`.
fn at_least(least: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<Lack> {
    let [of_request, of_limit, bound] = compared(request, limit, least);
    match (request, limit) {
        (None, _) => Some(Lack::NoRequest),
        (Some(request), _) if of_request < bound => Some(Lack::Request(said(request))),
        (_, Some(limit)) if of_limit < bound => Some(Lack::Limit(said(limit))),
        _ => None,
    }
}

/// `maxConstraint`.
fn at_most(most: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<Lack> {
    let [of_request, of_limit, bound] = compared(request, limit, most);
    match (request, limit) {
        (_, None) => Some(Lack::NoLimit),
        (_, Some(limit)) if of_limit > bound => Some(Lack::Limit(said(limit))),
        (Some(request), _) if of_request > bound => Some(Lack::Request(said(request))),
        _ => None,
    }
}

/// `maxRequestConstraint`.
fn request_at_most(most: &Quantity, request: Option<&Quantity>, _: Option<&Quantity>) -> Option<Lack> {
    let [of_request, _, bound] = compared(request, None, most);
    match request {
        None => Some(Lack::NoRequest),
        Some(request) if of_request > bound => Some(Lack::Request(said(request))),
        Some(_) => None,
    }
}

/// `limitRequestRatioConstraint`.
#[allow(clippy::cast_precision_loss, reason = "as the API server divides")]
fn in_ratio(most: &Quantity, request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<Lack> {
    let [of_request, of_limit, _] = compared(request, limit, most);
    if of_request == 0 {
        return Some(Lack::ZeroRequest);
    }
    if of_limit == 0 {
        return Some(Lack::ZeroLimit);
    }
    let ratio = of_limit as f64 / of_request as f64;
    let (found, bound) = if most.value() <= MAX_MILLI_VALUE {
        (ratio * 1000.0, most.milli_value() as f64)
    } else {
        (ratio, most.value() as f64)
    };
    (found > bound).then(|| Lack::Ratio(format!("{ratio:.6}")))
}
