//! Objects as controllers see them, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// Every object of a kind, by name. Clones share their content. Not for the path of a request: there is a lock.
#[derive(Debug)]
pub struct Table<R>(Arc<RwLock<BTreeMap<String, Arc<R>>>>);

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R> Clone for Table<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Table<R> {
    /// An object.
    pub fn get(&self, name: &str) -> Option<Arc<R>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Every object, by name.
    pub fn all(&self) -> Vec<Arc<R>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The name of every object.
    pub fn names(&self) -> BTreeSet<Arc<str>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.keys().map(|name| name.as_str().into()).collect()
    }

    pub(super) fn insert(&self, name: String, record: R) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(record));
    }

    pub(super) fn remove(&self, name: &str) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }
}
