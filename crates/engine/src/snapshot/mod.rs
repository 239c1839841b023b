//! One consistent view of everything that a decision reads.

pub mod builder;
pub mod collection;
pub mod configuration;
pub mod limit_ranges;
pub mod namespace;
pub mod nodes;
pub mod pinned;
pub mod plugins;
pub mod policies;
pub mod quotas;
pub mod revisions;
pub mod scope;
pub mod security_profiles;
pub mod service_accounts;
pub mod sets;
mod storage_classes;
pub mod table;
pub mod while_read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::collection::{Collected, Collection, collections};
use self::configuration::ConfigurationMaps;
use self::limit_ranges::LimitRangeList;
use self::namespace::NamespaceList;
use self::nodes::Nodes;
use self::pinned::PinnedForms;
use self::plugins::Plugins;
use self::quotas::Quotas;
use self::revisions::Revisions;
use self::security_profiles::ProfileList;
use self::service_accounts::ServiceAccounts;
use self::sets::Sets;
use self::while_read::ListWhileRead;
use crate::plugins::index::PluginIndex;
use crate::plugins::storage_classes::StorageClasses;
use crate::sidecarset::index::SetIndex;

collections! {
    /// Every SidecarSet, compiled.
    sets: Sets,
    /// Every revision of the sets.
    revisions: Revisions,
    /// Every `AdmissionPlugin` that is on, compiled.
    plugins: Plugins,
    /// Every `ClusterLimitRange`, compiled.
    limit_ranges: LimitRangeList,
    /// Every `PodSecurityProfile`, compiled.
    security_profiles: ProfileList,
    /// Labels of the namespaces, and what their annotations say about pods.
    namespaces: NamespaceList,
    /// Every quota, while a plugin reads them.
    quotas: ListWhileRead<Quotas>,
    /// Every storage class, while a plugin reads them.
    storage_classes: ListWhileRead<StorageClasses>,
    /// Labels of every node, while a plugin reads them.
    nodes: ListWhileRead<Nodes>,
    /// Every account of pods, while a plugin reads them.
    service_accounts: ListWhileRead<ServiceAccounts>,
    /// What the `ConfigMap` of Outrider's configuration says.
    configuration: ConfigurationMaps,
}

impl Snapshot {
    /// Whether Outrider leaves the namespace alone, as far as its labels are known.
    pub fn excludes(&self, namespace: &str) -> bool {
        self.exclusion.covers(namespace, self.namespaces.labels(namespace))
    }

    /// A copy that shares no memory with the snapshot, but for the exclusions.
    #[must_use]
    pub fn detached(&self) -> Self {
        let sets = self.sets.iter().map(|set| Arc::new(set.detached()));
        let plugins = self.plugins.iter().map(|plugin| Arc::new((**plugin).clone()));
        Self {
            sets: Arc::new(SetIndex::build(sets)),
            revisions: Arc::new(self.revisions.detached()),
            pinned: Arc::new(self.pinned.detached()),
            plugins: Arc::new(PluginIndex::build(plugins)),
            limit_ranges: Arc::new(self.limit_ranges.detached()),
            security_profiles: Arc::new(self.security_profiles.detached()),
            namespaces: Arc::new(self.namespaces.detached()),
            quotas: Arc::new(self.quotas.detached()),
            storage_classes: Arc::new((*self.storage_classes).clone()),
            nodes: Arc::new(self.nodes.detached()),
            service_accounts: Arc::new(self.service_accounts.detached()),
            configuration: Arc::new((*self.configuration).clone()),
            ..self.clone()
        }
    }
}

/// A namespace with this label is excluded, whatever the label's value.
pub const EXCLUDE_LABEL: &str = "outrider.dev/exclude";

/// Where Outrider never changes or refuses a pod, whatever the sets say. The webhook rules hold the same list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusion {
    /// Names of namespaces.
    pub namespaces: BTreeSet<String>,
}

impl Exclusion {
    /// Namespaces that a cluster needs to come back to life.
    pub const ALWAYS: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

    /// The namespaces that are always excluded, our own, and more.
    pub fn new(own: &str, more: impl IntoIterator<Item = String>) -> Self {
        let namespaces = Self::ALWAYS.into_iter().chain([own]).map(str::to_owned).chain(more).collect();
        Self { namespaces }
    }

    /// Whether the namespace is excluded, by name or by label.
    pub fn covers(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.namespaces.contains(name) || labels.is_some_and(|labels| labels.contains_key(EXCLUDE_LABEL))
    }
}
