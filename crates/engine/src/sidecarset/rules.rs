//! When the API server calls the webhooks of a `SidecarSet`.

use admission::Operation;
use admission::registry::{Resource, Rule, Scope};

use super::api::{GROUP, KIND, PLURAL, VERSION};

/// For [`SidecarSetDefaults`](super::defaults::SidecarSetDefaults).
pub const fn mutating_rule() -> Rule {
    const SETS: &[Resource] = &[Resource { group: GROUP, version: VERSION, resource: PLURAL, kind: KIND }];
    let name = concat!("sidecarset.apps.", api_domain!());
    Rule { scope: Scope::Cluster, ..Rule::new(name, SETS, &[Operation::Create, Operation::Update]) }
}

/// For [`SidecarSetValidation`](super::validation::SidecarSetValidation). What is checked is what is defaulted.
pub const fn validating_rule() -> Rule {
    mutating_rule()
}
