//! `CronJob`: a Job for every time of a schedule.
//!
//! Like the built-in `batch/v1` kind of the same name, in a group of its own and in two versions: v1, which is stored, writes
//! the schedule as one string, v2 as five fields.

pub mod api;
pub mod conversion;
pub mod crd;
pub mod defaults;
pub mod reconcile;
mod rules;
pub mod schedule;
pub mod v2;
pub mod validation;
pub mod vocabulary;

use admission::Registry;

pub use self::rules::{mutating_rule, validating_rule};
use crate::world::Snapshot;

/// Adds the webhooks and the conversion of the kind.
#[must_use]
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry
        .defaulting(mutating_rule(), defaults::CronJobDefaults)
        .validating(validating_rule(), validation::CronJobValidation)
        .converting(conversion::cronjob())
}
