//! Our webhook configurations, through one interface: two types with one shape, and two objects of each.

use std::fmt::Debug;

use admission::registry::Phase;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::manifests::webhooks::{Settings, demanded};
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};
use crate::watch::resource_of_kind;
use engine::demand::Demand;

/// A webhook configuration of ours.
pub trait Configuration:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Name of ours.
    const NAME: &'static str;
    /// Name of the one whose entries exist only while an object needs them.
    const ON_DEMAND: &'static str;
    /// When the API server calls its entries.
    const PHASE: Phase;

    /// Name and address of each entry.
    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl Configuration for MutatingWebhookConfiguration {
    const NAME: &'static str = MUTATING;
    const ON_DEMAND: &'static str = ON_DEMAND_MUTATING;
    const PHASE: Phase = Phase::Mutating;

    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|webhook| (webhook.name.as_str(), &webhook.client_config)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const NAME: &'static str = VALIDATING;
    const ON_DEMAND: &'static str = ON_DEMAND_VALIDATING;
    const PHASE: Phase = Phase::Validating;

    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks.iter().flatten().map(|webhook| (webhook.name.as_str(), &webhook.client_config)).collect()
    }
}

/// The configuration of the same type whose entries exist only while an object needs them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OnDemand<C>(C);

impl<C: Configuration> OnDemand<C> {
    /// With the entries that are needed, for a process that registers itself.
    ///
    /// # Errors
    /// An entry that cannot be written as JSON.
    pub fn of(demands: &[Demand], settings: &Settings<'_>) -> Result<Self, serde_json::Error> {
        let wanted = demands.iter().filter(|demand| demand.phase == C::PHASE);
        let entries: Vec<Value> = wanted.map(|demand| demanded(demand, settings)).collect();
        serde_json::from_value(json!({"metadata": {"name": C::ON_DEMAND}, "webhooks": entries}))
    }
}

impl<C: Configuration> Configuration for OnDemand<C> {
    const NAME: &'static str = C::ON_DEMAND;
    const ON_DEMAND: &'static str = C::ON_DEMAND;
    const PHASE: Phase = C::PHASE;

    fn entries(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.0.entries()
    }
}

resource_of_kind!(OnDemand<K>: Configuration, this => this.0.meta(), this.0.meta_mut());
