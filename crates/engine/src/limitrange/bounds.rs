//! Least, most and ratio: what may be asked for, and the messages of `LimitRanger` where it is not kept.

use std::collections::BTreeSet;

use admission::format::Quantity;

use crate::plugins::amounts::Amounts;
use crate::plugins::work;

/// The greatest amount that can be compared in thousandths (`MaxMilliValue` of k8s.io/apimachinery/pkg/api/resource).
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// Messages in one refusal: a pod may have thousands of containers.
const SAID: usize = 64;

/// What something asks for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Requests.
    pub requests: Amounts,
    /// Limits.
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

/// What is wrong, each message once.
#[derive(Debug, Default)]
pub struct Faults {
    said: Vec<String>,
    known: BTreeSet<String>,
    is_cut: bool,
}

impl Faults {
    fn check(&mut self, found: Result<(), String>) {
        let Err(message) = found else { return };
        if self.known.contains(&message) {
            return;
        }
        if self.said.len() >= SAID {
            self.is_cut = true;
            return;
        }
        self.known.insert(message.clone());
        self.said.push(message);
    }

    /// Whether there are more messages than are kept.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// All messages in one (`NewAggregate` of k8s.io/apimachinery/pkg/util/errors); none where nothing is wrong.
    pub fn text(&self) -> Option<String> {
        match self.said.as_slice() {
            [] => None,
            [one] if !self.is_cut => Some(one.clone()),
            all => Some(format!("[{}{}]", all.join(", "), if self.is_cut { ", and more" } else { "" })),
        }
    }
}

impl Bounds {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        self.min.is_empty() && self.max.is_empty() && self.ratio.is_empty()
    }

    /// Judges a container or a pod, which `kind` names.
    pub fn check(&self, kind: &str, usage: &Usage, faults: &mut Faults) {
        work::done(self.min.len() + self.max.len() + self.ratio.len());
        for (name, least) in &self.min {
            faults.check(at_least(kind, name, least, usage));
        }
        for (name, most) in &self.max {
            faults.check(at_most(kind, name, most, usage));
        }
        for (name, most) in &self.ratio {
            faults.check(in_ratio(kind, name, most, usage));
        }
    }

    /// Judges a claim, of which only requests count.
    pub fn check_claim(&self, kind: &str, requests: &Amounts, faults: &mut Faults) {
        let usage = Usage { requests: requests.clone(), ..Usage::default() };
        for (name, least) in &self.min {
            faults.check(at_least(kind, name, least, &usage));
        }
        for (name, most) in &self.max {
            faults.check(request_at_most(kind, name, most, requests));
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

/// `minConstraint`.
fn at_least(kind: &str, name: &str, least: &Quantity, usage: &Usage) -> Result<(), String> {
    let (request, limit) = (usage.requests.get(name), usage.limits.get(name));
    let [of_request, of_limit, bound] = compared(request, limit, least);
    let text = format_args!("minimum {name} usage per {kind} is {least}");
    match (request, limit) {
        (None, _) => Err(format!("{text}.  No request is specified")),
        (Some(request), _) if of_request < bound => Err(format!("{text}, but request is {request}")),
        (_, Some(limit)) if of_limit < bound => Err(format!("{text}, but limit is {limit}")),
        _ => Ok(()),
    }
}

/// `maxConstraint`.
fn at_most(kind: &str, name: &str, most: &Quantity, usage: &Usage) -> Result<(), String> {
    let (request, limit) = (usage.requests.get(name), usage.limits.get(name));
    let [of_request, of_limit, bound] = compared(request, limit, most);
    let text = format_args!("maximum {name} usage per {kind} is {most}");
    match (request, limit) {
        (_, None) => Err(format!("{text}.  No limit is specified")),
        (_, Some(limit)) if of_limit > bound => Err(format!("{text}, but limit is {limit}")),
        (Some(request), _) if of_request > bound => Err(format!("{text}, but request is {request}")),
        _ => Ok(()),
    }
}

/// `maxRequestConstraint`.
fn request_at_most(kind: &str, name: &str, most: &Quantity, requests: &Amounts) -> Result<(), String> {
    let request = requests.get(name);
    let [of_request, _, bound] = compared(request, None, most);
    let text = format_args!("maximum {name} usage per {kind} is {most}");
    match request {
        None => Err(format!("{text}.  No request is specified")),
        Some(request) if of_request > bound => Err(format!("{text}, but request is {request}")),
        Some(_) => Ok(()),
    }
}

/// `limitRequestRatioConstraint`.
#[allow(clippy::cast_precision_loss, reason = "as the API server divides")]
fn in_ratio(kind: &str, name: &str, most: &Quantity, usage: &Usage) -> Result<(), String> {
    let (request, limit) = (usage.requests.get(name), usage.limits.get(name));
    let [of_request, of_limit, _] = compared(request, limit, most);
    let text = format_args!("{name} max limit to request ratio per {kind} is {most}");
    if of_request == 0 {
        return Err(format!("{text}, but no request is specified or request is 0"));
    }
    if of_limit == 0 {
        return Err(format!("{text}, but no limit is specified or limit is 0"));
    }
    let ratio = of_limit as f64 / of_request as f64;
    let (found, bound) = if most.value() <= MAX_MILLI_VALUE {
        (ratio * 1000.0, most.milli_value() as f64)
    } else {
        (ratio, most.value() as f64)
    };
    if found > bound { Err(format!("{text}, but provided ratio is {ratio:.6}")) } else { Ok(()) }
}
