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
    // An amount with a binary suffix that 1024 does not divide is printed without one, and read again as a decimal amount: with more than
    // 18 digits it gets a decimal suffix then, as in `k8s.io/apimachinery`. From there on it stays as it is.
    let settled = again.to_string();
    assert!(
        settled == printed || printed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
        "{one:?} prints {printed:?}"
    );
    let last = settled.parse::<Quantity>().map(|last| last.to_string());
    assert_eq!(last.as_ref(), Ok(&settled), "{one:?} prints {printed:?}");
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
