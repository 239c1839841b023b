//! The labels of nodes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::while_read::WhileRead;

/// Labels of every node that has been seen, by its name.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    known: HashMap<String, Arc<BTreeMap<String, String>>>,
    /// Whether all nodes that there are have been seen. They are watched only while a plugin reads them.
    pub is_complete: bool,
}

impl Nodes {
    /// The labels of a node.
    pub fn labels(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.known.get(name).map(|labels| &**labels)
    }

    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |(name, labels): (&String, &Arc<BTreeMap<_, _>>)| (name.clone(), Arc::new((**labels).clone()));
        Self { known: self.known.iter().map(copy).collect(), is_complete: self.is_complete }
    }
}

impl WhileRead for Nodes {
    type Key = String;
    type Value = Arc<BTreeMap<String, String>>;

    fn get(&self, name: &String) -> Option<&Self::Value> {
        self.known.get(name)
    }

    fn insert(&mut self, name: String, labels: Self::Value) {
        self.known.insert(name, labels);
    }

    fn remove(&mut self, name: &String) {
        self.known.remove(name);
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn complete(&mut self) {
        self.is_complete = true;
    }
}
