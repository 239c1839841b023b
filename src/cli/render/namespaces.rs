//! Namespaces among the objects that are rendered or explained: once the same stream is applied they are there, whatever their place in it.

use super::super::findings::{Diagnostic, Level};
use super::super::offline::OfflineModel;
use super::super::report::CommandReport;
use crate::input::{Identity, Manifest, identity};
use crate::standalone::{FoundNamespace, Validate, namespaces};

/// Adds the namespaces to the model; `None` when one of them cannot be used, which the report says.
pub fn learn(
    model: &mut OfflineModel,
    manifests: &[Manifest],
    validate: Validate,
    report: &mut CommandReport<'_>,
) -> Option<()> {
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
                report.read(Level::Warning, warning);
            }
            for (name, FoundNamespace { origin, labels, annotations }) in found.namespaces {
                if model.snapshot.namespaces.labels(&name).is_some_and(|known| *known != labels) {
                    let text = format!("Namespace {name} has other labels than among --manifests, and these count");
                    report.add(Diagnostic::of(Level::Note, &origin, text));
                }
                model.learn(name, labels, annotations);
            }
            Some(())
        }
        Err(unusable) => {
            report.unusable(&unusable);
            None
        }
    }
}

/// Whether it is a namespace that pods can name; one with a generated name is not.
pub fn is_namespace(manifest: &Manifest) -> bool {
    let has_generated_name = manifest.value.pointer("/metadata/generateName").is_some_and(|prefix| !prefix.is_null());
    identity(&manifest.value).is_ok_and(|identity| {
        let Identity { api_version, kind, name, .. } = &identity;
        (api_version.as_str(), kind.as_str()) == ("v1", "Namespace") && !(name.is_empty() && has_generated_name)
    })
}
