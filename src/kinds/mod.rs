//! The one table of kinds, and which of them are on.

mod enabled;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod object_tests;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod schema_tests;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod watch_tests;

pub use self::enabled::Kinds;

use crate::kind::{Family, Kind};
use crate::limitrange::CLUSTER_LIMIT_RANGE;
use crate::plugins::ADMISSION_PLUGIN;
use crate::podsecurityprofile::POD_SECURITY_PROFILE;
use crate::sidecarset::SIDECAR_SET;
use crate::workshop::collector::COLLECTOR;
use crate::workshop::cronjob::CRON_JOB;
use crate::workshop::projectconfig::PROJECT_CONFIG;
use crate::workshop::simpledeployment::SIMPLE_DEPLOYMENT;
use crate::workshop::welcome::WELCOME;

/// Every kind, a row each. Router, manifests, RBAC, parts of the chart, flags, controllers and the checks of `outrider doctor` are made
/// from it. To add a kind, write its folder, its row here, its sample and its page.
pub static KINDS: &[Kind] = &[
    SIDECAR_SET,
    ADMISSION_PLUGIN,
    CLUSTER_LIMIT_RANGE,
    POD_SECURITY_PROFILE,
    COLLECTOR,
    CRON_JOB,
    PROJECT_CONFIG,
    SIMPLE_DEPLOYMENT,
    WELCOME,
];

/// The kinds that are always on.
pub fn product() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.family == Family::Product)
}

/// The kinds that can be off.
pub fn workshop() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.family == Family::Workshop)
}
