//! Which webhook entries the API server has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::registry::Phase;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};

/// Many objects are reconciled one after the other.
const FRESH: Duration = Duration::from_secs(1);

/// Entries that are there and trust somebody, by phase and name.
pub type Entries = BTreeSet<(Phase, String)>;

/// When they were read, and what they were.
type LastRead = (Instant, Arc<Entries>);

/// Reads the configurations, at most once in a second.
#[derive(Clone)]
pub struct EntryReader {
    client: Client,
    last: Arc<Mutex<Option<LastRead>>>,
}

impl EntryReader {
    /// A reader that has read nothing.
    pub fn new(client: Client) -> Self {
        Self { client, last: Arc::default() }
    }

    /// The entries.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn read(&self) -> Result<Arc<Entries>, kube::Error> {
        let mut last = self.last.lock().await;
        if let Some((_, entries)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(Arc::clone(entries));
        }
        let mut entries = Entries::new();
        for name in [MUTATING, ON_DEMAND_MUTATING] {
            self.add::<MutatingWebhookConfiguration>(Phase::Mutating, name, &mut entries).await?;
        }
        for name in [VALIDATING, ON_DEMAND_VALIDATING] {
            self.add::<ValidatingWebhookConfiguration>(Phase::Validating, name, &mut entries).await?;
        }
        let entries = Arc::new(entries);
        *last = Some((Instant::now(), Arc::clone(&entries)));
        Ok(entries)
    }

    async fn add<C>(&self, phase: Phase, name: &str, entries: &mut Entries) -> Result<(), kube::Error>
    where
        C: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
        C: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>,
    {
        let Some(found) = Api::<C>::all(self.client.clone()).get_opt(name).await? else { return Ok(()) };
        let found = serde_json::to_value(found).unwrap_or_default();
        let webhooks = found.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let trusted = webhooks.filter(|entry| {
            entry.pointer("/clientConfig/caBundle").and_then(Value::as_str).is_some_and(|bundle| !bundle.is_empty())
        });
        let names = trusted.filter_map(|entry| entry.get("name").and_then(Value::as_str));
        entries.extend(names.map(|name| (phase, name.to_owned())));
        Ok(())
    }
}
