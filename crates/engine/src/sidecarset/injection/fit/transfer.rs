//! `transferEnv`: variables of the pod's own containers.
//!
//! A container, a label or a variable that the pod does not have is passed over, as in `OpenKruise`: a set goes into pods of many
//! makers.

use super::plan::Source;
use super::{Container, Fitting, TooMuch};

impl Fitting<'_, '_> {
    pub(super) fn transfer(&mut self, container: &mut Container<'_>) -> Result<(), TooMuch> {
        let plan = container.plan;
        for transfer in &plan.transfers {
            let name = match &transfer.source {
                Source::Name(name) => Some(name.as_str()),
                Source::Label(key) => self.pod.metadata.labels.get(key),
                Source::Annotation(key) => self.pod.metadata.annotation(key),
            };
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            for variable in &transfer.names {
                if container.variables.contains_key(variable) {
                    continue;
                }
                let source = self.sources.named(container.set.is_must(), name);
                let Some(raw) = source.and_then(|source| source.variable(variable)) else { continue };
                self.take(raw.get().len())?;
                if let Ok(value) = serde_json::from_str(raw.get()) {
                    container.add_variable(variable, value);
                }
            }
        }
        Ok(())
    }
}
