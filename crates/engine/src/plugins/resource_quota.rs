//! `ResourceQuota` with `limitedResources`: what may be consumed only where a quota covers it. What is used is counted by the API
//! server's own plugin, which runs after every webhook.

mod facts;

use std::collections::{BTreeMap, BTreeSet};

use admission::format::Quantity;
use admission::{Deadline, Unserved};

use super::api::ScopeSpec;
use super::{forbidden, shortened};
pub use facts::QuotaFacts;
use facts::{Counted, Wanted};

/// Resources whose objects are covered, all of the core group.
pub const RESOURCES: [&str; 3] = ["pods", "persistentvolumeclaims", "services"];
/// Scopes of quotas.
pub const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
/// Operators of scopes.
pub const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Names in one message.
const NAMED: usize = 64;

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceQuota {
    /// Consumption without a quota for it is refused. Empty: quotas bound what they name, and nothing else.
    pub limited: Vec<LimitedResource>,
}

/// Consumption that a quota must cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitedResource {
    /// The resource: one of [`RESOURCES`].
    pub resource: String,
    /// Parts of the names of what is consumed, such as `requests.cpu`.
    pub contains: Vec<String>,
    /// Scopes, which limit objects of every resource that has such scopes.
    pub scopes: Vec<QuotaScope>,
}

/// A scope, and what its value must be.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuotaScope {
    /// One of [`SCOPES`].
    pub name: String,
    /// One of [`OPERATORS`].
    pub operator: String,
    /// Values for `In` and `NotIn`.
    pub values: Values,
}

/// Values of a scope, one behind the other: as many texts would take several times as much memory. One with a line break is left out: no
/// object has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Values(Box<str>);

impl Values {
    fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator('\n')
    }
}

impl FromIterator<String> for Values {
    fn from_iter<I: IntoIterator<Item = String>>(values: I) -> Self {
        let mut all = String::new();
        for value in values.into_iter().filter(|value| !value.contains('\n')) {
            all.push_str(&value);
            all.push('\n');
        }
        Self(all.into())
    }
}

/// As Go prints the struct.
impl std::fmt::Display for QuotaScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{} {} [{}]}}", self.name, self.operator, self.values.iter().collect::<Vec<_>>().join(" "))
    }
}

impl From<ScopeSpec> for QuotaScope {
    fn from(ScopeSpec { scope_name: name, operator, values }: ScopeSpec) -> Self {
        Self { name, operator, values: values.into_iter().collect() }
    }
}

impl QuotaScope {
    /// Whether the value of an object, if it has one, is one of those.
    fn allows(&self, value: &str) -> bool {
        let listed = || self.values.iter().any(|one| one == value);
        match self.operator.as_str() {
            "Exists" => !value.is_empty(),
            "DoesNotExist" => value.is_empty(),
            "In" => !value.is_empty() && listed(),
            "NotIn" => value.is_empty() || !listed(),
            _ => false,
        }
    }
}

/// What is read of a `ResourceQuota`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// Its scopes, and those of its selector, each once.
    pub scopes: BTreeSet<QuotaScope>,
    /// What `status.hard` names: a quota that has not been counted yet covers nothing.
    pub hard: BTreeSet<Box<str>>,
}

/// Whether quotas count something of pods, claims or services under this name.
pub fn is_counted(hard: &str) -> bool {
    RESOURCES.iter().any(|resource| facts::is_counted(resource, hard))
}

/// What an object consumes.
type Consumption = BTreeMap<String, Quantity>;

/// An object, and what it was: what quotas count of both is worked out once for all plugins and quotas.
pub struct Consumed<'r, 'a> {
    resource: &'r str,
    name: &'r str,
    new: Counted<'r, 'a>,
    old: Option<Counted<'r, 'a>>,
    /// Whether more of anything is consumed than before; none for a new object.
    grown: Option<bool>,
}

impl<'r, 'a> Consumed<'r, 'a> {
    /// The object as it is to be stored and as it is stored, of one of [`RESOURCES`], with its name in messages, for those who limit it.
    pub fn new<'l>(
        resource: &'r str,
        name: &'r str,
        (new, old): (&'r QuotaFacts<'a>, Option<&'r QuotaFacts<'a>>),
        by: impl Iterator<Item = &'l ResourceQuota>,
    ) -> Self {
        let wanted = match old {
            Some(_) => Wanted::All,
            None => Wanted::Containing(by.flat_map(|one| one.parts(resource)).collect()),
        };
        let (new, old) = (Counted::of(new, resource, &wanted), old.map(|old| Counted::of(old, resource, &wanted)));
        let grown = old.as_ref().map(|old| grows(&new.usage, &old.usage));
        Self { resource, name, new, old, grown }
    }
}

