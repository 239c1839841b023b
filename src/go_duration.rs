//! Durations as Go reads them: the rules and the wording of `time.ParseDuration`.
//!
//! No library: humantime reads other units (`1day`), and its errors are not the words that users know from kubectl.

use std::time::Duration;

use admission::field::quote;

/// The hint for a text that is not a duration.
pub const HOW_TO_WRITE: &str = "write a duration such as 10s, 1m30s or 500ms";

/// Nanoseconds of a second.
pub const SECOND: i128 = 1_000_000_000;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a duration, or one that does not fit into Go's int64.
    #[error("time: invalid duration {}", quote(.0))]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {}", quote(.0))]
    MissingUnit(String),
    /// A number with an unknown unit.
    #[error("time: unknown unit {} in duration {}", quote(.unit), quote(.duration))]
    UnknownUnit {
        /// The word.
        unit: String,
        /// The whole duration.
        duration: String,
    },
}

/// Reads a duration such as `1h30m` or `-1.5s`, in nanoseconds.
///
/// # Errors
/// [`DurationError`], in the words of Go.
pub fn parse(text: &str) -> Result<i128, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, magnitude) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if magnitude == "0" {
        return Ok(0);
    }
    if magnitude.is_empty() {
        return Err(invalid());
    }
    // Go counts in an int64, and its negative end is one further away.
    let limit = i128::from(i64::MAX) + i128::from(negative);
    let mut rest = magnitude;
    let mut total = 0_i128;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_ends = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit_name, after) = after.split_at(unit_ends);
        if unit_name.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let unit = unit(unit_name)
            .ok_or_else(|| DurationError::UnknownUnit { unit: unit_name.to_owned(), duration: text.to_owned() })?;
        total += term(whole, fraction, unit).ok_or_else(invalid)?;
        if total > limit {
            return Err(invalid());
        }
        rest = after;
    }
    Ok(if negative { -total } else { total })
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

const fn unit(name: &str) -> Option<i128> {
    Some(match name.as_bytes() {
        b"ns" => 1,
        // U+00B5 and U+03BC, which look alike.
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => SECOND,
        b"m" => 60 * SECOND,
        b"h" => 3600 * SECOND,
        _ => return None,
    })
}

/// `None` when it is more than Go can count.
fn term(whole: &str, fraction: &str, unit: i128) -> Option<i128> {
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanoseconds = i128::from(whole).checked_mul(unit)?;
    // An hour has less than 10^13 nanoseconds: further digits change nothing.
    let mut share = unit;
    for digit in fraction.bytes().take(13) {
        nanoseconds += i128::from(digit - b'0') * share / 10;
        share /= 10;
    }
    (nanoseconds <= i128::from(i64::MAX) + 1).then_some(nanoseconds)
}

/// Reads a duration without a sign, such as those of flags and of the configuration file.
///
/// # Errors
/// [`HOW_TO_WRITE`].
pub fn unsigned_duration(text: &str) -> Result<Duration, &'static str> {
    let nanoseconds = if text.starts_with(['-', '+']) { None } else { parse(text).ok() };
    nanoseconds.and_then(|it| u64::try_from(it).ok()).map(Duration::from_nanos).ok_or(HOW_TO_WRITE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases = [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1ns2us3\u{b5}s4\u{3bc}s5ms", 5_009_001),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn refusals_are_worded_as_go_words_them() {
        let cases = [
            ("", r#"time: invalid duration """#),
            ("x", r#"time: invalid duration "x""#),
            ("-", r#"time: invalid duration "-""#),
            (".s", r#"time: invalid duration ".s""#),
            (" 5m", r#"time: invalid duration " 5m""#),
            ("5", r#"time: missing unit in duration "5""#),
            ("1h5", r#"time: missing unit in duration "1h5""#),
            ("5d", r#"time: unknown unit "d" in duration "5d""#),
            ("5 m", r#"time: unknown unit " m" in duration "5 m""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999999999999h", r#"time: invalid duration "99999999999999999999h""#),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn an_unsigned_duration_is_at_least_zero_and_has_no_sign() {
        for (text, millis) in [
            ("10s", Some(10_000)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("0", Some(0)),
            ("", None),
            ("10", None),
            ("-1s", None),
            ("+1s", None),
            ("-0", None),
            ("1.2.3s", None),
            ("10 s", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(unsigned_duration(text), millis.map(Duration::from_millis).ok_or(HOW_TO_WRITE), "{text:?}");
        }
    }
}
