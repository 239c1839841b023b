//! A text as YAML.

use engine::yaml::{places, read, write, write_documents};
use serde_json::Value;

/// Checks that any text is read or refused, that what is read can be written and read again, and that scalars which another reader
/// understands in YAML 1.2's way mean the same where both versions agree.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    places(text);
    let read_text = read(text);
    scalar(text);
    let Ok(documents) = read_text else { return };
    let values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    for value in &values {
        let written = write(value);
        let again = read(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        let again: Vec<Value> = again.into_iter().map(|document| document.value).collect();
        // An empty document is none.
        if !value.is_null() {
            assert_eq!(again, std::slice::from_ref(value), "{written}");
        }
    }
    write_documents(&values);
}

/// A plain scalar that both versions of YAML read as the same type: a bool, null, a decimal integer or float, or a word.
fn scalar(text: &str) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(is_plain) || differs_on_purpose(text) {
        return;
    }
    let document = format!("key: {text}\n");
    let Ok(ours) = read(&document) else { return };
    let Ok(theirs) = serde_saphyr::from_str::<Value>(&document) else { return };
    let (ours, theirs) = (&ours[0].value["key"], &theirs["key"]);
    let same = match (ours, theirs) {
        // A float without a fraction is written as an integer, as in Go.
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => ours == theirs,
    };
    assert!(same, "{text}: ours {ours}, theirs {theirs}");
}

/// Whether YAML 1.1 as goyaml has it and YAML 1.2 mean different things.
fn differs_on_purpose(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_start_matches(['+', '-']);
    let in_one_case = text == lower || text == text.to_ascii_uppercase() || Some(text) == title(&lower).as_deref();
    // YAML 1.1 knows three spellings of each word.
    let is_word_in_mixed_case = matches!(lower.as_str(), "true" | "false" | "null") && !in_one_case;
    is_word_in_mixed_case
        || matches!(lower.as_str(), "y" | "n" | "yes" | "no" | "on" | "off" | "~")
        // Octal, binary and hexadecimal, with separators.
        || digits.starts_with('0') && digits.len() > 1 && !digits.starts_with("0.")
        || digits.contains('_')
        // A sign twice, `1.` and `1e5` and what is beyond 64 bits are read by other rules.
        || lower.len() > 15 && digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.')
        || matches!(digits, ".inf" | ".nan" | "inf" | "nan" | "infinity")
        || text.starts_with("---")
        || text.starts_with("...")
        || text == "-"
}

fn title(lower: &str) -> Option<String> {
    let mut characters = lower.chars();
    Some(characters.next()?.to_ascii_uppercase().to_string() + characters.as_str())
}
