//! Objects of kinds that are watched only while a plugin reads them, on their way into snapshots.

use std::fmt::Debug;
use std::sync::Arc;

use super::collection::{Collection, CollectionChange, Effect};

/// What a snapshot holds of such a kind.
pub trait WhileRead: Debug + Clone + Default {
    /// Which object.
    type Key;
    /// What decisions read of it.
    type Value: Clone + PartialEq;

    /// What is known of an object.
    fn get(&self, key: &Self::Key) -> Option<&Self::Value>;

    /// Takes in an object.
    fn insert(&mut self, key: Self::Key, value: Self::Value);

    /// Forgets an object.
    fn remove(&mut self, key: &Self::Key);

    /// Whether all objects that there are have been seen.
    fn is_complete(&self) -> bool;

    /// Notes that they have.
    fn complete(&mut self);
}

/// All objects of such a kind.
#[derive(Debug, Default)]
pub struct ListWhileRead<V> {
    known: Arc<V>,
}

impl<V: WhileRead<Key: Clone>> Collection for ListWhileRead<V> {
    type Object = CollectionChange<V::Key, V::Value>;
    type View = V;

    fn apply(&mut self, change: &Self::Object) -> Effect {
        match change {
            CollectionChange::Is(key, value) if self.known.get(key) == Some(value) => return Effect::None,
            CollectionChange::Is(key, value) => Arc::make_mut(&mut self.known).insert(key.clone(), value.clone()),
            CollectionChange::Gone(key) if self.known.get(key).is_none() => return Effect::None,
            CollectionChange::Gone(key) => Arc::make_mut(&mut self.known).remove(key),
            CollectionChange::Listed if self.known.is_complete() => return Effect::None,
            CollectionChange::Listed => Arc::make_mut(&mut self.known).complete(),
            CollectionChange::Unwatched => *self = Self::default(),
        }
        Effect::Decisions
    }

    /// Forgets nothing: what is gone is a [`CollectionChange`].
    fn remove(&mut self, _: &str) -> Effect {
        Effect::None
    }

    fn view(&mut self) -> Arc<V> {
        Arc::clone(&self.known)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::snapshot::nodes::Nodes;

    #[test]
    fn objects_change_decisions_once_and_are_forgotten_when_no_plugin_reads_them() {
        let labels = |rack: &str| BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
        let is = |rack: &str| CollectionChange::Is("n".to_owned(), Arc::new(labels(rack)));
        let mut list = ListWhileRead::<Nodes>::default();
        assert_eq!([list.apply(&is("a")), list.apply(&is("a"))], [Effect::Decisions, Effect::None]);
        assert!(!list.view().is_complete);
        assert_eq!(list.apply(&is("b")), Effect::Decisions);
        assert_eq!(
            [list.apply(&CollectionChange::Listed), list.apply(&CollectionChange::Listed)],
            [Effect::Decisions, Effect::None]
        );
        let published = list.view();
        assert_eq!((published.labels("n"), published.is_complete), (Some(&labels("b")), true));
        let gone = CollectionChange::Gone("n".to_owned());
        assert_eq!([list.apply(&gone), list.apply(&gone)], [Effect::Decisions, Effect::None]);
        assert!(list.view().labels("n").is_none());
        list.apply(&is("a"));
        list.apply(&CollectionChange::Unwatched);
        assert!(list.view().labels("n").is_none() && !list.view().is_complete);
        assert_eq!(list.apply(&CollectionChange::Listed), Effect::Decisions, "listed again");
        assert!(published.labels("n").is_some(), "what was published stays as it was");
    }
}
