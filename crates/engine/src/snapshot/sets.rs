//! The sets as controllers see them: what was compiled, and what the status says.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use super::collection::{Collection, Effect};
use super::table::Table;
use crate::sidecarset::api::{SidecarSet, SidecarSetStatus};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::index::SetIndex;

/// One SidecarSet.
#[derive(Debug, Clone)]
pub struct SetRecord {
    /// Name.
    pub name: String,
    /// The uid, which distinguishes a set from a later one of the same name.
    pub uid: String,
    /// Whether the set is being deleted.
    pub terminating: bool,
    /// The status, as stored.
    pub status: Option<SidecarSetStatus>,
    /// The form that pods get now: of the last generation that compiles.
    pub compiled: Option<Arc<CompiledSet>>,
    /// The generation that `compiled` is made from.
    pub compiled_generation: i64,
}

/// Every `SidecarSet`, for controllers.
pub type SetTable = Table<SetRecord>;

/// Every SidecarSet, on its way into snapshots.
#[derive(Debug, Default)]
pub struct Sets {
    table: SetTable,
    /// What each set's compiled form was made from, so that a status update compiles nothing.
    sources: BTreeMap<String, SetSource>,
}

/// SHA-256 of the uid, the generation, labels and annotations: kept as they are, these would cost more than the set.
type SetSource = [u8; SHA256_OUTPUT_LEN];

/// Each text with its length in front.
fn source(set: &SidecarSet) -> SetSource {
    let mut context = Context::new(&SHA256);
    let generation = set.metadata.generation.map_or([0; 9], |generation| {
        let mut bytes = [1; 9];
        bytes[1..].copy_from_slice(&generation.to_le_bytes());
        bytes
    });
    context.update(&generation);
    let mut update = |text: &str| {
        context.update(&text.len().to_le_bytes());
        context.update(text.as_bytes());
    };
    set.metadata.uid.iter().for_each(|uid| update(uid));
    for map in [&set.metadata.labels, &set.metadata.annotations] {
        update(&map.as_ref().map_or(0, BTreeMap::len).to_string());
        map.iter().flatten().flat_map(|(key, value)| [key, value]).for_each(|text| update(text));
    }
    let mut source = [0; SHA256_OUTPUT_LEN];
    source.copy_from_slice(context.finish().as_ref());
    source
}

/// Compiles a set. A panic is an error like others here: every replica would meet it again after a restart, and a cluster
/// whose webhooks are all down creates no pods.
pub(super) fn compile(set: &SidecarSet) -> Result<CompiledSet, String> {
    match catch_unwind(|| CompiledSet::compile(set)) {
        // A copy has no room left for more, which lists have that grew.
        Ok(compiled) => compiled.map(|compiled| compiled.detached()).map_err(|error| error.to_string()),
        Err(_) => Err("compiling it panicked".to_owned()),
    }
}

impl Sets {
    /// The sets, for controllers.
    pub fn table(&self) -> SetTable {
        self.table.clone()
    }
}

impl Collection for Sets {
    type Object = SidecarSet;
    type View = SetIndex;

    /// Takes in a set. One that does not compile keeps the last form that did.
    fn apply(&mut self, set: &SidecarSet) -> Effect {
        let name = set.metadata.name.clone().unwrap_or_default();
        let source = source(set);
        let before = self.table.get(&name).filter(|record| Some(&record.uid) == set.metadata.uid.as_ref());
        let unchanged = set.metadata.generation.is_some() && self.sources.get(&name) == Some(&source);
        let mut record = SetRecord {
            name: name.clone(),
            uid: set.metadata.uid.clone().unwrap_or_default(),
            terminating: set.metadata.deletion_timestamp.is_some(),
            status: set.status.clone(),
            compiled: before.as_ref().and_then(|record| record.compiled.clone()),
            compiled_generation: before.as_ref().map_or(0, |record| record.compiled_generation),
        };
        if unchanged {
            let same = before.is_some_and(|old| old.status == record.status && old.terminating == record.terminating);
            self.table.insert(record.name.clone(), record);
            return if same { Effect::None } else { Effect::Controllers };
        }
        match compile(set) {
            Ok(compiled) => {
                record.compiled = Some(Arc::new(compiled));
                record.compiled_generation = set.metadata.generation.unwrap_or_default();
            }
            Err(error) => {
                let kept = record.compiled.as_ref().map(|_| record.compiled_generation);
                tracing::warn!(sidecarset = name, error, last_good_generation = kept, "SidecarSet cannot be used");
            }
        }
        self.sources.insert(name, source);
        self.table.insert(record.name.clone(), record);
        Effect::Decisions
    }

    fn remove(&mut self, name: &str) -> Effect {
        self.sources.remove(name);
        if self.table.remove(name) { Effect::Decisions } else { Effect::None }
    }

    fn view(&mut self) -> Arc<SetIndex> {
        let records = self.table.all();
        Arc::new(SetIndex::build(records.iter().filter_map(|record| record.compiled.clone())))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub fn set(name: &str, generation: i64, image: &str) -> SidecarSet {
        serde_json::from_value(json!({
            "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "containers": [{"name": "proxy", "image": image}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_status_update_concerns_controllers_only() {
        let mut sets = Sets::default();
        let mut object = set("a", 1, "proxy:1");
        assert_eq!(sets.apply(&object), Effect::Decisions);
        assert_eq!(sets.apply(&object), Effect::None);
        object.status = Some(serde_json::from_value(json!({"matchedPods": 3})).unwrap());
        assert_eq!(sets.apply(&object), Effect::Controllers);
        assert_eq!(sets.table.get("a").unwrap().status.as_ref().unwrap().matched_pods, 3);
    }

    #[test]
    fn a_set_that_stops_compiling_keeps_its_last_good_form() {
        let mut sets = Sets::default();
        sets.apply(&set("a", 1, "proxy:1"));
        let good = sets.table.get("a").unwrap().compiled.clone().unwrap();
        let mut broken = set("a", 2, "proxy:2");
        let bad_selector = json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]});
        broken.spec.selector = Some(serde_json::from_value(bad_selector).unwrap());
        sets.apply(&broken);
        let record = sets.table.get("a").unwrap();
        assert!(Arc::ptr_eq(record.compiled.as_ref().unwrap(), &good));
        assert_eq!(record.compiled_generation, 1);
    }

    #[test]
    fn a_set_recreated_under_the_same_name_inherits_nothing() {
        let mut sets = Sets::default();
        sets.apply(&set("a", 1, "proxy:1"));
        let mut recreated = set("a", 1, "proxy:2");
        recreated.metadata.uid = Some("another".to_owned());
        let before = sets.table.get("a").unwrap().compiled.clone().unwrap();
        assert_eq!(sets.apply(&recreated), Effect::Decisions);
        let after = sets.table.get("a").unwrap().compiled.clone().unwrap();
        assert_ne!(before.hash, after.hash);
    }
}
