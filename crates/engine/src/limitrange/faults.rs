//! Bounds that are not kept, in the words of `LimitRanger`.

use std::collections::BTreeSet;
use std::fmt;

use admission::format::Quantity;

use super::api::LimitType;

/// Messages in one refusal: a pod may have thousands of containers.
const SAID: usize = 64;

/// Which bound of a range a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundRule {
    /// The least.
    Min,
    /// The most.
    Max,
    /// The most that a limit may be, as a multiple of the request.
    Ratio,
}

/// How a bound is not kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// There is no request.
    NoRequest,
    /// There is no limit.
    NoLimit,
    /// There is none to divide by, or it is zero.
    ZeroRequest,
    /// There is none to divide, or it is zero.
    ZeroLimit,
    /// The request is wrong.
    Request(String),
    /// The limit is wrong.
    Limit(String),
    /// The ratio is wrong.
    Ratio(String),
}

impl fmt::Display for Lack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRequest => out.write_str(".  No request is specified"),
            Self::NoLimit => out.write_str(".  No limit is specified"),
            Self::ZeroRequest => out.write_str(", but no request is specified or request is 0"),
            Self::ZeroLimit => out.write_str(", but no limit is specified or limit is 0"),
            Self::Request(found) => write!(out, ", but request is {found}"),
            Self::Limit(found) => write!(out, ", but limit is {found}"),
            Self::Ratio(found) => write!(out, ", but provided ratio is {found}"),
        }
    }
}

/// A bound that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault<'r> {
    /// What is bounded.
    pub rule: BoundRule,
    /// What the bound is of: a container, a pod or a claim.
    pub type_: LimitType,
    /// The resource.
    pub name: &'r str,
    /// How it is not kept.
    pub lack: Lack,
}

impl Fault<'_> {
    fn text(&self, bound: &Quantity) -> String {
        let Self { rule, type_, name, lack } = self;
        let type_ = type_.name();
        match rule {
            BoundRule::Min => format!("minimum {name} usage per {type_} is {bound}{lack}"),
            BoundRule::Max => format!("maximum {name} usage per {type_} is {bound}{lack}"),
            BoundRule::Ratio => format!("{name} max limit to request ratio per {type_} is {bound}{lack}"),
        }
    }
}

/// What is wrong, each message once.
#[derive(Debug, Default)]
pub struct RangeFaults<'r> {
    said: Vec<String>,
    known: BTreeSet<Fault<'r>>,
    by: BTreeSet<&'r str>,
    is_cut: bool,
}

/// Why something is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal<'r> {
    /// All messages in one (`NewAggregate` of k8s.io/apimachinery/pkg/util/errors).
    pub text: String,
    /// Names of the ranges whose bounds are not kept.
    pub by: BTreeSet<&'r str>,
}

impl<'r> RangeFaults<'r> {
    /// Notes that a bound of a range is not kept.
    pub fn note(&mut self, fault: Fault<'r>, bound: &Quantity, by: &'r str) {
        if self.known.contains(&fault) {
            return;
        }
        if self.said.len() >= SAID {
            self.is_cut = true;
            return;
        }
        self.said.push(fault.text(bound));
        self.known.insert(fault);
        self.by.insert(by);
    }

    /// Whether there are more messages than are kept.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The refusal; none where nothing is wrong.
    pub fn into_refusal(self) -> Option<Refusal<'r>> {
        let text = match self.said.as_slice() {
            [] => return None,
            [one] if !self.is_cut => one.clone(),
            all => format!("[{}{}]", all.join(", "), if self.is_cut { ", and more" } else { "" }),
        };
        Some(Refusal { text, by: self.by })
    }
}
