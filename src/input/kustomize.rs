//! What a kustomization builds, by kubectl.

use std::path::Path;
use std::process::Command;

use engine::offline::manifest::Parsed;

use super::{Error, Manifest};

/// The objects that `kubectl kustomize` prints for a folder.
///
/// # Errors
///
/// When kubectl cannot be run or says that the folder is wrong, and all that is wrong in what it prints.
pub fn kustomize(folder: &Path) -> Result<Vec<Manifest>, Vec<Error>> {
    let name = folder.display().to_string();
    let failed = |error: String| vec![Error::Unreadable { path: name.clone(), error }];
    let built = Command::new("kubectl").arg("kustomize").arg("--").arg(folder).output();
    let built = built.map_err(|error| failed(format!("kubectl kustomize cannot be run: {error}")))?;
    if !built.status.success() {
        return Err(failed(format!("kubectl kustomize: {}", String::from_utf8_lossy(&built.stderr).trim())));
    }
    let mut parsed = Parsed::default();
    parsed.bytes(&name, built.stdout);
    parsed.into_result()
}
