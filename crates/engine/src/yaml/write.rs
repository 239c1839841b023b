//! Values in, YAML out: block style with kubectl's indentation, the same for readers of YAML 1.1 and 1.2.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::resolve::{Scalar, number_of_float, resolve};
use crate::hidden::is_hidden;

/// A key with more bytes gets the form `? key`: a plain one must end within 1024 characters (YAML 1.2.2, 7.4.2).
const LONGEST_SIMPLE_KEY: usize = 1000;

/// Prints a value as YAML that ends with a line break.
///
/// [`read`](super::read()) gives the same value back, apart from `null` (an empty document), floats without a fraction
/// and integers above `i64::MAX`, which come back as what Kubernetes makes of them.
pub fn write(value: &Value) -> String {
    write_with(value, Lists::AtKey)
}

fn write_with(value: &Value, lists: Lists) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => mapping(&mut out, fields, 0, lists),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0, lists),
        _ => {
            leaf(&mut out, value, None);
            out.push('\n');
        }
    }
    out
}

/// Where lists are that are the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    /// In the column of the key, as kubectl prints them.
    AtKey,
    /// Two columns behind the key, as many people write them.
    Indented,
}

impl Lists {
    const fn indent(self, of_key: usize) -> usize {
        match self {
            Self::AtKey => of_key,
            Self::Indented => of_key.saturating_add(2),
        }
    }
}

/// Prints values as documents of one stream, with `---` lines between them.
pub fn write_documents(values: &[Value]) -> String {
    write_documents_with(values, Lists::AtKey)
}

/// The same, with lists in other places.
pub fn write_documents_with(values: &[Value], lists: Lists) -> String {
    values.iter().map(|value| write_with(value, lists)).collect::<Vec<_>>().join("---\n")
}

/// The first key goes where the cursor is, the others on lines of their own with `indent` spaces.
fn mapping(out: &mut String, fields: &Map<String, Value>, indent: usize, lists: Lists) {
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            spaces(out, indent);
        }
        let start = out.len();
        string(out, name, None);
        if out.len() - start > LONGEST_SIMPLE_KEY {
            out.insert_str(start, "? ");
            out.push('\n');
            spaces(out, indent);
        }
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                spaces(out, indent + 2);
                mapping(out, fields, indent + 2, lists);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                spaces(out, lists.indent(indent));
                list(out, items, lists.indent(indent), lists);
            }
            _ => {
                out.push(' ');
                leaf(out, value, Some(indent + 2));
                out.push('\n');
            }
        }
    }
}

/// The first `-` goes where the cursor is, the others on lines of their own with `indent` spaces.
fn list(out: &mut String, items: &[Value], indent: usize, lists: Lists) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            spaces(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => mapping(out, fields, indent + 2, lists),
            Value::Array(items) if !items.is_empty() => list(out, items, indent + 2, lists),
            _ => {
                leaf(out, item, Some(indent + 2));
                out.push('\n');
            }
        }
    }
}

fn spaces(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// A scalar or an empty collection. A string may become a block scalar where `block_indent` is given.
fn leaf(out: &mut String, value: &Value, block_indent: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => string(out, text, block_indent),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// YAML 1.1 takes an exponent only behind a point, and with a sign: `1.0e+21`.
fn number_text(number: &Number) -> String {
    let (None, None, Some(float)) = (number.as_i64(), number.as_u64(), number.as_f64()) else {
        return number.to_string();
    };
    let text = match number_of_float(float) {
        Some(number) => number.to_string(),
        None => return "null".to_owned(),
    };
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn string(out: &mut String, text: &str, block_indent: Option<usize>) {
    match block_indent {
        Some(indent) if suits_block(text) => block(out, text, indent),
        _ if suits_plain(text) => out.push_str(text),
        _ => double_quoted(out, text),
    }
}

fn suits_plain(text: &str) -> bool {
    let bad_start = |first: char| first.is_whitespace() || "?:,[]{}#&*!|>'\"%@`=<~".contains(first);
    !text.starts_with(bad_start)
        && text != "-"
        && !text.starts_with("- ")
        && !text.starts_with("---")
        && !text.starts_with("...")
        && !text.ends_with(|last: char| last.is_whitespace() || last == ':')
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(is_printable)
        && !may_resolve(text)
}

/// Would a reader of YAML 1.1 or 1.2 make something else than a string of it?
fn may_resolve(text: &str) -> bool {
    if !matches!(resolve(None, true, text), Ok(Scalar::Text(_))) {
        return true;
    }
    let word = text.to_ascii_lowercase();
    if matches!(word.as_str(), "y" | "yes" | "true" | "on" | "n" | "no" | "false" | "off" | "null") {
        return true;
    }
    // Numbers to any base, sexagesimal numbers, dates and times: `1_000`, `0o17`, `12:30:45`, `2001-01-01t00:00:00z`.
    let numeric = |byte: u8| byte.is_ascii_hexdigit() || b"xo_.:+-tz ".contains(&byte);
    word.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && word.contains(|character: char| character.is_ascii_digit() || character == '.')
        && (word.bytes().all(numeric) || matches!(word.trim_start_matches(['+', '-']), ".inf" | ".nan"))
}

/// Neither a control character nor a line break of YAML 1.1 or 1.2, and visible.
fn is_printable(character: char) -> bool {
    !is_hidden(character)
        && matches!(character, ' '..='~' | '\u{a1}'..='\u{2027}' | '\u{202a}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// Several lines that a block scalar holds exactly.
fn suits_block(text: &str) -> bool {
    text.contains('\n')
        && text.contains(|character| character != '\n')
        && text.chars().all(|character| is_printable(character) || matches!(character, '\n' | '\t'))
        && text.split('\n').all(|line| line.is_empty() || !line.trim().is_empty())
}

fn block(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    // A reader finds the indentation by the first line, unless that is blank or starts with white space.
    if text.starts_with([' ', '\t', '\n']) {
        out.push('2');
    }
    let body = text.strip_suffix('\n');
    match body {
        None => out.push('-'),
        Some(body) if body.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    for line in body.unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            spaces(out, indent);
            out.push_str(line);
        }
    }
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            character if is_printable(character) => out.push(character),
            character => {
                // Writing to a String cannot fail. What is not printable is below U+10000.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
        }
    }
    out.push('"');
}
