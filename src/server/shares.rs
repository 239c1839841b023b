//! Places that backends share, so that one that hangs holds no more than its share of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What each backend has for itself, by its name, as long as it is held.
#[derive(Debug)]
pub struct Shares<T> {
    by_name: Mutex<HashMap<String, Weak<T>>>,
}

impl<T> Default for Shares<T> {
    fn default() -> Self {
        Self { by_name: Mutex::default() }
    }
}

impl<T> Shares<T> {
    /// The share of a backend, which is made new where it is not held.
    pub fn of(&self, name: &str, new: impl FnOnce() -> T) -> Arc<T> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = by_name.get(name).and_then(Weak::upgrade) {
            return share;
        }
        by_name.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(new());
        by_name.insert(name.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_same_while_it_is_held_and_forgotten_afterwards() {
        let shares = Shares::default();
        let (one, other) = (shares.of("a", || 1), shares.of("b", || 2));
        assert_eq!((*shares.of("a", || 3), *other), (1, 2));
        drop(one);
        assert_eq!(*shares.of("a", || 3), 3);
        drop(other);
        let _ = shares.of("c", || 4);
        assert!(!shares.by_name.lock().unwrap_or_else(PoisonError::into_inner).contains_key("b"));
    }
}
