//! Every `StorageClass`, on its way into snapshots.

use std::sync::Arc;

use super::collection::{Change, Collection, Effect};
use crate::plugins::storage_classes::{StorageClass, StorageClasses};

/// Every class, on its way into snapshots.
#[derive(Debug, Default)]
pub struct StorageClassList {
    known: Arc<StorageClasses>,
}

impl Collection for StorageClassList {
    type Object = Change<String, StorageClass>;
    type View = StorageClasses;

    fn apply(&mut self, change: &Self::Object) -> Effect {
        match change {
            Change::Is(name, class) => {
                if self.known.get(name) == Some(class) {
                    return Effect::None;
                }
                Arc::make_mut(&mut self.known).insert(name.clone(), class.clone());
                Effect::Decisions
            }
            Change::Gone(name) => self.remove(name),
            Change::Listed if self.known.is_complete => Effect::None,
            Change::Listed => {
                Arc::make_mut(&mut self.known).is_complete = true;
                Effect::Decisions
            }
            Change::Unwatched => {
                self.known = Arc::default();
                Effect::Decisions
            }
        }
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.known.get(name).is_none() {
            return Effect::None;
        }
        Arc::make_mut(&mut self.known).remove(name);
        Effect::Decisions
    }

    fn view(&mut self) -> Arc<StorageClasses> {
        Arc::clone(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_change_decisions_once_and_are_forgotten_when_no_plugin_reads_them() {
        let mut list = StorageClassList::default();
        let is = Change::Is("fast".to_owned(), StorageClass { is_default: true, ..StorageClass::default() });
        assert_eq!([list.apply(&is), list.apply(&is)], [Effect::Decisions, Effect::None]);
        assert!(!list.view().is_complete);
        let listed = Change::Listed;
        assert_eq!([list.apply(&listed), list.apply(&listed)], [Effect::Decisions, Effect::None]);
        assert_eq!((list.view().default_class(), list.view().is_complete), (Some("fast"), true));
        let gone = Change::Gone("fast".to_owned());
        assert_eq!([list.apply(&gone), list.apply(&gone)], [Effect::Decisions, Effect::None]);
        list.apply(&is);
        list.apply(&Change::Unwatched);
        assert!(list.view().default_class().is_none() && !list.view().is_complete);
    }
}
