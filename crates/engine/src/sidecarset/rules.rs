//! When the API server calls the webhooks of a `SidecarSet`.

use admission::Operation;
use admission::registry::{MatchPolicy, Rule, Scope};

use super::api::{GROUP, KIND, PLURAL, VERSION};

/// For [`SidecarSetDefaults`](super::defaults::SidecarSetDefaults).
pub const fn mutating_rule() -> Rule {
    Rule {
        group: GROUP,
        version: VERSION,
        kind: KIND,
        resource: PLURAL,
        scope: Scope::Cluster,
        operations: &[Operation::Create, Operation::Update],
        match_policy: MatchPolicy::Equivalent,
        name: concat!("sidecarset.apps.", api_domain!()),
    }
}

/// For [`SidecarSetValidation`](super::validation::SidecarSetValidation). What is checked is what is defaulted.
pub const fn validating_rule() -> Rule {
    mutating_rule()
}
