//! The `SimpleDeployment` type, `apps.outrider.dev/v1`.

use admission::review::null_as_default;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use crate::workshop::object::{KindSpec, Object, first_kept};

/// Replicas where nothing is said. The schema writes it into every object, as the sub-resource `scale` cannot read a missing
/// field.
pub const DEFAULT_REPLICAS: i32 = 1;

/// A Deployment that always has the number of replicas asked for.
pub type SimpleDeployment = Object<SimpleDeploymentSpec>;

impl KindSpec for SimpleDeploymentSpec {
    const GROUP: &'static str = concat!("apps.", api_domain!());
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "SimpleDeployment";
    const PLURAL: &'static str = "simpledeployments";
    type Scope = NamespaceResourceScope;
    type Status = SimpleDeploymentStatus;
}

/// What a `SimpleDeployment` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimpleDeploymentSpec {
    /// Replicas of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

impl SimpleDeploymentSpec {
    /// Replicas of the Deployment, with the default resolved.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(DEFAULT_REPLICAS)
    }
}

/// What the controller saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SimpleDeploymentStatus {
    /// The generation that the rest is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pods of the Deployment.
    #[serde(deserialize_with = "null_as_default")]
    pub replicas: i32,
    /// Pods that are ready.
    #[serde(deserialize_with = "null_as_default")]
    pub ready_replicas: i32,
    /// Pods that have been ready for as long as the Deployment asks.
    #[serde(deserialize_with = "null_as_default")]
    pub available_replicas: i32,
    /// Selects the pods, for autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// `Ready`.
    #[serde(deserialize_with = "first_kept::<2, _, _>", skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;
    use serde_json::json;

    use super::*;
    use crate::API_DOMAIN;

    #[test]
    fn group_is_a_subdomain_of_the_one_domain() {
        assert_eq!(SimpleDeployment::api_version(&()), format!("apps.{API_DOMAIN}/v1"));
        let path = format!("/apis/apps.{API_DOMAIN}/v1/namespaces/a/simpledeployments");
        assert_eq!(SimpleDeployment::url_path(&(), Some("a")), path);
    }

    #[test]
    fn one_replica_where_nothing_is_said_and_none_where_none_is_asked_for() {
        for (object, replicas) in [
            (json!({}), 1),
            (json!({"spec": null}), 1),
            (json!({"spec": {"replicas": null}}), 1),
            (json!({"spec": {"replicas": 0}}), 0),
            (json!({"spec": {"replicas": 3}}), 3),
        ] {
            let decoded: SimpleDeployment = serde_json::from_value(object.clone()).unwrap();
            assert_eq!(decoded.spec.replicas(), replicas, "{object}");
        }
    }
}
