//! Finds what disappeared while a watch was interrupted.

use std::collections::HashSet;
use std::hash::Hash;

/// The keys of a collection, compared with each new list of it.
///
/// Objects of a relist are taken in as they come; only what the list no longer names is removed at its end, so readers
/// never see an emptied collection.
#[derive(Debug)]
pub struct Relist<K> {
    known: HashSet<K>,
    listed: Option<HashSet<K>>,
}

impl<K> Default for Relist<K> {
    fn default() -> Self {
        Self { known: HashSet::new(), listed: None }
    }
}

impl<K: Eq + Hash + Clone> Relist<K> {
    /// A new list begins; an unfinished one is given up.
    pub fn begin(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// An object is there.
    pub fn seen(&mut self, key: K) {
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        self.known.insert(key);
    }

    /// An object is gone.
    pub fn gone(&mut self, key: &K) {
        if let Some(listed) = &mut self.listed {
            listed.remove(key);
        }
        self.known.remove(key);
    }

    /// The list is complete: what it did not name, and is therefore gone.
    pub fn finish(&mut self) -> Vec<K> {
        let Some(listed) = self.listed.take() else { return Vec::new() };
        let gone = self.known.difference(&listed).cloned().collect();
        self.known = listed;
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_relist_does_not_name_is_gone() {
        let mut relist = Relist::default();
        relist.begin();
        relist.seen("a");
        relist.seen("b");
        assert!(relist.finish().is_empty());
        relist.seen("c");
        relist.gone(&"a");
        relist.begin();
        relist.seen("b");
        assert_eq!(relist.finish(), ["c"]);
    }

    #[test]
    fn a_list_that_starts_over_forgets_its_first_half() {
        let mut relist = Relist::default();
        relist.begin();
        relist.seen("a");
        relist.begin();
        relist.seen("b");
        assert_eq!(relist.finish(), ["a"]);
    }
}
