//! Ids of users and groups, and numbers of ports: what must be in ranges.

use std::fmt;

use admission::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::api::{IdRange, IdStrategy, MAY_RUN_AS, MUST_RUN_AS, MUST_RUN_AS_NON_ROOT, RUN_AS_ANY};
use super::compiled::{Least, bounded};
use super::context::{Context, effective};
use super::faults::{ProfileFaults, invalid_as, listed};

/// Ranges, of which there are few.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct IdRanges(Vec<IdRange>);

impl IdRanges {
    /// Ranges, and what is wrong with them.
    pub fn read(ranges: &[IdRange], path: &Path, errors: &mut ErrorList) -> Self {
        for (index, range) in bounded(ranges, path, Least::None, errors).iter().enumerate() {
            let path = path.index(index);
            if range.min < 0 {
                errors.push(Error::invalid(&path.child("min"), range.min, "min cannot be negative"));
            }
            if range.max < 0 {
                errors.push(Error::invalid(&path.child("max"), range.max, "max cannot be negative"));
            }
            if range.min > range.max {
                errors.push(Error::invalid(&path.child("min"), range.min, "min cannot be greater than max"));
            }
        }
        Self(ranges.to_vec())
    }

    /// Whether one of them has the number.
    pub fn have(&self, number: i64) -> bool {
        self.0.iter().any(|range| (range.min..=range.max).contains(&number))
    }

    fn first(&self) -> i64 {
        self.0.first().map_or(0, |range| range.min)
    }

    /// As in messages about host ports.
    pub fn as_ports(&self) -> String {
        let one = |range: &IdRange| match range {
            IdRange { min, max } if min == max => min.to_string(),
            IdRange { min, max } => format!("{min}-{max}"),
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(",")
    }
}

/// As Go prints them.
impl fmt::Display for IdRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self.0.iter().map(|range| format!("{{{} {}}}", range.min, range.max)).collect();
        write!(f, "[{}]", ranges.join(" "))
    }
}

/// How ids are chosen.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum IdRule {
    /// Every id; none is filled in.
    #[default]
    Any,
    /// One of these, and the first where there is none.
    Must(IdRanges),
    /// One of these, or none.
    May(IdRanges),
    /// Users but root.
    NonRoot,
}

impl IdRule {
    /// The rule of users.
    pub fn of_users(strategy: &IdStrategy, path: &Path, errors: &mut ErrorList) -> Self {
        Self::read(strategy, &[MUST_RUN_AS, MUST_RUN_AS_NON_ROOT, RUN_AS_ANY], path, errors)
    }

    /// A rule of groups.
    pub fn of_groups(strategy: &IdStrategy, path: &Path, errors: &mut ErrorList) -> Self {
        Self::read(strategy, &[MAY_RUN_AS, MUST_RUN_AS, RUN_AS_ANY], path, errors)
    }

    fn read(strategy: &IdStrategy, words: &[&str], path: &Path, errors: &mut ErrorList) -> Self {
        let rule = strategy.rule.as_str();
        if !words.contains(&rule) {
            errors.push(Error::not_supported(&path.child("rule"), rule, words));
        }
        let ranges = IdRanges::read(&strategy.ranges, &path.child("ranges"), errors);
        let needs_some = [MUST_RUN_AS, MAY_RUN_AS].contains(&rule);
        if needs_some && ranges.0.is_empty() {
            errors.push(Error::required(&path.child("ranges"), format!("{rule} requires at least one range")));
        }
        match rule {
            MUST_RUN_AS => Self::Must(ranges),
            MAY_RUN_AS => Self::May(ranges),
            MUST_RUN_AS_NON_ROOT => Self::NonRoot,
            _ => Self::Any,
        }
    }

    /// The id of who has none.
    pub fn default(&self) -> Option<i64> {
        match self {
            Self::Must(ranges) => Some(ranges.first()),
            _ => None,
        }
    }

    /// Checks groups: none where the field is absent.
    pub fn check_groups(&self, groups: Option<&[i64]>, path: &Path, faults: &mut ProfileFaults) {
        let shown = || listed("int64", groups.map(|groups| groups.iter().map(i64::to_string)));
        let (Self::Must(ranges) | Self::May(ranges)) = self else { return };
        let found = groups.unwrap_or_default();
        if found.is_empty() && matches!(self, Self::Must(_)) {
            let detail = "unable to validate empty groups against required ranges";
            faults.add(|| invalid_as(path, shown(), detail));
        }
        for group in found.iter().filter(|group| !ranges.have(**group)) {
            faults.add(|| invalid_as(path, shown(), format!("group {group} must be in the ranges: {ranges}")));
        }
    }

    /// Fills in the user of a container, or that it is not root.
    pub fn fill_user(&self, container: &mut Context<'_>, pod: &Context<'_>) {
        if effective(container, pod, "runAsUser").is_some() {
            return;
        }
        match self {
            Self::Must(ranges) => container.fill("runAsUser", ranges.first()),
            Self::NonRoot if effective(container, pod, "runAsNonRoot").is_none() => {
                container.fill("runAsNonRoot", true);
            }
            _ => {}
        }
    }

    /// Checks the user of a container.
    pub fn check_user(&self, container: &Context<'_>, pod: &Context<'_>, path: &Path, faults: &mut ProfileFaults) {
        let user = effective(container, pod, "runAsUser").and_then(Value::as_i64);
        let non_root = effective(container, pod, "runAsNonRoot").and_then(Value::as_bool);
        let (of_user, of_non_root) = (|| path.child("runAsUser"), || path.child("runAsNonRoot"));
        match (self, user) {
            (Self::Must(_), None) => faults.add(|| Error::required(&of_user(), "")),
            (Self::Must(ranges), Some(user)) if !ranges.have(user) => {
                faults.add(|| Error::invalid(&of_user(), user, format!("must be in the ranges: {ranges}")));
            }
            (Self::NonRoot, None) if non_root.is_none() => {
                faults.add(|| Error::required(&of_non_root(), "must be true"));
            }
            (Self::NonRoot, _) if non_root == Some(false) => {
                faults.add(|| Error::invalid(&of_non_root(), false, "must be true"));
            }
            (Self::NonRoot, Some(0)) => {
                faults.add(|| Error::invalid(&of_user(), 0, "running with the root UID is forbidden"));
            }
            _ => {}
        }
    }
}
