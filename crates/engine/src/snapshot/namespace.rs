//! What decisions read of a namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::collection::{Collection, Effect};

/// Labels of every namespace that has been seen.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    labels: HashMap<String, Arc<BTreeMap<String, String>>>,
}

impl Namespaces {
    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |(name, labels): (&String, &Arc<BTreeMap<_, _>>)| (name.clone(), Arc::new((**labels).clone()));
        Self { labels: self.labels.iter().map(copy).collect() }
    }

    /// Sets the labels of a namespace. Its name is to be among them, which the API server ensures.
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

/// What is read of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// Every namespace, on its way into snapshots.
#[derive(Debug, Default)]
pub struct NamespaceList {
    known: Arc<Namespaces>,
}

impl Collection for NamespaceList {
    type Object = Namespace;
    type View = Namespaces;

    fn apply(&mut self, namespace: &Namespace) -> Effect {
        let Namespace { name, labels } = namespace;
        if self.known.labels(name) == Some(labels) {
            return Effect::None;
        }
        Arc::make_mut(&mut self.known).insert(name.clone(), labels.clone());
        Effect::Decisions
    }

    fn remove(&mut self, name: &str) -> Effect {
        if self.known.labels(name).is_none() {
            return Effect::None;
        }
        Arc::make_mut(&mut self.known).remove(name);
        Effect::Decisions
    }

    fn view(&mut self) -> Arc<Namespaces> {
        Arc::clone(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_counts_as_changed_only_when_its_labels_changed() {
        // The API server gives every namespace the label of its own name.
        let labels = [("env", "prod"), ("kubernetes.io/metadata.name", "a")];
        let labels: BTreeMap<_, _> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let namespace = Namespace { name: "a".to_owned(), labels: labels.clone() };
        let mut list = NamespaceList::default();
        assert_eq!(list.apply(&namespace), Effect::Decisions);
        assert_eq!(list.apply(&namespace), Effect::None);
        let published = list.view();
        assert_eq!(list.remove("a"), Effect::Decisions);
        assert_eq!(published.labels("a"), Some(&labels));
        assert_eq!(list.remove("a"), Effect::None);
    }
}
