//! What decisions read of a namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Labels of every namespace that has been seen.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    labels: HashMap<String, Arc<BTreeMap<String, String>>>,
}

impl Namespaces {
    /// Sets the labels of a namespace. Its name is to be among them, as the API server sees to.
    pub fn insert(&mut self, name: String, labels: BTreeMap<String, String>) {
        self.labels.insert(name, Arc::new(labels));
    }

    /// Forgets a namespace.
    pub fn remove(&mut self, name: &str) {
        self.labels.remove(name);
    }

    /// The labels, where the namespace has been seen.
    pub fn labels(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.labels.get(name).map(Arc::as_ref)
    }
}
