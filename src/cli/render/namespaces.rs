//! Namespaces among the objects that are rendered: once the same stream is applied they are there, whatever their place in it.

use std::io::{self, Write};

use super::super::offline::World;
use crate::manifest::{Identity, Manifest, identity};
use crate::standalone::{Validate, namespaces};

/// Takes the namespaces into the world. Returns whether there was a warning; `None` when one cannot be used.
///
/// # Errors
/// When `stderr` cannot be written.
pub fn learn(
    world: &mut World,
    manifests: &[Manifest],
    validate: Validate,
    stderr: &mut dyn Write,
) -> io::Result<Option<bool>> {
    let mut own: Vec<Manifest> = Vec::new();
    for manifest in manifests {
        // The same twice, as charts that are put together bring it, is no question.
        if is_namespace(manifest) && !own.iter().any(|known| known.value == manifest.value) {
            own.push(manifest.clone());
        }
    }
    match namespaces(&own, validate) {
        Ok(found) => {
            for warning in &found.warnings {
                writeln!(stderr, "warning: {warning}")?;
            }
            for (name, (origin, labels)) in found.namespaces {
                if world.snapshot.namespaces.labels(&name).is_some_and(|known| *known != labels) {
                    writeln!(
                        stderr,
                        "{origin}: note: Namespace {name} has other labels than among --manifests, and these count"
                    )?;
                }
                world.learn(name, labels);
            }
            Ok(Some(!found.warnings.is_empty()))
        }
        Err(unusable) => {
            for line in unusable.lines() {
                writeln!(stderr, "{line}")?;
            }
            Ok(None)
        }
    }
}

/// Whether it is a namespace that pods can name; one with a generated name is not.
fn is_namespace(manifest: &Manifest) -> bool {
    let has_generated_name = manifest.value.pointer("/metadata/generateName").is_some_and(|prefix| !prefix.is_null());
    identity(&manifest.value).is_ok_and(|identity| {
        let Identity { api_version, kind, name, .. } = &identity;
        (api_version.as_str(), kind.as_str()) == ("v1", "Namespace") && !(name.is_empty() && has_generated_name)
    })
}
