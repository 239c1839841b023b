//! Kinds that make a complete operator of their own on top of `crates/admission`: the proof that the framework is general.
//!
//! A folder a kind. They are off unless they are asked for, and a kind that is off leaves nothing behind: no CRD, no RBAC
//! rule, no watch, no webhook, no metric. To add a kind, write its folder and add its line to [`KINDS`].

pub mod collector;
pub mod cronjob;
mod kind;
mod kinds;
pub mod object;
mod owned;
pub mod projectconfig;
mod readiness;
pub mod simpledeployment;
pub mod welcome;

pub use self::kind::{Kind, Start};
pub use self::kinds::Kinds;

/// Every kind of the workshop.
pub static KINDS: &[Kind] = &[
    collector::COLLECTOR,
    cronjob::CRON_JOB,
    projectconfig::PROJECT_CONFIG,
    simpledeployment::SIMPLE_DEPLOYMENT,
    welcome::WELCOME,
];
