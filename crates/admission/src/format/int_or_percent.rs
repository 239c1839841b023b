//! A number, or a share of a total.
//!
//! Rules and wording: `k8s.io/apimachinery/pkg/util/intstr`, `IsValidPercent` of
//! `k8s.io/apimachinery/pkg/util/validation` and the validation of `maxUnavailable` in
//! `k8s.io/kubernetes/pkg/apis/apps/validation`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::names::form_message;
use crate::field::{BadValue, Error, ErrorList, Path};

/// A 32-bit integer or a text: in `maxUnavailable` a percentage such as `25%`, in a probe the name of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// A plain number.
    Int(i32),
    /// A text, not checked yet.
    String(String),
}

/// Which way a share of a total goes when it is not a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next greater number, as for `maxSurge` and `partition`.
    Up,
    /// To the next lower number, as for `maxUnavailable` of a deployment.
    Down,
}

/// Why a text is no share of a total.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PercentError {
    /// The text is not digits followed by `%`.
    #[error("invalid value for IntOrString: invalid type: string is not a percentage")]
    NotPercent,
    /// The number before the `%` does not fit into 64 bits.
    #[error("invalid value for IntOrString: invalid value {0:?}: value out of range")]
    OutOfRange(String),
}

impl IntOrString {
    /// The number itself, or that percentage of `total`, limited to the range of `i32`.
    ///
    /// # Errors
    /// When the text is not a percentage, or its number does not fit into 64 bits.
    pub fn scaled(&self, total: i32, rounding: Rounding) -> Result<i32, PercentError> {
        let percentage = match self {
            Self::Int(number) => return Ok(*number),
            Self::String(text) => parse_percent(text)?,
        };
        let hundredths = i128::from(percentage) * i128::from(total);
        let floor = hundredths.div_euclid(100);
        let round_up = rounding == Rounding::Up && hundredths.rem_euclid(100) != 0;
        let scaled = floor + i128::from(round_up);
        Ok(i32::try_from(scaled).unwrap_or(if scaled < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Checks that the value at `path` is a number from 0 on or a percentage.
    pub fn validate_not_negative(&self, path: &Path, errors: &mut ErrorList) {
        match self {
            Self::Int(number) if *number < 0 => {
                errors.push(Error::invalid(path, *number, "must be greater than or equal to 0"));
            }
            Self::Int(_) => {}
            Self::String(text) => {
                errors.extend(percent(text).into_iter().map(|message| Error::invalid(path, self, message)));
            }
        }
    }

    /// Checks that the value at `path`, if it is a percentage, is at most `100%`.
    pub fn validate_at_most_100_percent(&self, path: &Path, errors: &mut ErrorList) {
        let over = match self {
            Self::Int(_) => false,
            Self::String(text) => match parse_percent(text) {
                Ok(percentage) => percentage > 100,
                Err(PercentError::OutOfRange(_)) => true,
                Err(PercentError::NotPercent) => false,
            },
        };
        if over {
            errors.push(Error::invalid(path, self, "must not be greater than 100%"));
        }
    }
}

/// Checks that a text is a percentage: digits, then `%`.
pub fn percent(text: &str) -> Vec<String> {
    if percent_digits(text).is_some() {
        return Vec::new();
    }
    vec![form_message(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

fn percent_digits(text: &str) -> Option<&str> {
    let digits = text.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

fn parse_percent(text: &str) -> Result<i64, PercentError> {
    let digits = percent_digits(text).ok_or(PercentError::NotPercent)?;
    digits.parse().map_err(|_| PercentError::OutOfRange(text.to_owned()))
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

impl From<&IntOrString> for BadValue {
    fn from(value: &IntOrString) -> Self {
        Self::json(value)
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(number) => serializer.serialize_i32(*number),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntOrStringVisitor)
    }
}

struct IntOrStringVisitor;

impl de::Visitor<'_> for IntOrStringVisitor {
    type Value = IntOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 32-bit integer or a string")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<IntOrString, E> {
        let number = i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))?;
        Ok(IntOrString::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<IntOrString, E> {
        let number = i32::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))?;
        Ok(IntOrString::Int(number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrString, E> {
        Ok(IntOrString::String(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<IntOrString, E> {
        Ok(IntOrString::String(text))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{IntOrString, PercentError, Rounding};
    use crate::field::{ErrorList, Path};

    fn text(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }

    #[test]
    fn percentages_scale_exactly_in_both_directions() {
        let cases = [
            (IntOrString::Int(7), 10, 7, 7),
            (IntOrString::Int(-7), 10, -7, -7),
            (text("0%"), 10, 0, 0),
            (text("1%"), 5, 0, 1),
            (text("50%"), 5, 2, 3),
            (text("33%"), 100, 33, 33),
            (text("100%"), i32::MAX, i32::MAX, i32::MAX),
            (text("200%"), 4, 8, 8),
            (text("50%"), -5, -3, -2),
            (text("9223372036854775807%"), i32::MAX, i32::MAX, i32::MAX),
            (text("9223372036854775807%"), i32::MIN, i32::MIN, i32::MIN),
        ];
        for (value, total, down, up) in cases {
            assert_eq!(value.scaled(total, Rounding::Down), Ok(down), "{value} of {total}");
            assert_eq!(value.scaled(total, Rounding::Up), Ok(up), "{value} of {total}");
        }
    }

    #[test]
    fn texts_that_are_no_percentage_do_not_scale() {
        for bad in ["", "%", "5", "5 %", "-5%", "+5%", "5.5%", "5%%", "٣%"] {
            assert_eq!(text(bad).scaled(10, Rounding::Up), Err(PercentError::NotPercent), "{bad}");
        }
        let huge = text("9223372036854775808%").scaled(10, Rounding::Up);
        assert_eq!(huge, Err(PercentError::OutOfRange("9223372036854775808%".to_owned())));
    }

    #[test]
    fn validation_words_refusals_as_the_api_server_does() {
        let form = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                    regex used for validation is '[0-9]+%')";
        let cases = [
            (IntOrString::Int(0), String::new()),
            (text("100%"), String::new()),
            (text("0200%"), r#"p: Invalid value: "0200%": must not be greater than 100%"#.to_owned()),
            (text("99999999999999999999%"), {
                r#"p: Invalid value: "99999999999999999999%": must not be greater than 100%"#.to_owned()
            }),
            (IntOrString::Int(-1), "p: Invalid value: -1: must be greater than or equal to 0".to_owned()),
            (text("-1%"), format!(r#"p: Invalid value: "-1%": {form}"#)),
            (text("x"), format!(r#"p: Invalid value: "x": {form}"#)),
        ];
        for (value, expected) in cases {
            let (path, mut errors) = (Path::new("p"), ErrorList::new());
            value.validate_not_negative(&path, &mut errors);
            value.validate_at_most_100_percent(&path, &mut errors);
            assert_eq!(errors.to_string(), expected);
        }
    }

    #[test]
    fn json_keeps_numbers_and_texts_apart() {
        for json in ["5", "-2147483648", r#""5""#, r#""50%""#] {
            let value: IntOrString = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
        for json in ["2147483648", "1.5", "true", "null", "[]"] {
            let error = serde_json::from_str::<IntOrString>(json).unwrap_err().to_string();
            assert!(error.contains("a 32-bit integer or a string"), "{json}: {error}");
        }
    }
}
