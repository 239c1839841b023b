//! The sets as controllers see them: what was compiled, and what the status says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use crate::sidecarset::api::SidecarSetStatus;
use crate::sidecarset::compiled::CompiledSet;

/// One SidecarSet.
#[derive(Debug, Clone)]
pub struct SetRecord {
    /// Name.
    pub name: String,
    /// The uid, which tells a set from a later one of the same name.
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

/// Every SidecarSet by name. Clones share their content. Not for the path of a pod: there is a lock.
#[derive(Debug, Clone, Default)]
pub struct SetTable(Arc<RwLock<BTreeMap<String, Arc<SetRecord>>>>);

impl SetTable {
    /// A set.
    pub fn get(&self, name: &str) -> Option<Arc<SetRecord>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every set, by name.
    pub fn all(&self) -> Vec<Arc<SetRecord>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The name of every set.
    pub fn names(&self) -> BTreeSet<Arc<str>> {
        let sets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sets.keys().map(|name| name.as_str().into()).collect()
    }

    pub(super) fn insert(&self, record: SetRecord) {
        let mut sets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sets.insert(record.name.clone(), Arc::new(record));
    }

    pub(super) fn remove(&self, name: &str) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }
}
