//! The plugins as controllers see them: what was compiled, and what the status says.

use std::sync::Arc;

use admission::field::ErrorList;

use super::policies::{Policies, Policy, Record};
use super::table::Table;
use crate::plugins::api::{AdmissionPlugin, KIND, PluginStatus};
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::index::PluginIndex;
use crate::sidecarset::api::Metadata;

/// One `AdmissionPlugin`.
pub type PluginRecord = Record<CompiledPlugin>;

/// Every `AdmissionPlugin`, for controllers.
pub type PluginTable = Table<PluginRecord>;

/// Every `AdmissionPlugin`, on its way into snapshots.
pub type Plugins = Policies<AdmissionPlugin>;

impl Policy for AdmissionPlugin {
    type Compiled = CompiledPlugin;
    type View = PluginIndex;

    const KIND: &'static str = KIND;

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn status(&self) -> Option<&PluginStatus> {
        self.status.as_ref()
    }

    fn compile(&self) -> Result<CompiledPlugin, ErrorList> {
        let mut compiled = CompiledPlugin::compile(self)?;
        let generation = self.metadata.generation.unwrap_or_default();
        compiled.is_settled = self.status.as_ref().is_some_and(|status| status.is_programmed(generation));
        Ok(compiled)
    }

    fn view(all: impl Iterator<Item = Arc<CompiledPlugin>>) -> PluginIndex {
        PluginIndex::build(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use crate::snapshot::collection::{Collection as _, Effect};

    use super::*;

    fn object(generation: i64, spec: &serde_json::Value) -> AdmissionPlugin {
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": "u", "generation": generation}, "spec": spec}))
            .unwrap()
    }

    #[test]
    fn a_plugin_judges_what_it_changes_once_the_leader_says_that_its_form_is_programmed() {
        let mut plugins = Plugins::default();
        let mut plugin = object(2, &json!({"plugin": "AlwaysPullImages"}));
        let settled = |plugins: &mut Plugins| plugins.view().get("a").unwrap().is_settled;
        for (observed, status, expected) in
            [(None, "True", false), (Some(1), "True", false), (Some(2), "False", false), (Some(2), "True", true)]
        {
            let condition = json!({"type": "Programmed", "status": status, "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            plugin.status =
                serde_json::from_value(json!({"observedGeneration": observed, "conditions": [condition]})).unwrap();
            plugins.apply(&plugin);
            assert_eq!(settled(&mut plugins), expected, "{observed:?} {status}");
        }
        plugins.apply(&object(3, &json!({"plugin": "AlwaysPullImages", "alwaysPullImages": {"exemptImages": ["a"]}})));
        assert!(!settled(&mut plugins), "another form");
    }

    #[test]
    fn a_status_concerns_controllers_only_and_an_object_that_stops_compiling_keeps_its_last_good_form() {
        let mut plugins = Plugins::default();
        let mut plugin = object(1, &json!({"plugin": "AlwaysPullImages"}));
        assert_eq!(plugins.apply(&plugin), Effect::Decisions);
        assert_eq!(plugins.apply(&plugin), Effect::None);
        plugin.status = Some(PluginStatus { observed_generation: Some(1), conditions: None });
        assert_eq!(plugins.apply(&plugin), Effect::Controllers);
        assert_eq!(
            plugins.apply(&object(2, &json!({"plugin": "AlwaysPullImages", "mode": "Wran"}))),
            Effect::Controllers
        );
        let record = plugins.table().get("a").unwrap();
        assert!(record.compiled.is_some() && record.fault.as_ref().unwrap().contains("spec.mode"), "{record:?}");
        assert_eq!(plugins.view().iter().count(), 1);
        assert_eq!(plugins.remove("a"), Effect::Decisions);
        assert!(plugins.view().is_empty());
    }
}
