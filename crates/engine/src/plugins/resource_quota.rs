//! `ResourceQuota` with `limitedResources`: what may be consumed only where a quota covers it. What is used is counted by the API
//! server's own plugin, which runs after every webhook.

mod facts;

use std::collections::{BTreeMap, BTreeSet};

use admission::format::Quantity;

use super::{forbidden, shortened};
pub use facts::QuotaFacts;

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

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceQuota {
    /// What is limited.
    pub limited: Vec<Limited>,
}

/// Consumption that a quota must cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limited {
    /// The resource: one of [`RESOURCES`].
    pub resource: String,
    /// Parts of the names of what is consumed, such as `requests.cpu`.
    pub contains: Vec<String>,
    /// Scopes, which limit objects of every resource that has such scopes.
    pub scopes: Vec<Scope>,
}

/// A scope, and what its value must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// One of [`SCOPES`].
    pub name: String,
    /// One of [`OPERATORS`].
    pub operator: String,
    /// Values for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// As Go prints the struct.
impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{{} {} [{}]}}", self.name, self.operator, self.values.join(" "))
    }
}

impl Scope {
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
    /// Its scopes, and those of its selector.
    pub scopes: Vec<Scope>,
    /// What `status.hard` names: a quota that has not been counted yet covers nothing.
    pub hard: BTreeSet<String>,
}

/// What an object consumes.
type Usage = BTreeMap<String, Quantity>;

/// An object, and what it was.
pub struct Consumed<'r, 'a> {
    /// The resource: one of [`RESOURCES`].
    pub resource: &'r str,
    /// As it is to be stored.
    pub new: &'r QuotaFacts<'a>,
    /// As it is stored; none for a new one.
    pub old: Option<&'r QuotaFacts<'a>>,
    /// Its name in messages.
    pub name: &'r str,
}

impl ResourceQuota {
    /// Judges an object in a namespace with these quotas (`CheckRequest` of k8s.io/apiserver/pkg/admission/plugin/resourcequota, up to
    /// where it counts).
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check<'q>(
        &self,
        object: &Consumed<'_, '_>,
        quotas: impl Iterator<Item = &'q Quota> + Clone,
    ) -> Result<(), String> {
        let Consumed { resource, new, old, name } = object;
        let matched = |scope: &Scope, facts: &QuotaFacts<'_>| facts.is_in(resource, scope);
        let scopes: Vec<&Scope> =
            self.limited.iter().flat_map(|one| &one.scopes).filter(|scope| matched(scope, new)).collect();
        let usage = new.usage(resource);
        let mut names = self.names(resource, &usage);
        if scopes.is_empty() && names.is_empty() {
            return Ok(());
        }
        let grown = old.map(|old| grows(&usage, &old.usage(resource)));
        let (mut covering, mut is_charged) = (BTreeSet::new(), false);
        let mut is_of_any = false;
        for quota in quotas {
            covering.extend(quota.scopes.iter().filter(|scope| matched(scope, new)).map(|scope| scope.name.as_str()));
            let restricted: Vec<&String> = quota.hard.iter().filter(|hard| facts::is_counted(resource, hard)).collect();
            if restricted.is_empty() || !quota.scopes.iter().all(|scope| matched(scope, new)) {
                continue;
            }
            is_of_any = true;
            // A quota that did not count the object before counts all of it.
            let was_counted = old.is_some_and(|old| quota.scopes.iter().all(|scope| matched(scope, old)));
            is_charged |= !was_counted || grown == Some(true);
            for one in restricted {
                names.remove(one);
            }
        }
        if if is_of_any { !is_charged } else { grown == Some(false) } {
            return Ok(());
        }
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(forbidden(resource, name, &format!("insufficient quota to consume: {}", names.join(","))));
        }
        let uncovered = scopes.iter().filter(|scope| !covering.contains(scope.name.as_str()));
        let uncovered: Vec<String> = uncovered.map(ToString::to_string).collect();
        if uncovered.is_empty() {
            return Ok(());
        }
        Err(format!("insufficient quota to match these scopes: [{}]", uncovered.join(" ")))
    }

    /// What is consumed and limited.
    fn names(&self, resource: &str, usage: &Usage) -> BTreeSet<String> {
        let parts: Vec<&String> =
            self.limited.iter().filter(|one| one.resource == resource).flat_map(|one| &one.contains).collect();
        let is_consumed = |amount: &Quantity| !amount.is_zero() && !amount.is_negative();
        let limited = usage
            .iter()
            .filter(|(name, amount)| is_consumed(amount) && parts.iter().any(|part| name.contains(part.as_str())));
        limited.map(|(name, _)| shortened(name).to_owned()).collect()
    }
}

/// Whether more of anything is consumed than before.
fn grows(new: &Usage, old: &Usage) -> bool {
    new.iter().any(|(name, amount)| match old.get(name) {
        Some(before) => amount > before,
        None => !amount.is_zero(),
    })
}
