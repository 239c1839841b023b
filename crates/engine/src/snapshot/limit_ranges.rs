//! Every `ClusterLimitRange`, on its way into snapshots.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;

use super::collection::{Collection, Effect};
use crate::limitrange::api::ClusterLimitRange;
use crate::limitrange::compiled::CompiledRange;
use crate::limitrange::index::LimitRanges;

/// The forms that decide, by name.
#[derive(Debug, Default)]
pub struct LimitRangeList {
    known: BTreeMap<String, (String, Arc<CompiledRange>)>,
}

/// Compiles an object. A panic is an error like others here: every replica would meet it again after a restart.
fn compile(object: &ClusterLimitRange) -> Result<CompiledRange, String> {
    match catch_unwind(|| CompiledRange::compile(object)) {
        Ok(compiled) => compiled.map_err(|errors| errors.to_string()),
        Err(_) => Err("compiling it panicked".to_owned()),
    }
}

impl LimitRangeList {
    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.known.keys().cloned().collect()
    }
}

impl Collection for LimitRangeList {
    type Object = ClusterLimitRange;
    type View = LimitRanges;

    /// Takes in an object. One that does not compile keeps the last form that did.
    fn apply(&mut self, object: &ClusterLimitRange) -> Effect {
        let name = object.metadata.name.clone().unwrap_or_default();
        let uid = object.metadata.uid.clone().unwrap_or_default();
        match compile(object) {
            Ok(range) if self.known.get(&name).is_some_and(|(known, last)| *known == uid && **last == range) => {
                Effect::None
            }
            Ok(range) => {
                self.known.insert(name, (uid, Arc::new(range)));
                Effect::Decisions
            }
            Err(error) => {
                tracing::warn!(
                    clusterlimitrange = name,
                    error,
                    "ClusterLimitRange cannot be used; its last good form stays"
                );
                // One of another uid is another object.
                let is_another = self.known.get(&name).is_some_and(|(known, _)| *known != uid);
                if is_another { self.remove(&name) } else { Effect::None }
            }
        }
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.known.remove(name).is_some() { Effect::Decisions } else { Effect::None }
    }

    fn view(&mut self) -> Arc<LimitRanges> {
        Arc::new(LimitRanges::build(self.known.values().map(|(_, range)| Arc::clone(range))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, type_: &str, max: &str) -> ClusterLimitRange {
        let spec = json!({"limits": [{"type": type_, "max": {"cpu": max}}]});
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": uid}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_range_that_stops_compiling_keeps_its_last_good_form_and_another_object_does_not_inherit_it() {
        let mut ranges = LimitRangeList::default();
        assert_eq!(ranges.apply(&object("u", "Pod", "1")), Effect::Decisions);
        assert_eq!(ranges.apply(&object("u", "Pod", "1")), Effect::None);
        assert_eq!(ranges.apply(&object("u", "Pod", "2")), Effect::Decisions);
        assert_eq!(ranges.apply(&object("u", "Pot", "2")), Effect::None);
        assert_eq!(ranges.view().iter().count(), 1);
        assert_eq!(ranges.apply(&object("v", "Pot", "2")), Effect::Decisions);
        assert!(ranges.view().is_empty());
        assert_eq!(ranges.remove("a"), Effect::None);
    }
}
