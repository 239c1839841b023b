//! What a selector decides about.

use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The labels of an object, in whatever form they are at hand.
pub trait Labels {
    /// The value of the label `key`, if the object has it.
    fn get(&self, key: &str) -> Option<&str>;
}

/// Pairs as they are in JSON: of a repeated key the last one counts, as in the API server.
impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn get(&self, key: &str) -> Option<&str> {
        self.iter().rev().find(|(k, _)| k.as_ref() == key).map(|(_, value)| value.as_ref())
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for Vec<(K, V)> {
    fn get(&self, key: &str) -> Option<&str> {
        Labels::get(self.as_slice(), key)
    }
}

impl<K: Borrow<str> + Ord, V: AsRef<str>> Labels for BTreeMap<K, V> {
    fn get(&self, key: &str) -> Option<&str> {
        Self::get(self, key).map(AsRef::as_ref)
    }
}
