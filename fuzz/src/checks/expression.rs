//! The language of `resourcesExpr`.

use admission::format::Quantity;
use engine::sidecarset::expression::{Expression, Nanos, Resource, UNIT};

const AMOUNTS: [Nanos; 6] = [0, 1_000_000, UNIT, 1000 * UNIT, i64::MAX as Nanos * UNIT, Nanos::MAX];

/// Checks that what is read is evaluated for every amount, to one that a container can have.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for resource in Resource::ALL {
        let Ok(expression) = Expression::read(text, resource) else { continue };
        for amount in AMOUNTS {
            let value =
                expression.evaluate(Some(amount)).unwrap_or_else(|| panic!("{text:?} has no value at {amount}"));
            assert!(value >= 0, "{text:?} at {amount} is {value}");
            let printed = resource.print(value);
            let quantity: Quantity = printed.parse().unwrap_or_else(|error| panic!("{text:?} is {printed}: {error}"));
            assert!(!quantity.is_negative(), "{text:?} at {amount} is {printed}");
        }
        if let Some(constant) = expression.constant() {
            assert_eq!(expression.evaluate(Some(UNIT)), Some(constant), "{text:?}");
        }
    }
}
