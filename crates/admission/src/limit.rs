//! How much of an object is decoded.
//!
//! A decoded value takes many times the bytes that it was written in: a map of one empty key, seven bytes in a list, takes six
//! hundred. So values are counted in the text before anything is built from it.

use serde_json::value::RawValue;

/// The most that is decoded of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectLimit {
    /// Bytes of the object as JSON.
    pub bytes: usize,
    /// Values in it, nested ones included.
    pub values: usize,
}

impl ObjectLimit {
    /// What can be stored: etcd's default `--max-request-bytes` is 1.5 MiB, and custom resources are stored as JSON. Forty
    /// thousand values are one for every 39 bytes of that, managed fields included, and take at most 26 MB decoded.
    pub const STORABLE: Self = Self { bytes: 1536 * 1024, values: 40_000 };

    /// Whether an object is within the limit.
    ///
    /// # Errors
    /// A sentence that names the limit and what was found.
    pub fn check(self, object: &RawValue) -> Result<(), String> {
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
        let limit = ObjectLimit { bytes: 30, values: 4 };
        let check = |json: &str| limit.check(serde_json::from_str(json).unwrap());
        assert_eq!(check(r#"{"a":[1,2]}"#), Ok(()));
        assert_eq!(check(r#"{"a":[1,2,3]}"#), Err("the object holds more than 4 values".to_owned()));
        let long = format!("\"{}\"", "x".repeat(30));
        assert_eq!(check(&long), Err("the object has 32 bytes, more than the 30 that are read".to_owned()));
    }
}
