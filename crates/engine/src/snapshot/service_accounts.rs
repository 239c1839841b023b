//! What decisions read of `ServiceAccount`s.

use std::collections::HashMap;
use std::sync::Arc;

use super::while_read::WhileRead;
use crate::plugins::service_account::Account;

/// By which a change names the `ServiceAccount` that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AccountKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Every account that has been seen, by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct ServiceAccounts {
    known: HashMap<String, HashMap<String, Arc<Account>>>,
    /// Whether all accounts that there are have been seen. They are watched only while a plugin reads them.
    pub is_complete: bool,
}

impl ServiceAccounts {
    /// The account of this name; `None` also while not all have been seen.
    pub fn account(&self, namespace: &str, name: &str) -> Option<&Account> {
        self.known.get(namespace)?.get(name).map(|account| &**account)
    }

    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        let of_one = |(name, account): (&String, &Arc<Account>)| (name.clone(), Arc::new((**account).clone()));
        let copy = |(namespace, all): (&String, &HashMap<_, _>)| (namespace.clone(), all.iter().map(of_one).collect());
        Self { known: self.known.iter().map(copy).collect(), is_complete: self.is_complete }
    }
}

impl WhileRead for ServiceAccounts {
    type Key = AccountKey;
    type Value = Arc<Account>;

    fn get(&self, key: &AccountKey) -> Option<&Arc<Account>> {
        self.known.get(&key.namespace)?.get(&key.name)
    }

    fn insert(&mut self, key: AccountKey, account: Arc<Account>) {
        self.known.entry(key.namespace).or_default().insert(key.name, account);
    }

    fn remove(&mut self, key: &AccountKey) {
        if let Some(of_namespace) = self.known.get_mut(&key.namespace) {
            of_namespace.remove(&key.name);
            if of_namespace.is_empty() {
                self.known.remove(&key.namespace);
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn complete(&mut self) {
        self.is_complete = true;
    }
}
