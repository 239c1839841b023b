//! Quantities.

use admission::format::Quantity;

/// Checks that a quantity is printed as itself, in a form that does not change again, and that sums stay within bounds.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (one, other) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(quantity) = one.parse::<Quantity>() else { return };
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().unwrap_or_else(|error| panic!("{one:?} prints {printed:?}: {error}"));
    assert_eq!(again, quantity, "{one:?} prints {printed:?}");
    assert_eq!(again.to_string(), printed, "{one:?} prints {printed:?}");
    assert!(quantity.is_zero() || quantity.is_negative() == (quantity.value() < 0), "{one:?}");
    let mut rounded = quantity.clone();
    rounded.round_up_to_milli();
    let twice = {
        let mut twice = rounded.clone();
        twice.round_up_to_milli();
        twice
    };
    assert_eq!(rounded, twice, "{one:?} is rounded twice");
    if let Ok(other) = other.parse::<Quantity>() {
        let mut sum = quantity.clone();
        sum.add(&other);
        assert!(other.is_negative() || sum >= quantity, "{text:?}");
        assert_eq!(quantity.cmp(&other), other.cmp(&quantity).reverse(), "{text:?}");
    }
}
