//! Text to quantity: `ParseQuantity` of `k8s.io/apimachinery/pkg/api/resource`, with bounded numbers.

use super::{Format, NANOS_PER_UNIT, ParseQuantityError, Quantity};

/// Largest amount that Kubernetes keeps with a binary suffix: 2^63-1 units.
const BINARY_MAX_NANOS: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// Up to so many digits, times 1024^6, fit into an `i128`.
const SHORT_DIGITS: usize = 18;

/// A number of nano units with so many digits is greater than `i128::MAX`.
const OVERFLOWING_DIGITS: i64 = 40;

/// Of the digits below one nano unit, so many are read as they are. Of what is behind them only counts whether it is zero.
const DIGITS_BELOW: i64 = 64;

/// A quantity's text, taken apart: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    has_digits: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

#[derive(Clone, Copy)]
struct Suffix {
    format: Format,
    /// How often the number is multiplied by 1024; only for the binary format.
    kibi_steps: usize,
    /// The power of ten by which the number is multiplied.
    exponent: i64,
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    let parts = split(text)?;
    let suffix = interpret(parts.suffix)?;
    let scale = suffix.exponent.saturating_sub(i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX));
    let short = is_short(&parts, suffix, scale);
    if !short && !parts.has_digits {
        return Err(ParseQuantityError::Number);
    }

    let magnitude = nanos(&parts, suffix.kibi_steps, scale);
    let (magnitude, format) = match suffix.format {
        // Below one unit a binary suffix could not say it: Kubernetes goes over to n, u and m.
        Format::BinarySi if magnitude > 0 && magnitude < NANOS_PER_UNIT => (magnitude, Format::DecimalSi),
        Format::BinarySi => (magnitude.min(BINARY_MAX_NANOS), Format::BinarySi),
        format => (magnitude, format),
    };
    let mut quantity = Quantity::from_nanos(if parts.negative { -magnitude } else { magnitude }, format);
    // An amount beyond our bounds must at least not change when it is written again.
    let kept = magnitude == i128::MAX || (short && keeps_text(&parts, suffix, scale));
    if kept && quantity.to_string() != text {
        quantity.written = Some(text.into());
    }
    Ok(quantity)
}

/// As the scanner `parseQuantityString`, which lets a number without digits through, such as `.` or `+k`. Most of
/// them then count as zero.
fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Form);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = split_while(unsigned, |b| b.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_while(rest, |b| b.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, exponent) = split_while(suffix, |b| b"eEinumkKMGTP".contains(&b));
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseQuantityError::Form);
    }
    Ok(Parts {
        negative,
        has_digits: !whole.is_empty() || !fraction.is_empty(),
        whole: whole.trim_start_matches('0'),
        fraction,
        suffix,
    })
}

fn split_while(text: &str, belongs: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|b| !belongs(b)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn interpret(suffix: &str) -> Result<Suffix, ParseQuantityError> {
    let decimal = |exponent| Suffix { format: Format::DecimalSi, kibi_steps: 0, exponent };
    let binary = |kibi_steps| Suffix { format: Format::BinarySi, kibi_steps, exponent: 0 };
    Ok(match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse().ok());
            let exponent = exponent.ok_or(ParseQuantityError::Suffix)?;
            Suffix { format: Format::DecimalExponent, kibi_steps: 0, exponent }
        }
    })
}

