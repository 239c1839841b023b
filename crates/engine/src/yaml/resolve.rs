//! What a YAML scalar means: `resolve` of goyaml v2 (resolve.go), which sigs.k8s.io/yaml uses, and its way to JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::Problem;

const CORE: &str = "tag:yaml.org,2002:";

/// A scalar after resolution. Integers and floats are kept apart because they make different keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

impl Scalar {
    pub(super) fn into_value(self) -> Result<Value, Problem> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(bool),
            Self::Int(int) => int.into(),
            Self::Unsigned(unsigned) => Value::Number(number_of_unsigned(unsigned)),
            Self::Float(float) => {
                Value::Number(number_of_float(float).ok_or_else(|| Problem::NotFinite(float_key(float)))?)
            }
            Self::Text(text) => Value::String(text),
        })
    }

    /// The key that sigs.k8s.io/yaml (`convertToJSONableObject`) makes of the scalar.
    pub(super) fn into_key(self) -> Result<String, Problem> {
        match self {
            Self::Null => Err(Problem::UnsupportedKey("null")),
            Self::Bool(bool) => Ok(bool.to_string()),
            Self::Int(int) => Ok(int.to_string()),
            Self::Unsigned(_) => Err(Problem::UnsupportedKey("an integer of more than 63 bits")),
            Self::Float(float) => Ok(float_key(float)),
            Self::Text(text) => Ok(text),
        }
    }
}

/// Resolves a scalar. `tag` is the full tag, if one is written; `plain` says that the text is not quoted.
pub(super) fn resolve(tag: Option<&str>, plain: bool, text: &str) -> Result<Scalar, Problem> {
    let Some(tag) = tag else {
        return Ok(if plain { implicit(text) } else { Scalar::Text(text.to_owned()) });
    };
    let mismatch = || Problem::TagMismatch {
        tag: tag.strip_prefix(CORE).map_or_else(|| tag.to_owned(), |short| format!("!!{short}")),
        value: text.to_owned(),
    };
    match (tag.strip_prefix(CORE), implicit(text)) {
        (Some("binary"), _) => binary(text),
        (Some("bool"), scalar @ Scalar::Bool(_))
        | (Some("null"), scalar @ Scalar::Null)
        | (Some("int"), scalar @ (Scalar::Int(_) | Scalar::Unsigned(_)))
        | (Some("float"), scalar @ Scalar::Float(_)) => Ok(scalar),
        #[allow(clippy::cast_precision_loss)] // goyaml casts in the same way
        (Some("float"), Scalar::Int(int)) => Ok(Scalar::Float(int as f64)),
        (Some("timestamp"), Scalar::Text(value)) if looks_like_date(&value) => Ok(Scalar::Text(value)),
        (Some("bool" | "null" | "int" | "float" | "timestamp"), _) => Err(mismatch()),
        _ => Ok(Scalar::Text(text.to_owned())),
    }
}

fn implicit(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => float(&without_separators(text)),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let digits = text.replace('_', "");
            int(&digits).or_else(|| float(&digits)).or_else(|| signed_binary(&digits))
        }
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Go's `strconv.ParseFloat` takes `_` between two digits.
fn without_separators(text: &str) -> Cow<'_, str> {
    let separates =
        |window: &[u8]| matches!(window, [before, b'_', after] if before.is_ascii_digit() && after.is_ascii_digit());
    let separators = text.as_bytes().windows(3).filter(|window| separates(window)).count();
    if separators > 0 && separators == text.matches('_').count() { text.replace('_', "").into() } else { text.into() }
}

/// Go's `strconv.ParseInt` with base 0, then `ParseUint`.
fn int(text: &str) -> Option<Scalar> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'b' | b'B', _, ..] => (2, unsigned.get(2..)?),
        [b'0', b'o' | b'O', _, ..] => (8, unsigned.get(2..)?),
        [b'0', b'x' | b'X', _, ..] => (16, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(int) => Some(Scalar::Int(int)),
        // ParseUint takes no sign.
        Err(_) => (!text.starts_with('+')).then_some(Scalar::Unsigned(magnitude)),
    }
}

/// goyaml's own branch for binary numbers lets a sign follow the prefix: `0b-11` is -3.
fn signed_binary(text: &str) -> Option<Scalar> {
    let signed = text.strip_prefix("0b")?;
    let digits = signed.strip_prefix(['+', '-'])?;
    if !digits.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return None;
    }
    i64::from_str_radix(signed, 2).ok().map(Scalar::Int)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, within the range of a float64.
fn float(text: &str) -> Option<Scalar> {
    // Rust's grammar for f64 is this one, and the words `inf`, `infinity` and `nan`.
    if !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    float.is_finite().then_some(Scalar::Float(float))
}

fn binary(text: &str) -> Result<Scalar, Problem> {
    // Go's base64 decoder skips line breaks.
    let joined: String = text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
    let bytes = STANDARD.decode(joined).map_err(|_| Problem::Binary)?;
    String::from_utf8(bytes).map(Scalar::Text).map_err(|_| Problem::Binary)
}

fn looks_like_date(text: &str) -> bool {
    let (year, rest) = text.split_at_checked(4).unwrap_or_default();
    !year.is_empty() && year.bytes().all(|digit| digit.is_ascii_digit()) && rest.starts_with('-')
}

/// The number that the API server sees when a float goes through Go's JSON: `1.0` is written `1` and read as an
/// integer. `None` for infinities and NaN.
pub(super) fn number_of_float(float: f64) -> Option<Number> {
    // Both Go and Rust write the shortest digits that give the same float, filled up with zeros.
    match float.to_string().parse::<i64>() {
        Ok(int) => Some(int.into()),
        Err(_) => Number::from_f64(float),
    }
}

/// Kubernetes has integers of 64 bits with a sign, and reads larger ones as floats
/// (`UnmarshalCaseSensitivePreserveInts` of sigs.k8s.io/json).
pub(super) fn number_of_unsigned(unsigned: u64) -> Number {
    if i64::try_from(unsigned).is_ok() {
        return unsigned.into();
    }
    #[allow(clippy::cast_precision_loss)]
    number_of_float(unsigned as f64).unwrap_or_else(|| unsigned.into())
}

/// Go's `strconv.FormatFloat(float, 'g', -1, 32)`: the digits of a float32, with an exponent from 1e+06 and below 1e-04.
fn float_key(float: f64) -> String {
    #[allow(clippy::cast_possible_truncation)]
    let narrow = float as f32;
    if narrow.is_nan() {
        return ".nan".to_owned();
    }
    if narrow.is_infinite() {
        return if narrow > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{narrow:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => narrow.to_string(),
    }
}
