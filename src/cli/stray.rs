//! Files that are named without the flag that says what they are for.

use std::path::Path;

/// Refuses an argument that has no flag: a file of pods and a file of sets are not the same.
///
/// # Errors
/// Always: which flags there are.
pub fn stray(text: &str) -> Result<String, String> {
    Err(needs_flag(text))
}

/// What to write in place of a file without a flag.
pub fn needs_flag(text: &str) -> String {
    format!(
        "a file needs a flag: -f {text} if it has pods and what makes pods, --manifests {text} if it has sets and namespaces"
    )
}

/// Whether an argument names a file rather than an object of a cluster, whose name has no slash.
pub fn is_file(text: &str) -> bool {
    let is_manifest = |extension: &std::ffi::OsStr| ["yaml", "yml", "json"].iter().any(|known| extension == *known);
    text == "-" || text.contains('/') || Path::new(text).extension().is_some_and(is_manifest)
}
