//! The `Collector` type, `collector.ip.outrider.dev/v1`.

use admission::object::object_or_null;
use admission::review::null_as_default;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::address_list::AddressList;
use crate::watch::deployment::SelectorText;
use crate::workshop::object::{KindSpec, Object, first_kept};

/// The only kind of target.
pub const DEPLOYMENT: &str = "Deployment";
/// Pods that are listed where nothing is said. The schema writes it into every object.
pub const DEFAULT_MAX_IPS: i32 = 1000;
/// Pods that may be listed.
pub const MOST_IPS: i32 = 10_000;
/// Bytes of `spec.reset`.
pub const RESET_MAX_BYTES: usize = 256;

/// Reports the addresses of pods, and counts what happens to their Deployment.
pub type Collector = Object<CollectorSpec>;

impl KindSpec for CollectorSpec {
    const GROUP: &'static str = concat!("collector.ip.", api_domain!());
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Collector";
    const PLURAL: &'static str = "collectors";
    type Scope = NamespaceResourceScope;
    type Status = CollectorStatus;
}

/// What a Collector asks for: the pods of a selector or those of a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CollectorSpec {
    /// Pods of the namespace, by their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<SelectorText>,
    /// The workload whose pods are meant, and whose events are counted.
    #[serde(deserialize_with = "object_or_null", skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Whether IPv6 addresses are listed.
    #[serde(rename = "includeIPv6", skip_serializing_if = "Option::is_none")]
    pub include_ipv6: Option<bool>,
    /// How many pods are listed.
    #[serde(rename = "maxIPs", skip_serializing_if = "Option::is_none")]
    pub max_ips: Option<i32>,
    /// Any text; another one makes the counters begin at zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
}

/// A workload in the namespace of the Collector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// `Deployment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

impl CollectorSpec {
    /// Whether IPv6 addresses are listed, with the default resolved.
    pub fn include_ipv6(&self) -> bool {
        self.include_ipv6.unwrap_or(true)
    }

    /// How many pods are listed, with the default resolved.
    pub fn max_ips(&self) -> usize {
        let limit = self.max_ips.unwrap_or(DEFAULT_MAX_IPS).clamp(1, MOST_IPS);
        usize::try_from(limit).unwrap_or_default()
    }

    /// Name of the Deployment whose pods are meant.
    pub fn deployment(&self) -> Option<&str> {
        self.target.as_ref().map(|target| target.name.as_str())
    }
}

/// What the controller saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CollectorStatus {
    /// The generation that the rest is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods that are meant and have not finished.
    #[serde(deserialize_with = "null_as_default")]
    pub matched_pods: i32,
    /// Of these, those that are ready.
    #[serde(deserialize_with = "null_as_default")]
    pub ready_pods: i32,
    /// Those that have an address, by name.
    #[serde(skip_serializing_if = "AddressList::is_empty")]
    pub ips: AddressList,
    /// Events of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventCount>,
    /// What happened to the target last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// `Ready` and `TargetNotFound`.
    #[serde(deserialize_with = "first_kept::<3, _, _>", skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// Where a pod is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAddress {
    /// Its name.
    pub pod: String,
    /// Name of its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its first address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// All its addresses.
    #[serde(rename = "podIPs")]
    pub pod_ips: Vec<String>,
    /// Whether it is ready.
    pub ready: bool,
}

/// Events of a Deployment since the count began: each is one version of it that a watch reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCount {
    /// The Deployment that is counted.
    pub deployment: String,
    /// `spec.reset` when the count began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<String>,
    /// All.
    pub total: i64,
    /// It was created.
    pub added: i64,
    /// It was changed, its status included.
    pub modified: i64,
    /// It was deleted.
    pub deleted: i64,
    /// Up to which version of the Deployment is counted; none while there is no Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_resource_version: Option<String>,
    /// When the last one was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_event_time: Option<Time>,
}

impl EventCount {
    /// Whether this counts what the spec wants counted.
    pub fn is_for(&self, spec: &CollectorSpec) -> bool {
        Some(self.deployment.as_str()) == spec.deployment() && self.reset == spec.reset
    }
}

/// One thing that happened to a Deployment, with all that followed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastOperation {
    /// What happened.
    pub description: String,
    /// How many events it made so far.
    pub events: i64,
    /// Generation of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;
    use serde_json::json;

    use super::*;
    use crate::API_DOMAIN;

    #[test]
    fn group_is_a_subdomain_of_the_one_domain() {
        assert_eq!(Collector::api_version(&()), format!("collector.ip.{API_DOMAIN}/v1"));
        let path = format!("/apis/collector.ip.{API_DOMAIN}/v1/namespaces/a/collectors");
        assert_eq!(Collector::url_path(&(), Some("a")), path);
    }

    #[test]
    fn what_is_not_said_has_its_default_and_no_limit_is_beyond_its_bounds() {
        for (spec, ipv6, most) in [
            (json!({}), true, 1000),
            (json!({"includeIPv6": null, "maxIPs": null}), true, 1000),
            (json!({"includeIPv6": false, "maxIPs": 1}), false, 1),
            (json!({"maxIPs": 0}), true, 1),
            (json!({"maxIPs": 2_000_000}), true, 10_000),
        ] {
            let decoded: CollectorSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!((decoded.include_ipv6(), decoded.max_ips()), (ipv6, most), "{spec}");
        }
    }
}
