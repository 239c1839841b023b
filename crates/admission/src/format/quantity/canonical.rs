//! Quantity to text: `CanonicalizeBytes` of `k8s.io/apimachinery/pkg/api/resource`.

use std::fmt;

use super::{Format, NANOS_PER_UNIT};

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// From 10^-9 on, in steps of 1000.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Writes the largest suffix of the family with which no digit after the point is needed.
pub(super) fn write(f: &mut fmt::Formatter<'_>, nanos: i128, format: Format) -> fmt::Result {
    if nanos == 0 {
        return f.write_str("0");
    }
    let exact_binary = nanos % NANOS_PER_UNIT == 0 && nanos.abs_diff(0) >= (1024 * NANOS_PER_UNIT).unsigned_abs();
    match format {
        Format::BinarySi if exact_binary => {
            let (number, steps) = divide_out(nanos / NANOS_PER_UNIT, 1024, BINARY_SUFFIXES.len() - 1);
            write!(f, "{number}{}", BINARY_SUFFIXES.get(steps).unwrap_or(&""))
        }
        // What a binary suffix cannot say exactly is printed as decimal.
        Format::BinarySi | Format::DecimalSi => {
            // Go prints 10^21 as "1", without any suffix: it has none greater than E. This stops at E.
            let (number, steps) = divide_out(nanos, 1000, DECIMAL_SUFFIXES.len() - 1);
            write!(f, "{number}{}", DECIMAL_SUFFIXES.get(steps).unwrap_or(&""))
        }
        Format::DecimalExponent => {
            let (number, steps) = divide_out(nanos, 1000, usize::MAX);
            match i64::try_from(steps).unwrap_or_default() * 3 - 9 {
                0 => write!(f, "{number}"),
                exponent => write!(f, "{number}e{exponent}"),
            }
        }
    }
}

/// Divides by `base` while that leaves no rest, at most `max_steps` times. `number` is not zero.
fn divide_out(mut number: i128, base: i128, max_steps: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < max_steps && number % base == 0 {
        number /= base;
        steps += 1;
    }
    (number, steps)
}
