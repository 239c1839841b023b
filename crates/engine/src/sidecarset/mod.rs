//! `SidecarSet`: sidecars for every pod that a selector matches.

pub mod affinity;
pub mod allow_list;
pub mod api;
pub mod app_containers;
pub mod canonical;
pub mod compiled;
pub mod defaults;
pub mod expression;
pub mod flat;
pub mod hot_upgrade;
pub mod index;
pub mod injection;
pub(crate) mod mark;
pub mod metadata;
pub mod narrowing;
pub mod needs;
pub mod overrides;
mod packed;
pub mod pin;
pub mod platform;
mod pod_security;
mod references;
pub mod resources;
mod rules;
pub mod sameness;
pub mod size;
pub mod validation;
pub mod vocabulary;
pub mod workload;

pub use rules::{mutating_rule, validating_rule};

#[cfg(test)]
mod test_objects;
