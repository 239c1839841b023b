//! How many values a JSON text holds, before it is decoded.

/// The number of values in a text that is JSON, of keys too: what a tree of it costs in memory follows that and not its bytes.
pub fn values(json: &str) -> usize {
    let (mut values, mut in_string, mut escaped) = (1_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => values = values.saturating_add(1),
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings() {
        for (json, expected) in [
            ("1", 1),
            (r#""a,b:[{""#, 1),
            (r#""a\",[""#, 1),
            (r#""\\""#, 1),
            ("[1,2]", 3),
            (r#"{"a":[{"":0},{"":0}]}"#, 9),
        ] {
            assert_eq!(values(json), expected, "{json}");
        }
    }
}
