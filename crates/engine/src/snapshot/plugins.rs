//! The plugins as controllers see them: what was compiled, and what the status says.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::{Arc, PoisonError, RwLock};

use super::collection::{Collection, Effect};
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

/// Every `AdmissionPlugin` by name. Clones share their content. Not for the path of a request: there is a lock.
#[derive(Debug, Clone, Default)]
pub struct PluginTable(Arc<RwLock<BTreeMap<String, Arc<PluginRecord>>>>);

impl PluginTable {
    /// An object.
    pub fn get(&self, name: &str) -> Option<Arc<PluginRecord>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every object, by name.
    pub fn all(&self) -> Vec<Arc<PluginRecord>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn insert(&self, record: PluginRecord) {
        let mut plugins = self.0.write().unwrap_or_else(PoisonError::into_inner);
        plugins.insert(record.name.clone(), Arc::new(record));
    }

    fn remove(&self, name: &str) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }
}

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
        match compile(object) {
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
        self.table.insert(record);
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
