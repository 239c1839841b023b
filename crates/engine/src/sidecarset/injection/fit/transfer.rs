//! `transferEnv`: variables of the pod's own containers.
//!
//! A container, a label or a variable that the pod does not have is passed over, as in `OpenKruise`: a set goes into pods of many
//! makers.

use super::plan::Source;
use super::{Container, Fitting, TooMuch};
use crate::pod::view::PodView;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::metadata::PatchPolicy;

/// The annotation as the pod has it with what the set gives.
fn annotation<'a>(pod: &'a PodView<'_>, set: &'a CompiledSet, key: &str) -> Option<&'a str> {
    let own = pod.metadata.annotation(key);
    let given = set.metadata.iter().find(|piece| piece.key == *key);
    match given.map(|piece| (&piece.policy, piece.value.as_str())) {
        Some((PatchPolicy::Overwrite, value)) => Some(value),
        Some((PatchPolicy::Retain, value)) => own.or(Some(value)),
        _ => own,
    }
}

impl Fitting<'_, '_> {
    pub(super) fn transfer(&mut self, container: &mut Container<'_>) -> Result<(), TooMuch> {
        let plan = container.plan;
        for transfer in &plan.transfers {
            let pod = self.pod;
            let name = match &transfer.source {
                Source::Name(name) => Some(name.as_str()),
                Source::Label(key) => pod.metadata.labels.get(key),
                Source::Annotation(key) => annotation(pod, container.set, key),
            };
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            for variable in &transfer.names {
                if container.variables.contains_key(variable) {
                    continue;
                }
                let source = self.sources.named(container.set.is_must(), name);
                let Some(raw) = source.and_then(|source| source.variable(variable)) else { continue };
                self.left.take(raw)?;
                if let Ok(value) = serde_json::from_str(raw.get()) {
                    container.add_variable(variable, value);
                }
            }
        }
        Ok(())
    }
}
