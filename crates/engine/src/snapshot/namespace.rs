//! What decisions read of a namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use admission::format::selector::Selector;

use super::collection::{Collection, Effect};
use crate::plugins::placement::{ANNOTATIONS, Placement};
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// Every namespace that has been seen.
#[derive(Debug, Clone, Default)]
pub struct Namespaces {
    known: HashMap<String, Arc<KnownNamespace>>,
}

/// A namespace that has been seen.
#[derive(Debug, Clone, Default)]
pub struct KnownNamespace {
    labels: BTreeMap<String, String>,
    /// Whether it has labels that are not among them.
    lacks_labels: bool,
    /// As they were read, by which one sees whether they changed.
    annotations: BTreeMap<String, String>,
    placement: Option<Box<Placement>>,
}

impl KnownNamespace {
    /// As many as are kept; see [`Namespace::lacks_labels`].
    pub const fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Whether the selector selects it; none where that depends on labels that were not kept, as it has more than there is room for.
    /// So very many labels do not hide a namespace from a selector.
    pub fn is_selected(&self, selector: &Selector) -> Option<bool> {
        let mut depends = false;
        for requirement in selector.requirements() {
            let key = requirement.key();
            if self.lacks_labels && key != NAMESPACE_NAME_LABEL && !self.labels.contains_key(key) {
                depends = true;
            } else if !requirement.matches(&self.labels) {
                return Some(false);
            }
        }
        (!depends).then_some(true)
    }

    /// Whether it has labels that were not kept.
    pub const fn lacks_labels(&self) -> bool {
        self.lacks_labels
    }

    /// What the annotations say about where pods run, if they say anything.
    pub fn placement(&self) -> Option<&Placement> {
        self.placement.as_deref()
    }
}

impl Namespaces {
    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let copy = |(name, namespace): (&String, &Arc<KnownNamespace>)| (name.clone(), Arc::new((**namespace).clone()));
        Self { known: self.known.iter().map(copy).collect() }
    }

    /// Sets the labels of a namespace. Its name is to be among them, which the API server ensures.
    pub fn insert(&mut self, name: String, labels: BTreeMap<String, String>) {
        self.insert_annotated(name, labels, BTreeMap::new());
    }

    /// The same with its annotations, as far as plugins read them.
    pub fn insert_annotated(
        &mut self,
        name: String,
        labels: BTreeMap<String, String>,
        mut annotations: BTreeMap<String, String>,
    ) {
        annotations.retain(|key, _| ANNOTATIONS.contains(&key.as_str()));
        let placement = (!annotations.is_empty()).then(|| Box::new(Placement::of(&annotations)));
        self.known.insert(name, Arc::new(KnownNamespace { labels, lacks_labels: false, annotations, placement }));
    }

    /// Says that a namespace has labels that were not kept.
    pub fn mark_lacking_labels(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            Arc::make_mut(known).lacks_labels = true;
        }
    }

    /// Forgets a namespace.
    pub fn remove(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// A namespace, where it has been seen.
    pub fn known(&self, name: &str) -> Option<&KnownNamespace> {
        self.known.get(name).map(Arc::as_ref)
    }

    /// All of them, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &KnownNamespace)> {
        self.known.iter().map(|(name, namespace)| (name.as_str(), namespace.as_ref()))
    }

    /// The labels, where the namespace has been seen.
    pub fn labels(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.known(name).map(KnownNamespace::labels)
    }
}

/// What is read of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it has more labels than there is room for.
    pub lacks_labels: bool,
    /// Annotations that plugins read.
    pub annotations: BTreeMap<String, String>,
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
        let Namespace { name, labels, lacks_labels, annotations } = namespace;
        let known = self.known.known(name);
        let is_same = |known: &KnownNamespace| {
            known.labels == *labels && known.lacks_labels == *lacks_labels && known.annotations == *annotations
        };
        if known.is_some_and(is_same) {
            return Effect::None;
        }
        let all = Arc::make_mut(&mut self.known);
        all.insert_annotated(name.clone(), labels.clone(), annotations.clone());
        if *lacks_labels {
            all.mark_lacking_labels(name);
        }
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
        let namespace = Namespace { name: "a".to_owned(), labels: labels.clone(), ..Namespace::default() };
        let mut list = NamespaceList::default();
        assert_eq!(list.apply(&namespace), Effect::Decisions);
        assert_eq!(list.apply(&namespace), Effect::None);
        let published = list.view();
        assert_eq!(list.remove("a"), Effect::Decisions);
        assert_eq!(published.labels("a"), Some(&labels));
        assert_eq!(list.remove("a"), Effect::None);
    }
}
