//! `ProjectConfig` as a custom resource. Nothing acts on it: the process has its configuration from the file, see
//! [`config`](crate::config), where the type and its rules are.

mod crd;
pub mod validation;

use admission::Registry;

use crate::kind::{Editors, Family, Kind};
use engine::snapshot::Snapshot;

/// The kind.
pub const PROJECT_CONFIG: Kind = Kind {
    webhooks,
    editors: Editors::OfNamespaces,
    samples: &["config_v2_projectconfig.yaml"],
    ..Kind::new("projectconfig", Family::Workshop, crd::projectconfig)
};

fn webhooks(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    registry.validating(validation::validating_rule(), validation::ProjectConfigValidation)
}
