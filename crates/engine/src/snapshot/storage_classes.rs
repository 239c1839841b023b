//! How every `StorageClass` comes into snapshots.

use super::while_read::WhileRead;
use crate::plugins::storage_classes::{StorageClass, StorageClasses};

impl WhileRead for StorageClasses {
    type Key = String;
    type Value = StorageClass;

    fn get(&self, name: &String) -> Option<&StorageClass> {
        self.class(name)
    }

    fn insert(&mut self, name: String, class: StorageClass) {
        self.take(name, class);
    }

    fn remove(&mut self, name: &String) {
        self.forget(name);
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn complete(&mut self) {
        self.is_complete = true;
    }
}