impl ResourceQuota {
    /// Whether it may limit objects of the resource.
    pub fn concerns(&self, resource: &str) -> bool {
        self.limited.iter().any(|one| one.resource == resource || !one.scopes.is_empty())
    }

    /// Judges an object in a namespace with these quotas (`CheckRequest` of k8s.io/apiserver/pkg/admission/plugin/resourcequota, up to
    /// where it counts).
    ///
    /// # Errors
    /// [`Unserved::OutOfTime`] when the deadline passes. Inside: why it is refused.
    pub fn check<'q>(
        &self,
        object: &Consumed<'_, '_>,
        quotas: impl Iterator<Item = &'q Quota>,
        deadline: Deadline<'_>,
    ) -> Result<Result<(), String>, Unserved> {
        let Consumed { resource, name, new, old, grown } = object;
        let scopes: BTreeSet<&QuotaScope> =
            self.limited.iter().flat_map(|one| &one.scopes).filter(|scope| new.is_in(scope)).collect();
        let mut names = self.names(resource, &new.usage);
        if scopes.is_empty() && names.is_empty() {
            return Ok(Ok(()));
        }
        let (mut covering, mut is_charged) = (BTreeSet::new(), false);
        let mut is_of_any = false;
        for quota in quotas {
            deadline.check()?;
            let mut is_of_all = true;
            for scope in &quota.scopes {
                if new.is_in(scope) {
                    covering.insert(scope.name.as_str());
                } else {
                    is_of_all = false;
                }
            }
            let mut restricted = quota.hard.iter().filter(|hard| facts::is_counted(resource, hard)).peekable();
            if restricted.peek().is_none() || !is_of_all {
                continue;
            }
            is_of_any = true;
            // A quota that did not count the object before counts all of it.
            let was_counted = old.as_ref().is_some_and(|old| quota.scopes.iter().all(|scope| old.is_in(scope)));
            is_charged |= !was_counted || *grown == Some(true);
            for one in restricted {
                names.remove(&**one);
            }
        }
        let is_settled = if is_of_any { !is_charged } else { *grown == Some(false) };
        if is_settled {
            return Ok(Ok(()));
        }
        if !names.is_empty() {
            return Ok(Err(forbidden(resource, name, &format!("insufficient quota to consume: {}", listed(&names)))));
        }
        let uncovered = self.limited.iter().flat_map(|one| &one.scopes);
        let uncovered = uncovered.filter(|scope| scopes.contains(scope) && !covering.contains(scope.name.as_str()));
        let uncovered: Vec<String> = uncovered.map(ToString::to_string).collect();
        if uncovered.is_empty() {
            return Ok(Ok(()));
        }
        Ok(Err(format!("insufficient quota to match these scopes: [{}]", uncovered.join(" "))))
    }

    /// Parts of the names that it limits.
    fn parts<'l>(&'l self, resource: &str) -> impl Iterator<Item = &'l str> + use<'l> {
        let of_resource: Vec<&LimitedResource> = self.limited.iter().filter(|one| one.resource == resource).collect();
        of_resource.into_iter().flat_map(|one| one.contains.iter().map(String::as_str))
    }

    /// What is consumed and limited.
    fn names<'u>(&self, resource: &str, usage: &'u Consumption) -> BTreeSet<&'u str> {
        let parts: BTreeSet<&str> = self.parts(resource).collect();
        let is_consumed = |amount: &Quantity| !amount.is_zero() && !amount.is_negative();
        let limited =
            usage.iter().filter(|(name, amount)| is_consumed(amount) && parts.iter().any(|part| name.contains(part)));
        limited.map(|(name, _)| name.as_str()).collect()
    }
}

/// Names for a message.
fn listed(names: &BTreeSet<&str>) -> String {
    let first = names.iter().take(NAMED).map(|name| shortened(name)).collect::<Vec<_>>().join(",");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Whether more of anything is consumed than before.
fn grows(new: &Consumption, old: &Consumption) -> bool {
    new.iter().any(|(name, amount)| match old.get(name) {
        Some(before) => amount > before,
        None => !amount.is_zero(),
    })
}
