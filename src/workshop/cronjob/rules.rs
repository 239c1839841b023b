//! When the API server calls the webhooks of a `CronJob`.

use admission::Operation;
use admission::registry::Rule;

use super::api::CronJobSpec;
use crate::workshop::object::rule;

/// For [`CronJobDefaults`](super::defaults::CronJobDefaults).
///
/// v1 alone, and `Equivalent`: the API server turns a v2 object into v1 before it asks, and back afterwards. With a rule for
/// v2 as well it would turn every v1 object into v2.
pub const fn mutating_rule() -> Rule {
    rule::<CronJobSpec>(&[Operation::Create, Operation::Update])
}

/// For [`CronJobValidation`](super::validation::CronJobValidation). What is checked is what is defaulted.
pub const fn validating_rule() -> Rule {
    mutating_rule()
}
