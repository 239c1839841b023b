//! Amounts of resources, such as `100m` CPU or `1536Mi` memory.
//!
//! No library: k8s-openapi keeps a quantity as text, and what is compared, rounded and stored must be as the API server has it.
//!
//! Follows `k8s.io/apimachinery/pkg/api/resource`: same texts accepted, same rounding, same canonical text.

mod canonical;
mod parse;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::field::BadValue;

/// Nano units in one unit: no quantity is finer.
const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// An exact amount with nano precision.
///
/// It remembers which suffixes it was written with and prints with the same, in canonical form: `1.5Gi` becomes
/// `1536Mi`. Comparisons are by amount alone: `1Gi` equals `1024Mi`.
///
/// Amounts finer than one nano unit are rounded away from zero when they are read. Amounts with a binary
/// suffix are limited to 2^63-1 as in Kubernetes; all others to about 1.7e29 units, where Kubernetes has no
/// limit; one beyond that prints as it was written. Arithmetic stops at these bounds and never wraps around.
#[derive(Clone, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
    /// The text as written, where Kubernetes keeps it although it is not canonical, as in `+1` or `1.500`.
    written: Option<Box<str>>,
}

/// The family of suffixes in which a quantity is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12Mi`, powers of 1024.
    BinarySi,
    /// `12M`, powers of 1000.
    DecimalSi,
    /// `12e6`, powers of 10.
    DecimalExponent,
}

/// Why a text is not a quantity, in the words of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text is not a number followed by a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// There are no digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The number is followed by something that looks like a suffix and is none.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Nothing, printed as `0`.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi, written: None };

    const fn from_nanos(nanos: i128, format: Format) -> Self {
        Self { nanos, format, written: None }
    }

    /// The family of suffixes in which the quantity prints, where that loses nothing.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is less than zero.
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// The amount in whole units, rounded away from zero, limited to the range of `i64`.
    pub fn value(&self) -> i64 {
        saturating_i64(divide_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// The amount in thousandths of a unit, rounded away from zero, limited to the range of `i64`.
    pub fn milli_value(&self) -> i64 {
        saturating_i64(divide_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// Rounds to thousandths of a unit, away from zero, as the API server does with the resources of a pod.
    pub fn round_up_to_milli(&mut self) {
        let millis = divide_away_from_zero(self.nanos, NANOS_PER_MILLI);
        // Only an amount at the very bound overflows here, and that stays.
        if let Some(rounded) = millis.checked_mul(NANOS_PER_MILLI).filter(|rounded| *rounded != self.nanos) {
            *self = Self::from_nanos(rounded, self.format);
        }
    }

    /// Adds an amount. A zero takes over the format of what is added to it.
    pub fn add(&mut self, other: &Self) {
        let format = if self.is_zero() { other.format } else { self.format };
        *self = Self::from_nanos(self.nanos.saturating_add(other.nanos), format);
    }
}

/// Division that rounds to the number with the greater magnitude. `divisor` is greater than zero.
const fn divide_away_from_zero(value: i128, divisor: i128) -> i128 {
    let rest = value % divisor;
    value / divisor + rest.signum()
}

fn saturating_i64(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Some(text) => f.write_str(text),
            None => canonical::write(f, self.nanos, self.format),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl From<&Quantity> for BadValue {
    fn from(quantity: &Quantity) -> Self {
        Self::from(quantity.to_string())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// Reads a string or, as the API server does, a number.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl de::Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m or 1Gi")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        // Go's Quantity.UnmarshalJSON trims white space, ParseQuantity does not.
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::from(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        // The shortest text that reads back as this number is what was written, zeros at its end aside.
        self.visit_str(&number.to_string())
    }
}

impl From<i64> for Quantity {
    /// That many units, to be printed with decimal suffixes.
    fn from(units: i64) -> Self {
        Self::from_nanos(i128::from(units) * NANOS_PER_UNIT, Format::DecimalSi)
    }
}
