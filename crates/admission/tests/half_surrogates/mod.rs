//! Escapes of half a surrogate pair, such as `\ud800` alone: JSON, and no text.

use std::borrow::Cow;

/// Replaces each by U+FFFD, as the decoder of the API server does (`unquote` of Go's encoding/json). A conversion copies them as they
/// were sent, and `serde_json` reads none.
pub fn without_half_surrogates(json: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        at = match (unit(json, start), unit(json, start + ESCAPE)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 2 * ESCAPE,
            (Some(0xd800..=0xdfff), _) => {
                repaired.push_str(json.get(copied..start).unwrap_or_default());
                repaired.push_str("\\ufffd");
                copied = start + ESCAPE;
                copied
            }
            // What follows a backslash takes part in its escape, also another backslash.
            _ => start + 1 + json.get(start + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
        };
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(repaired)
}

/// Bytes of `\uXXXX`.
const ESCAPE: usize = 6;

/// The number of an escape `\uXXXX` that begins here.
fn unit(json: &str, start: usize) -> Option<u16> {
    let digits = json.get(start..start + ESCAPE)?.strip_prefix("\\u")?;
    // A sign is no digit.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[test]
fn halves_become_the_replacement_character_and_all_else_stays() {
    for (json, expected) in [
        (r#""\ud800""#, r#""\ufffd""#),
        (r#""\uDC00x""#, r#""\ufffdx""#),
        (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
        (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
        (r#""\ud800é""#, r#""\ufffdé""#),
        (r#""\ud800\n\\ud800""#, r#""\ufffd\n\\ud800""#),
        (r#""\\ud800 \\\ud800""#, r#""\\ud800 \\\ufffd""#),
        (r#""\u+800 \ud8 \é""#, r#""\u+800 \ud8 \é""#),
        (r"\", r"\"),
        ("", ""),
    ] {
        assert_eq!(without_half_surrogates(json), expected);
    }
    assert!(matches!(without_half_surrogates(r#"{"a":"\n\u0041"}"#), Cow::Borrowed(_)));
}
