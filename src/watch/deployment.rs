//! Deployments as watches keep them: what is asked for, and how far it is.

use admission::format::LabelSelector;
use k8s_openapi::api::apps::v1::Deployment;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::watch::partial::Partial;

/// A Deployment.
pub type SlimDeployment = Partial<Deployment, DeploymentSpec, DeploymentStatus>;

/// What is asked of a Deployment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many pods; 1 where it is missing.
    pub replicas: Option<i32>,
    /// Which pods are its.
    #[serde(deserialize_with = "short_selector")]
    pub selector: Option<LabelSelector>,
    /// How pods are replaced.
    pub strategy: Option<Strategy>,
}

/// How pods are replaced.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Strategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub type_: Option<String>,
}

/// How far a Deployment is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation that the numbers are of.
    pub observed_generation: Option<i64>,
    /// Pods.
    pub replicas: Option<i32>,
    /// Pods of the newest template.
    pub updated_replicas: Option<i32>,
    /// Pods that are ready.
    pub ready_replicas: Option<i32>,
    /// Pods that are ready for long enough.
    pub available_replicas: Option<i32>,
}

/// The longest selector that is decoded, in bytes of its JSON. Its terms cost more than ten times as much in memory.
const SELECTOR_MAX_BYTES: usize = 8 * 1024;

/// Decodes a selector.
///
/// # Errors
/// That it is too long.
pub fn short_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LabelSelector>, D::Error> {
    let Some(text) = Option::<Box<RawValue>>::deserialize(deserializer)? else { return Ok(None) };
    let bytes = text.get().len();
    if bytes > SELECTOR_MAX_BYTES {
        return Err(D::Error::custom(format!("selector: {bytes} bytes, and at most {SELECTOR_MAX_BYTES} are read")));
    }
    serde_json::from_str(text.get()).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_is_too_long_makes_an_object_unreadable() {
        let labels = |count: u32| (0..count).map(|n| (format!("example.com/{n}"), "a".to_owned()));
        for (count, readable) in [(0, true), (50, true), (10_000, false)] {
            let labels: BTreeMap<_, _> = labels(count).collect();
            let spec = serde_json::from_value::<DeploymentSpec>(json!({"selector": {"matchLabels": labels}}));
            assert_eq!(spec.is_ok(), readable, "{count}");
            assert!(spec.is_err() || spec.unwrap().selector.unwrap().match_labels == labels);
        }
        assert_eq!(serde_json::from_value::<DeploymentSpec>(json!({"selector": null})).unwrap().selector, None);
    }
}
