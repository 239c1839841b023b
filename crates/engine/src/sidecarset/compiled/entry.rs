//! What the record of a pod says of a set.

use serde_json::Value;

use super::Pieces;

/// The name of the revision of a form: that of the set, and the digits of the hash.
pub fn revision_name(set: &str, hash: &str) -> String {
    let digits = hash.rsplit(':').next().unwrap_or_default();
    format!("{set}-{digits}")
}

/// JSON with sorted keys.
pub(super) fn entry(name: &str, hash: &str, containers: &Pieces, init_containers: &Pieces) -> String {
    let mut json = String::with_capacity(192);
    push_names(&mut json, r#"{"containers":["#, containers);
    push_text(&mut json, r#"],"hash":"#, hash);
    push_names(&mut json, r#","initContainers":["#, init_containers);
    push_text(&mut json, r#"],"revision":"#, &revision_name(name, hash));
    json.push('}');
    json
}

fn push_names(json: &mut String, before: &str, pieces: &Pieces) {
    json.push_str(before);
    for (position, piece) in pieces.iter().enumerate() {
        push_text(json, if position == 0 { "" } else { "," }, &piece.name);
    }
}

/// Adds a text in quotes. Only sets that were stored while the webhook was away have names that need escapes.
fn push_text(json: &mut String, before: &str, text: &str) {
    json.push_str(before);
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':')) {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&Value::from(text).to_string());
    }
}
