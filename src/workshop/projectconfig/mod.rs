//! `ProjectConfig` as a custom resource. Nothing acts on it: the process has its configuration from the file, see
//! [`config`](crate::config), where the type and its rules are.

mod crd;
pub mod validation;

use admission::Registry;

use crate::kind::{Editors, Family, Kind, no_demands, no_rules};
use engine::snapshot::Snapshot;

/// The kind.
pub const PROJECT_CONFIG: Kind = Kind {
    name: "projectconfig",
    family: Family::Workshop,
    crd: crd::projectconfig,
    rules: Vec::new,
    webhooks,
    stages: &[],
    namespace_rules: no_rules,
    demands: no_demands,
    controller: None,
    watches: &[],
    editors: Editors::OfNamespaces,
    samples: &["config_v2_projectconfig.yaml"],
};

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::ProjectConfigValidation)
}
