//! The plugins as controllers see them: what was compiled, and what the status says.

use std::panic::catch_unwind;
use std::sync::Arc;

use super::collection::{Collection, Effect};
use super::table::Table;
use crate::plugins::api::{AdmissionPlugin, PluginStatus};
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::index::PluginIndex;

/// One `AdmissionPlugin`.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginRecord {
    /// Name.
    pub name: String,
    /// The uid, by which an object differs from a later one of the same name.
    pub uid: String,
    /// The generation of the spec.
    pub generation: i64,
    /// Whether the object is being deleted.
    pub terminating: bool,
    /// The status, as stored.
    pub status: Option<PluginStatus>,
    /// The form that decides: of the last generation that compiles.
    pub compiled: Option<Arc<CompiledPlugin>>,
    /// Why this generation does not compile.
    pub fault: Option<String>,
}

/// Every `AdmissionPlugin`, for controllers.
pub type PluginTable = Table<PluginRecord>;

/// Every `AdmissionPlugin`, on its way into snapshots.
#[derive(Debug, Default)]
pub struct Plugins {
    table: PluginTable,
}

impl Plugins {
    /// The plugins, for controllers.
    pub fn table(&self) -> PluginTable {
        self.table.clone()
    }
}

/// Compiles an object. A panic is an error like others here: every replica would meet it again after a restart.
fn compile(object: &AdmissionPlugin) -> Result<CompiledPlugin, String> {
    match catch_unwind(|| CompiledPlugin::compile(object)) {
        Ok(compiled) => compiled.map_err(|errors| errors.to_string()),
        Err(_) => Err("compiling it panicked".to_owned()),
    }
}

impl Collection for Plugins {
    type Object = AdmissionPlugin;
    type View = PluginIndex;

    /// Takes in an object. One that does not compile keeps the last form that did.
    fn apply(&mut self, object: &AdmissionPlugin) -> Effect {
        let name = object.metadata.name.clone().unwrap_or_default();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let before = self.table.get(&name).filter(|record| record.uid == uid);
        let last = before.as_ref().and_then(|record| record.compiled.clone());
        let mut record = PluginRecord {
            name,
            uid,
            generation: object.metadata.generation.unwrap_or_default(),
            terminating: object.metadata.deletion_timestamp.is_some(),
            status: object.status.clone(),
            compiled: last.clone(),
            fault: None,
        };
        let is_settled = record.status.as_ref().is_some_and(|status| status.is_programmed(record.generation));
        let settled = |mut compiled: CompiledPlugin| {
            compiled.is_settled = is_settled;
            compiled
        };
        match compile(object).map(settled) {
            Ok(compiled) if last.as_deref() == Some(&compiled) => {}
            Ok(compiled) => record.compiled = Some(Arc::new(compiled)),
            Err(error) => {
                tracing::warn!(
                    admissionplugin = record.name,
                    error,
                    "AdmissionPlugin cannot be used; its last good form stays"
                );
                record.fault = Some(error);
            }
        }
        if before.as_deref() == Some(&record) {
            return Effect::None;
        }
        let decides = before.is_none() || record.compiled != last;
        self.table.insert(record.name.clone(), record);
        if decides { Effect::Decisions } else { Effect::Controllers }
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.table.remove(name) { Effect::Decisions } else { Effect::None }
    }

    fn view(&mut self) -> Arc<PluginIndex> {
        Arc::new(PluginIndex::build(self.table.all().iter().filter_map(|record| record.compiled.clone())))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

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
