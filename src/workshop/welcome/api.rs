//! The `Welcome` type, `webapp.outrider.dev/v1`.

use admission::review::null_as_default;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use crate::workshop::object::{KindSpec, Object, first_kept};

/// The default of `spec.name`.
pub const DEFAULT_NAME: &str = "world";

/// A web server that shows a greeting.
pub type Welcome = Object<WelcomeSpec>;

impl KindSpec for WelcomeSpec {
    const GROUP: &'static str = concat!("webapp.", api_domain!());
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Welcome";
    const PLURAL: &'static str = "welcomes";
    type Scope = NamespaceResourceScope;
    type Status = WelcomeStatus;
}

/// What a Welcome asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WelcomeSpec {
    /// Who is greeted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl WelcomeSpec {
    /// Who is greeted, with the default resolved. It is not written back, so that a later build may greet differently.
    pub fn name(&self) -> &str {
        self.name.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAME)
    }
}

/// What the controller saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WelcomeStatus {
    /// The generation that the rest is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the web server is available.
    #[serde(deserialize_with = "null_as_default")]
    pub ready: bool,
    /// Name of the Deployment, once it is ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_name: Option<String>,
    /// Name of the Service, once it is ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
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
        assert_eq!(Welcome::api_version(&()), format!("webapp.{API_DOMAIN}/v1"));
        assert_eq!(Welcome::url_path(&(), Some("a")), format!("/apis/webapp.{API_DOMAIN}/v1/namespaces/a/welcomes"));
    }

    #[test]
    fn whoever_is_not_named_is_the_world() {
        for (spec, name) in [
            (json!({}), "world"),
            (json!({"spec": null}), "world"),
            (json!({"spec": {"name": null}}), "world"),
            (json!({"spec": {"name": ""}}), "world"),
            (json!({"spec": {"name": "kim"}}), "kim"),
        ] {
            assert_eq!(serde_json::from_value::<Welcome>(spec.clone()).unwrap().spec.name(), name, "{spec}");
        }
    }
}
