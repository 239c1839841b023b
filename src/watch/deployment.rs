//! Deployments as watches keep them: what is asked for, and how far it is.

use admission::format::LabelSelector;
use admission::object::object_or_default;
use k8s_openapi::api::apps::v1::Deployment;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::watch::partial::Partial;

/// A Deployment, of which a few fields are decoded.
pub type PartialDeployment = Partial<Deployment, DeploymentSpec, DeploymentStatus>;

/// What is asked of a Deployment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many pods; 1 where it is missing.
    pub replicas: Option<i32>,
    /// Which pods are its.
    pub selector: Option<SelectorText>,
    /// How pods are replaced.
    pub strategy: Option<DeploymentStrategy>,
}

/// How pods are replaced.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DeploymentStrategy {
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

/// Terms of a selector that are read, and values of them all: some controllers keep it compiled.
const SELECTOR_MAX_TERMS: usize = 64;
const SELECTOR_MAX_VALUES: usize = 256;

/// A selector as it is written, which is decoded where it is used.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct SelectorText(Box<RawValue>);

impl SelectorText {
    /// The selector.
    pub fn decoded(&self) -> LabelSelector {
        // It was decoded before it was kept.
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl PartialEq for SelectorText {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

/// Refuses one that is too long, and what is no selector.
impl<'de> Deserialize<'de> for SelectorText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let bytes = text.get().len();
        if bytes > SELECTOR_MAX_BYTES {
            return Err(D::Error::custom(format!(
                "selector: {bytes} bytes, and at most {SELECTOR_MAX_BYTES} are read"
            )));
        }
        let mut decoder = serde_json::Deserializer::from_str(text.get());
        let selector: LabelSelector = object_or_default(&mut decoder).map_err(D::Error::custom)?;
        let terms = selector.match_labels.len() + selector.match_expressions.len();
        let values: usize = selector.match_expressions.iter().map(|term| term.values.len()).sum();
        if terms > SELECTOR_MAX_TERMS || values > SELECTOR_MAX_VALUES {
            let most = format!("at most {SELECTOR_MAX_TERMS} and {SELECTOR_MAX_VALUES} are read");
            return Err(D::Error::custom(format!("selector: {terms} terms with {values} values, and {most}")));
        }
        Ok(Self(text))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_is_too_long_makes_an_object_unreadable() {
        let labels = |count: u32| (0..count).map(|n| (format!("example.com/{n}"), "a".to_owned()));
        for (count, readable) in [(0, true), (50, true), (100, false), (10_000, false)] {
            let labels: BTreeMap<_, _> = labels(count).collect();
            let spec = serde_json::from_value::<DeploymentSpec>(json!({"selector": {"matchLabels": labels}}));
            assert_eq!(spec.is_ok(), readable, "{count}");
            assert!(spec.is_err() || spec.unwrap().selector.unwrap().decoded().match_labels == labels);
        }
        assert_eq!(serde_json::from_value::<DeploymentSpec>(json!({"selector": null})).unwrap().selector, None);
    }
}
