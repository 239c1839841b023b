//! How much of an object is decoded.
//!
//! A decoded value takes many times the bytes that it was written in: a map of one empty key, seven bytes in a list, takes six
//! hundred. So values are counted in the text before anything is built from it.

use serde_json::value::RawValue;

use crate::raw;

/// The most that is decoded of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectLimit {
    /// Bytes of the object as JSON.
    pub bytes: usize,
    /// Values in it, nested ones included.
    pub values: usize,
    /// Elements of lists in its spec: of few bytes each, they cost far more than values elsewhere.
    pub lists: &'static [(&'static str, usize)],
}

impl ObjectLimit {
    /// What can be stored: etcd's default `--max-request-bytes` is 1.5 MiB, and custom resources are stored as JSON. Forty
    /// thousand values are one for every 39 bytes of that, managed fields included, and take at most 26 MB decoded.
    pub const STORABLE: Self = Self { bytes: 1536 * 1024, values: 40_000, lists: &[] };

    /// Whether an object is within the limit.
    ///
    /// # Errors
    /// A sentence that names the limit and what was found.
    pub fn check(self, object: &RawValue) -> Result<(), String> {
        self.check_size(object)?;
        // An element takes two bytes, with its comma.
        let may_be_longer = self.shortest().is_some_and(|most| object.get().len() > 2 * most);
        let spec = if may_be_longer { raw::member(object, "spec") } else { None };
        spec.map_or(Ok(()), |spec| self.check_lists(spec))
    }

    /// As [`Self::check`], for what an object has as its spec.
    ///
    /// # Errors
    /// A sentence that names the limit and what was found.
    pub fn check_spec(self, spec: &RawValue) -> Result<(), String> {
        self.check_size(spec)?;
        self.check_lists(spec)
    }

    fn check_size(self, object: &RawValue) -> Result<(), String> {
        let text = object.get();
        if text.len() > self.bytes {
            return Err(format!("the object has {} bytes, more than the {} that are read", text.len(), self.bytes));
        }
        // Fewer bytes than values are allowed need no counting.
        if text.len() > self.values && values(text, self.values) > self.values {
            return Err(format!("the object holds more than {} values", self.values));
        }
        Ok(())
    }

    fn shortest(self) -> Option<usize> {
        self.lists.iter().map(|(_, most)| *most).min()
    }

    fn check_lists(self, spec: &RawValue) -> Result<(), String> {
        let mut found = Ok(());
        raw::members(spec, |key, list| {
            let limit = self.lists.iter().find(|(name, _)| *name == key.name());
            if let Some((name, most)) = limit.filter(|(_, most)| is_longer(list, *most)) {
                found = Err(format!("spec.{name} holds more than {most} elements"));
            }
        });
        found
    }
}

/// Whether a list has more elements. Counting ends at the first that is too much.
fn is_longer(list: &RawValue, most: usize) -> bool {
    let mut left = most;
    let counted = raw::elements(list, |_| {
        left = left.checked_sub(1).ok_or(())?;
        Ok::<(), ()>(())
    });
    counted.is_err()
}

/// The number of values in a JSON text: one more than there are commas and opening brackets outside of strings, so that an empty
/// list or map counts as two. Counting ends above `enough`.
pub fn values(json: &str, enough: usize) -> usize {
    let mut bytes = json.bytes();
    let mut count = 1;
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b'[' | b'{' => count += 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        if count > enough {
            break;
        }
    }
    count
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (json, count) in [
            ("1", 1),
            ("[1,2]", 3),
            (r#"{"a":1,"b":[1,2]}"#, 5),
            (r#"{"a,[{":"\",\\","b":",,"}"#, 3),
            (r#"[{"":0},{"":0}]"#, 5),
        ] {
            assert_eq!(values(json, 100), count, "{json}");
        }
    }

    #[test]
    fn what_is_beyond_a_limit_is_named() {
        let limit = ObjectLimit { bytes: 30, values: 4, lists: &[] };
        let check = |json: &str| limit.check(serde_json::from_str(json).unwrap());
        assert_eq!(check(r#"{"a":[1,2]}"#), Ok(()));
        assert_eq!(check(r#"{"a":[1,2,3]}"#), Err("the object holds more than 4 values".to_owned()));
        let long = format!("\"{}\"", "x".repeat(30));
        assert_eq!(check(&long), Err("the object has 32 bytes, more than the 30 that are read".to_owned()));
    }

    #[test]
    fn a_spec_alone_has_the_limits_of_one_in_an_object() {
        let limit = ObjectLimit { bytes: 30, values: 5, lists: &[("a", 2)] };
        let check = |json: &str| limit.check_spec(serde_json::from_str(json).unwrap());
        assert_eq!(check(r#"{"a":[1,2]}"#), Ok(()));
        assert_eq!(check(r#"{"a":[1,2,3]}"#), Err("spec.a holds more than 2 elements".to_owned()));
        assert_eq!(check(r#"{"b":[1,2,3,4]}"#), Err("the object holds more than 5 values".to_owned()));
    }

    #[test]
    fn a_list_of_the_spec_is_counted_up_to_its_limit() {
        let limit = ObjectLimit { lists: &[("a", 2), ("b", 3)], ..ObjectLimit::STORABLE };
        let check = |json: &str| limit.check(serde_json::from_str(json).unwrap());
        for json in [
            r#"{"spec":{"a":[1,2],"b":[1,2,3],"c":[1,2,3,4]},"a":[1,2,3]}"#,
            r#"{"spec":{"a":{"b":[1,2,3,4]}}}"#,
            r#"{"spec":7}"#,
        ] {
            assert_eq!(check(json), Ok(()), "{json}");
        }
        for (json, name, most) in
            [(r#"{"spec":{"a":[{},[]," "]}}"#, "a", 2), (r#"{"x":1,"spec":{"c":[],"b":[1,2,3,4]}}"#, "b", 3)]
        {
            assert_eq!(check(json), Err(format!("spec.{name} holds more than {most} elements")), "{json}");
        }
    }
}
