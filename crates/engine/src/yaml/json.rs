//! JSON documents one after the other, as kubectl takes them; keys written twice are errors.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::resolve::{number_of_float, number_of_unsigned};
use super::{Document, Error, Problem};

/// What the JSON reader made of a text.
pub(super) struct Prefix {
    pub(super) documents: Vec<Document>,
    /// Byte offset behind the last document.
    pub(super) end: usize,
    /// Why it stopped there, if it did not reach the end of the text.
    pub(super) stopped: Option<Stop>,
}

pub(super) enum Stop {
    /// Not JSON from here on; it may be YAML.
    NotJson(Error),
    /// JSON, and wrong.
    Refused(Error),
}

pub(super) fn read(text: &str) -> Prefix {
    let mut prefix = Prefix { documents: Vec::new(), end: 0, stopped: None };
    let mut line = 1;
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<UniqueKeys>();
    loop {
        let item = stream.next();
        match item {
            None => return prefix,
            Some(Ok(UniqueKeys(value))) => {
                let consumed = text.get(prefix.end..stream.byte_offset()).unwrap_or_default();
                let content = consumed.trim_start();
                line += line_breaks(consumed) - line_breaks(content);
                if !value.is_null() {
                    prefix.documents.push(Document { value, line });
                }
                line += line_breaks(content);
                prefix.end = stream.byte_offset();
            }
            Some(Err(error)) => {
                let stop = if error.is_data() { Stop::Refused } else { Stop::NotJson };
                prefix.stopped = Some(stop(position(&error)));
                return prefix;
            }
        }
    }
}

fn line_breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn position(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    Error {
        line: error.line(),
        column: error.column(),
        path: String::new(),
        problem: Problem::Syntax(text.strip_suffix(&suffix).unwrap_or(&text).to_owned()),
    }
}

struct UniqueKeys(Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(Value::Bool(bool))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_u64<E>(self, unsigned: u64) -> Result<Value, E> {
        Ok(Value::Number(number_of_unsigned(unsigned)))
    }

    fn visit_f64<E: serde::de::Error>(self, float: f64) -> Result<Value, E> {
        number_of_float(float).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(UniqueKeys(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key {key:?}")));
            }
            let UniqueKeys(value) = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