/// The amount in nano units without its sign, rounded up; `i128::MAX` if it is greater.
fn nanos(parts: &Parts<'_>, kibi_steps: usize, scale: i64) -> i128 {
    let digits = || parts.whole.bytes().chain(parts.fraction.bytes()).map(|b| b - b'0');
    let scale = scale.saturating_add(9);
    if parts.whole.len() + parts.fraction.len() <= SHORT_DIGITS {
        let number = digits().fold(0, |number: i128, digit| number * 10 + i128::from(digit));
        return shift_decimal(number << (10 * kibi_steps), scale);
    }
    let leading_zeros = digits().take_while(|digit| *digit == 0).count();
    let significant = (parts.whole.len() + parts.fraction.len()).saturating_sub(leading_zeros);
    // The digits of the amount in nano units, before it is multiplied by 1024. Negative for what is below one.
    let amount_digits = i64::try_from(significant).unwrap_or(i64::MAX).saturating_add(scale);
    if significant == 0 {
        return 0;
    }
    if amount_digits >= OVERFLOWING_DIGITS {
        return i128::MAX;
    }
    // A text may have millions of digits.
    let kept = usize::try_from(amount_digits.max(0) + DIGITS_BELOW).unwrap_or(0);
    let mut number: Vec<u8> = digits().skip(leading_zeros).take(kept).collect();
    let mut scale = scale.saturating_add(i64::try_from(significant - number.len()).unwrap_or(i64::MAX));
    if digits().skip(leading_zeros + number.len()).any(|digit| digit != 0) {
        number.push(1);
        scale = scale.saturating_sub(1);
    }
    for _ in 0..kibi_steps {
        multiply_by_1024(&mut number);
    }
    long_number(&number, scale)
}

/// `number` times ten to the power of `scale`, rounded up; `i128::MAX` if that is greater.
fn shift_decimal(number: i128, scale: i64) -> i128 {
    if number == 0 {
        return 0;
    }
    let power = u32::try_from(scale.unsigned_abs()).ok().and_then(|exponent| 10_i128.checked_pow(exponent));
    match power {
        Some(power) if scale >= 0 => number.saturating_mul(power),
        None if scale >= 0 => i128::MAX,
        Some(power) => number / power + i128::from(number % power != 0),
        None => 1,
    }
}

/// The decimal `digits`, most significant first, times ten to the power of `scale`, rounded up.
fn long_number(digits: &[u8], scale: i64) -> i128 {
    let drop = usize::try_from(scale.saturating_neg()).unwrap_or(0);
    let (kept, dropped) = digits.split_at_checked(digits.len().saturating_sub(drop)).unwrap_or((digits, &[]));
    let inexact = dropped.iter().any(|digit| *digit != 0);
    let number =
        kept.iter().fold(0, |number: i128, digit| number.saturating_mul(10).saturating_add(i128::from(*digit)));
    shift_decimal(number, scale.max(0)).saturating_add(i128::from(inexact))
}

fn multiply_by_1024(digits: &mut Vec<u8>) {
    let mut carry = 0_u32;
    for digit in digits.iter_mut().rev() {
        carry += u32::from(*digit) * 1024;
        *digit = last_digit(carry);
        carry /= 10;
    }
    while carry > 0 {
        digits.insert(0, last_digit(carry));
        carry /= 10;
    }
}

fn last_digit(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

/// Whether Kubernetes reads the number straight into an `int64`: `ParseQuantity` does if it is short enough.
fn is_short(parts: &Parts<'_>, suffix: Suffix, scale: i64) -> bool {
    let digits = parts.whole.len().max(1) + parts.fraction.len();
    match suffix.format {
        // 15 digits, less 3 for each factor of 1024, and one.
        Format::BinarySi => parts.fraction.is_empty() && digits + 3 * suffix.kibi_steps < 15,
        Format::DecimalSi | Format::DecimalExponent => digits <= SHORT_DIGITS && scale >= -9,
    }
}

/// Whether Kubernetes takes a short number for canonical, and keeps its text as written. Follows the conditions
/// in `ParseQuantity`, since what it keeps is what is stored and shown.
fn keeps_text(parts: &Parts<'_>, suffix: Suffix, scale: i64) -> bool {
    if suffix.format == Format::BinarySi {
        let number: u64 = parts.whole.parse().unwrap_or(0);
        return !number.is_multiple_of(8);
    }
    let mut last_first = parts.whole.bytes().chain(parts.fraction.bytes()).rev();
    let ends_with_000 = (0..3).all(|_| last_first.next() == Some(b'0'));
    scale % 3 == 0 && !ends_with_000 && !parts.whole.is_empty()
}
