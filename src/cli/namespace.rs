//! A namespace on the command line.

use admission::format::names::dns1123_label;

/// Takes the name of a namespace as the API server takes it: a wrong one would match nothing, without a word.
///
/// # Errors
/// What is wrong with the name.
pub fn namespace(text: &str) -> Result<String, String> {
    let faults = dns1123_label(text);
    if faults.is_empty() { Ok(text.to_owned()) } else { Err(faults.join("; ")) }
}
