//! How a refused value is shown in a message.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

/// A refused value, already in the form in which Go's `field.Error` prints it: strings quoted, numbers and
/// booleans plain, everything else as JSON.
///
/// Made with `into()` from strings, integers, booleans and [`Value`]s, and with [`BadValue::json`] from
/// anything that serialises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    /// Shows `value` as JSON, as the API server does with objects and lists. A string is shown quoted.
    ///
    /// A value that cannot be serialised is shown as `<unprintable value>`: a message about a wrong field must
    /// not fail on its own account.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Self {
        serde_json::to_value(value).map_or_else(|_| Self("<unprintable value>".to_owned()), Self::from)
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl From<&str> for BadValue {
    fn from(value: &str) -> Self {
        Self(quote(value))
    }
}

impl From<&String> for BadValue {
    fn from(value: &String) -> Self {
        Self(quote(value))
    }
}

impl From<String> for BadValue {
    fn from(value: String) -> Self {
        Self(quote(&value))
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => Self(quote(text)),
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => Self(go_float(float)),
                _ => Self(number.to_string()),
            },
            other => Self(go_json(other)),
        }
    }
}

impl From<Value> for BadValue {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

macro_rules! plain_bad_values {
    ($($kind:ty),+) => {
        $(impl From<$kind> for BadValue {
            fn from(value: $kind) -> Self {
                Self(value.to_string())
            }
        })+
    };
}

plain_bad_values!(bool, i32, i64, u8, u16, u32, u64, usize);

/// Quotes a string as Go's `strconv.Quote` (and `%q`) does: printable characters stay, all others become
/// Go escapes such as `\n`, `\x00` or `\u200b`.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        push_quoted(&mut quoted, c);
    }
    quoted.push('"');
    quoted
}

fn push_quoted(quoted: &mut String, c: char) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ if is_printable(c) => return quoted.push(c),
        _ => "",
    };
    quoted.push_str(short);
    if short.is_empty() {
        let code = u32::from(c);
        // Writing to a String cannot fail.
        let _ = match code {
            0..0x20 | 0x7f => write!(quoted, "\\x{code:02x}"),
            0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
            _ => write!(quoted, "\\U{code:08x}"),
        };
    }
}

/// Go's `unicode.IsPrint`, by way of Rust's own table of printable characters, which follows the same Unicode
/// categories. The letter in front is there because Rust escapes a combining mark at the start of a string,
/// and Go does not.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{7f}' => false,
        _ => format!("a{c}").escape_debug().nth(1) == Some(c),
    }
}

/// JSON as Go's `json.Marshal` writes it: it escapes what could end a script element in a web page.
fn go_json(value: &Value) -> String {
    let mut json = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            _ => json.push(c),
        }
    }
    json
}

/// A float as Go's `%v` writes it: with an exponent below 1e-4 and from 1e21 on.
fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent @ (..-4 | 21..)) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{BadValue, quote};

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        let cases = [
            ("", r#""""#),
            ("a b", r#""a b""#),
            (r#"say "hi""#, r#""say \"hi\"""#),
            (r"back\slash", r#""back\\slash""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1f}\u{7f}", r#""\x00\x1f\x7f""#),
            ("Māori ☺ 日本", r#""Māori ☺ 日本""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{80}\u{a0}\u{200b}\u{feff}", r#""\u0080\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
            ("it's", r#""it's""#),
            ("<&>", r#""<&>""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected, "{text:?}");
        }
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let cases: [(BadValue, &str); 14] = [
            ("x".into(), r#""x""#),
            (String::from("x").into(), r#""x""#),
            ((-1_i32).into(), "-1"),
            (u64::MAX.into(), "18446744073709551615"),
            (true.into(), "true"),
            (json!(null).into(), "null"),
            (json!("x").into(), r#""x""#),
            (json!(-7).into(), "-7"),
            (json!(1.5).into(), "1.5"),
            (json!(1e21).into(), "1e+21"),
            (json!(0.000_01).into(), "1e-05"),
            (json!({"b": [1, "<x>"], "a": null}).into(), r#"{"a":null,"b":[1,"\u003cx\u003e"]}"#),
            (BadValue::json(&["a", "b&c"]), r#"["a","b\u0026c"]"#),
            (BadValue::json("text"), r#""text""#),
        ];
        for (value, expected) in cases {
            assert_eq!(value.into_text(), expected);
        }
    }
}
