//! The labels of nodes, on their way into snapshots.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::collection::{Collection, Effect};

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

    /// Takes in a node.
    pub fn insert(&mut self, name: String, labels: BTreeMap<String, String>) {
        self.known.insert(name, Arc::new(labels));
    }

    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |(name, labels): (&String, &Arc<BTreeMap<_, _>>)| (name.clone(), Arc::new((**labels).clone()));
        Self { known: self.known.iter().map(copy).collect(), is_complete: self.is_complete }
    }
}

/// What happened to a node.
#[derive(Debug, Clone)]
pub enum NodeChange {
    /// It is there, with these labels.
    Is(String, BTreeMap<String, String>),
    /// It is gone.
    Gone(String),
    /// All that there are have been named.
    Listed,
    /// No plugin reads them any more.
    Unwatched,
}

/// Every node.
#[derive(Debug, Default)]
pub struct NodeList {
    known: Arc<Nodes>,
}

impl Collection for NodeList {
    type Object = NodeChange;
    type View = Nodes;

    fn apply(&mut self, change: &NodeChange) -> Effect {
        match change {
            NodeChange::Is(name, labels) => {
                if self.known.labels(name) == Some(labels) {
                    return Effect::None;
                }
                Arc::make_mut(&mut self.known).insert(name.clone(), labels.clone());
                Effect::Decisions
            }
            NodeChange::Gone(name) => self.remove(name),
            NodeChange::Listed if self.known.is_complete => Effect::None,
            NodeChange::Listed => {
                Arc::make_mut(&mut self.known).is_complete = true;
                Effect::Decisions
            }
            NodeChange::Unwatched => {
                self.known = Arc::default();
                Effect::Decisions
            }
        }
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.known.labels(name).is_none() {
            return Effect::None;
        }
        Arc::make_mut(&mut self.known).known.remove(name);
        Effect::Decisions
    }

    fn view(&mut self) -> Arc<Nodes> {
        Arc::clone(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_change_decisions_by_their_labels_and_are_forgotten_when_no_plugin_reads_them() {
        let labels = |rack: &str| BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
        let mut list = NodeList::default();
        let is = NodeChange::Is("n".to_owned(), labels("a"));
        assert_eq!([list.apply(&is), list.apply(&is)], [Effect::Decisions, Effect::None]);
        assert_eq!(list.apply(&NodeChange::Is("n".to_owned(), labels("b"))), Effect::Decisions);
        let listed = NodeChange::Listed;
        assert_eq!([list.apply(&listed), list.apply(&listed)], [Effect::Decisions, Effect::None]);
        let published = list.view();
        assert_eq!((published.labels("n"), published.is_complete), (Some(&labels("b")), true));
        let gone = NodeChange::Gone("n".to_owned());
        assert_eq!([list.apply(&gone), list.apply(&gone)], [Effect::Decisions, Effect::None]);
        list.apply(&NodeChange::Unwatched);
        assert!(list.view().labels("n").is_none() && !list.view().is_complete);
        assert!(published.labels("n").is_some(), "what was published stays as it was");
    }
}
