//! How much a `SidecarSet` may hold.
//!
//! A default or a fault is many times as long as the few bytes that cause it, so a body within the limits of the API server
//! could make a reply of a gigabyte. The limit is far above what any set needs, and far below that.

use std::fmt;

use admission::{ObjectLimit, raw};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Most values, nested ones included, in the spec of a set.
pub const MAX_VALUES: usize = 20_000;

/// Most elements of lists in the spec of a set, each with its limit. Every one becomes part of every pod of the set.
pub const LISTS: &[(&str, usize)] =
    &[("containers", 100), ("initContainers", 100), ("volumes", 200), ("imagePullSecrets", 200)];

/// How much of a set is decoded.
pub const LIMIT: ObjectLimit = ObjectLimit { lists: LISTS, ..ObjectLimit::STORABLE };

/// Whether a stored set is within what may be written. Nothing is decoded for that.
///
/// # Errors
/// A sentence that names the limit and what was found.
pub fn check(object: &RawValue) -> Result<(), String> {
    LIMIT.check(object)?;
    raw::member(object, "spec").map_or(Ok(()), check_spec)
}

/// As [`check`], for a spec alone.
///
/// # Errors
/// A sentence that names the limit and what was found.
pub fn check_spec(spec: &RawValue) -> Result<(), String> {
    LIMIT.check_spec(spec)?;
    let mut values = 0;
    // Fewer bytes than values are allowed need no counting.
    let is_counted = spec.get().len() <= MAX_VALUES
        || Counter(&mut values).deserialize(&mut serde_json::Deserializer::from_str(spec.get())).is_ok();
    if is_counted && values <= MAX_VALUES {
        Ok(())
    } else {
        Err(format!("spec holds more than {MAX_VALUES} values, or is too deep"))
    }
}

/// Counts values as [`count_values`] does, in a text.
struct Counter<'c>(&'c mut usize);

impl<'de> DeserializeSeed<'de> for Counter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        *self.0 += 1;
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Counter(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Counter(self.0))?;
        }
        Ok(())
    }
}

/// What of a spec is larger than may be written: the list, or none for all values together; its size, and the most that it may have.
pub fn beyond(spec: &Value) -> Option<(Option<&'static str>, usize, usize)> {
    let values = || Some(count_values(spec)).filter(|values| *values > MAX_VALUES);
    let list = too_long(spec).map(|(list, length, most)| (Some(list), length, most));
    list.or_else(|| values().map(|values| (None, values, MAX_VALUES)))
}

/// The list of a spec that is too long, its length, and the most that it may have.
pub fn too_long(spec: &Value) -> Option<(&'static str, usize, usize)> {
    let length = |name: &str| spec.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    LISTS.iter().map(|(name, most)| (*name, length(name), *most)).find(|(_, length, most)| length > most)
}

/// The number of values in `value`, itself and nested ones included.
pub fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count_values).sum(),
        Value::Object(map) => map.values().map(count_values).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_a_text_are_counted_as_those_of_what_it_is_decoded_into() {
        let checked = |values: usize| {
            let one = json!({"a": [], "b": {}, "c": [1, -1, 0.5, true, null, "[,{"]});
            // A list, and the values of each of its elements.
            assert_eq!(count_values(&one), 10);
            let spec = json!({"x": vec![one; values / 10]});
            let text = spec.to_string();
            let object = format!(r#"{{"metadata":{{}},"spec":{text}}}"#);
            let checked = check_spec(serde_json::from_str(&text).unwrap());
            assert_eq!(checked, check(serde_json::from_str(&object).unwrap()));
            assert_eq!(checked.is_ok(), beyond(&spec).is_none(), "{}", count_values(&spec));
            checked
        };
        assert_eq!(checked(19_980), Ok(()));
        assert_eq!(checked(20_000), Err("spec holds more than 20000 values, or is too deep".to_owned()));
    }
}
