//! `CronJob`: a Job for every time of a schedule.
//!
//! Like the built-in `batch/v1` kind of the same name, in a group of its own and in two versions: v1, which is stored, writes
//! the schedule as one string, v2 as five fields.

pub mod api;
pub mod controller;
pub mod conversion;
mod crd;
pub mod defaults;
pub mod reconcile;
mod rules;
pub mod schedule;
pub mod template;
pub mod v2;
pub mod validation;
pub mod vocabulary;

use admission::Registry;
use k8s_openapi::api::rbac::v1::PolicyRule;

pub use self::rules::{mutating_rule, validating_rule};
use crate::kind::{Editors, Kind};
use crate::permissions::{own_kind, rule};
use crate::workshop::object::row;
use engine::snapshot::Snapshot;

/// Name of the kind in flags, logs and metrics.
const NAME: &str = api::CronJob::NAME;

/// The kind.
pub const CRON_JOB: Kind = Kind {
    rules,
    webhooks,
    controller: Some(controller::start),
    editors: Editors::OfNamespaces,
    samples: &["batch_v1_cronjob.yaml", "batch_v2_cronjob.yaml"],
    ..row::<api::CronJobSpec>(crd::cronjob)
};

/// The finalizer is written to the object itself; no `update`, as nothing else of it is ours to write.
fn rules() -> Vec<PolicyRule> {
    let mut rules = own_kind(api::GROUP, api::PLURAL);
    rules.push(rule(api::GROUP, &[api::PLURAL], &[], &["patch"]));
    rules.push(rule("batch", &["jobs"], &[], &["get", "list", "watch", "create", "delete"]));
    rules
}

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry
        .defaulting(mutating_rule(), defaults::CronJobDefaults)
        .validating(validating_rule(), validation::CronJobValidation)
        .converting(conversion::cronjob())
}
