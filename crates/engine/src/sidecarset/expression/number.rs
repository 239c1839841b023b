//! Numbers of expressions, exactly: a third stays a third. Amounts are whole billionths: what numbers make of one is truncated to these
//! once, where it is added or compared.

use super::{MAX, Nanos, UNIT};

/// Numerator and denominator have at most so many digits: their products fit in 128 bits.
const LIMIT: i128 = 1_000_000_000_000_000_000;

/// A fraction in lowest terms; the denominator is above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    pub(super) const MINUS_ONE: Self = Self { numerator: -1, denominator: 1 };

    /// `None` for a denominator of zero, and for what is too large or too precise.
    pub(super) fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let divisor = greatest_common_divisor(numerator.checked_abs()?, denominator.checked_abs()?);
        if denominator == 0 || divisor == 0 {
            return None;
        }
        let sign = denominator.signum();
        let ratio = Self { numerator: sign * (numerator / divisor), denominator: sign * (denominator / divisor) };
        (ratio.numerator.abs() <= LIMIT && ratio.denominator <= LIMIT).then_some(ratio)
    }

    pub(super) const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let numerator = (self.numerator * other.denominator).checked_add(other.numerator * self.denominator)?;
        Self::new(numerator, self.denominator * other.denominator)
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        Self::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }

    pub(super) fn inverse(self) -> Option<Self> {
        Self::new(self.denominator, self.numerator)
    }

    pub(super) fn larger(self, other: Self) -> Self {
        if self.numerator * other.denominator >= other.numerator * self.denominator { self } else { other }
    }

    pub(super) fn smaller(self, other: Self) -> Self {
        if self.larger(other) == self { other } else { self }
    }

    /// So many units, in nanos; `None` beyond the largest amount.
    pub(super) fn of_unit(self, unit: Nanos) -> Option<Nanos> {
        let amount = self.numerator.checked_mul(unit)? / self.denominator;
        (amount.abs() <= MAX).then_some(amount)
    }

    /// The number as a quantity.
    pub(super) fn as_quantity(self) -> Option<Nanos> {
        self.of_unit(UNIT)
    }

    /// The ratio of an amount, towards zero. What does not fit in between is computed less precisely.
    pub(super) const fn of(self, amount: Nanos) -> Nanos {
        match amount.checked_mul(self.numerator) {
            Some(product) => product / self.denominator,
            None => (amount / self.denominator).saturating_mul(self.numerator),
        }
    }
}

const fn greatest_common_divisor(mut one: i128, mut other: i128) -> i128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
