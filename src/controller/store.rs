//! The watched objects, for reconciles to read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::{Resource, ResourceExt as _};

use super::owner::controller_uid;
use crate::controller::queue::ObjectName;

/// Namespace and name of an object.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

impl Key {
    /// Of an object.
    pub fn of(object: &impl Resource) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl ObjectName for Key {
    fn namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// As kubectl and logs write it.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// Watched objects. Clones share their content.
#[derive(Debug)]
pub struct Store<K>(Arc<Mutex<Content<K>>>);

#[derive(Debug)]
struct Content<K> {
    objects: BTreeMap<Key, Arc<K>>,
    by_controller: HashMap<String, BTreeSet<Key>>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Content { objects: BTreeMap::new(), by_controller: HashMap::new() })))
    }
}

impl<K: Resource> Store<K> {
    fn content(&self) -> MutexGuard<'_, Content<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.content().objects.get(key).cloned()
    }

    /// Every object, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.content().objects.values().cloned().collect()
    }

    /// The objects in a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = Key { namespace: namespace.to_owned(), name: String::new() };
        let content = self.content();
        let found = content.objects.range(first..).take_while(|(key, _)| key.namespace == namespace);
        found.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects that the one with this uid controls, by namespace and name.
    pub fn controlled_by(&self, uid: &str) -> Vec<Arc<K>> {
        let content = self.content();
        let keys = content.by_controller.get(uid).into_iter().flatten();
        keys.filter_map(|key| content.objects.get(key)).cloned().collect()
    }

    /// Keeps an object; returns the one that it replaces.
    pub(super) fn put(&self, key: Key, object: Arc<K>) -> Option<Arc<K>> {
        let mut content = self.content();
        let old = content.take(&key);
        if let Some(uid) = controller_uid(&*object) {
            content.by_controller.entry(uid.to_owned()).or_default().insert(key.clone());
        }
        content.objects.insert(key, object);
        old
    }

    /// Forgets an object.
    pub(super) fn take(&self, key: &Key) -> Option<Arc<K>> {
        self.content().take(key)
    }
}

impl<K: Resource> Content<K> {
    fn take(&mut self, key: &Key) -> Option<Arc<K>> {
        let old = self.objects.remove(key)?;
        if let Some(uid) = controller_uid(&*old)
            && let Some(keys) = self.by_controller.get_mut(uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_controller.remove(uid);
            }
        }
        Some(old)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, owners: &serde_json::Value) -> Arc<Pod> {
        let metadata = json!({"namespace": "n", "name": name, "ownerReferences": owners});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    fn owner(api_version: &str, kind: &str, uid: &str, controller: bool) -> serde_json::Value {
        json!([{"apiVersion": api_version, "kind": kind, "name": "o", "uid": uid, "controller": controller}])
    }

    #[test]
    fn objects_are_found_by_their_controller_until_it_changes_or_they_go() {
        let store = Store::<Pod>::default();
        let names = |uid: &str| -> Vec<String> { store.controlled_by(uid).iter().map(|pod| pod.name_any()).collect() };
        for (name, uid) in [("b", "1"), ("a", "1"), ("c", "2")] {
            let pod = pod(name, &owner("apps/v1", "ReplicaSet", uid, true));
            assert!(store.put(Key::of(&*pod), pod).is_none());
        }
        assert_eq!((names("1"), names("2")), (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]));
        let orphan = pod("a", &json!([]));
        assert!(store.put(Key::of(&*orphan), Arc::clone(&orphan)).is_some());
        store.take(&Key { namespace: "n".to_owned(), name: "c".to_owned() });
        assert_eq!((names("1"), names("2")), (vec!["b".to_owned()], vec![]));
        assert_eq!(store.all().len(), 2);
        assert_eq!(
            (store.in_namespace("n").len(), store.in_namespace("m").len(), store.in_namespace("").len()),
            (2, 0, 0)
        );
        assert!(store.content().by_controller.len() == 1);
    }
}
