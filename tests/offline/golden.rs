//! Recorded output. `UPDATE_GOLDEN=1 cargo test --test offline` records it anew; check the difference before committing it.

use std::fs;
use std::path::Path;

use outrider::cli::diff::unified;

/// Whether output is recorded instead of compared.
pub fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// Compares `found` with the recording, or records it. Returns what differs.
pub fn differs(recording: &Path, found: &str) -> Option<String> {
    if updating() {
        fs::create_dir_all(recording.parent().unwrap()).unwrap();
        fs::write(recording, found).unwrap();
        return None;
    }
    let expected = fs::read_to_string(recording).unwrap_or_default();
    let difference = || format!("{}\n{}", recording.display(), unified(&expected, found, "recorded", "found"));
    (expected != found).then(difference)
}

/// Panics with the difference when `found` is not what `tests/offline/golden/<name>` holds.
pub fn assert(name: &str, found: &str) {
    if let Some(difference) = differs(&Path::new("tests/offline/golden").join(name), found) {
        panic!("{difference}");
    }
}
