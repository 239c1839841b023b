//! `PodSecurity`: namespaces without labels get those of the cluster's defaults, which the API server's own plugin then enforces.
//!
//! Levels and labels are those of k8s.io/pod-security-admission/api.

use super::change::PodChange;
use super::namespace_facts::NamespaceFacts;
use super::{forbidden, shortened};

/// The levels, from the widest to the strictest.
pub const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// The label that refuses pods.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// The label with the version of that level.
const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";

/// The configuration: value by label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodSecurity {
    /// Labels that a namespace without them gets.
    pub labels: Vec<(&'static str, String)>,
}

impl PodSecurity {
    fn missing<'s>(&'s self, namespace: &'s NamespaceFacts<'_>) -> impl Iterator<Item = &'s (&'static str, String)> {
        self.labels.iter().filter(|(key, _)| namespace.label(key).is_none())
    }

    /// What a new namespace gets.
    pub fn change(&self, namespace: &NamespaceFacts<'_>) -> PodChange<'static> {
        let labels = self.missing(namespace).map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        PodChange { labels, ..PodChange::default() }
    }

    /// Judges a new namespace as it is to be stored.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, namespace: &NamespaceFacts<'_>, name: &str) -> Result<(), String> {
        self.missing(namespace).next().map_or(Ok(()), |(key, value)| {
            let why = format!("label {key}={value} is missing; another admission webhook may have removed it");
            Err(forbidden("namespaces", name, &why))
        })
    }

    /// Judges a change of a namespace: what is enforced may become stricter, and not weaker than the default.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check_update(&self, old: &NamespaceFacts<'_>, new: &NamespaceFacts<'_>, name: &str) -> Result<(), String> {
        let Some((_, least)) = self.labels.iter().find(|(key, _)| *key == ENFORCE) else { return Ok(()) };
        let Some(before) = old.label(ENFORCE) else { return Ok(()) };
        let why = match new.label(ENFORCE) {
            None if strictness(before) == Some(0) => return Ok(()),
            None => format!("label {ENFORCE} may not be removed"),
            Some(now) if strictness(now) < strictness(before) && strictness(now) < strictness(least) => {
                format!("label {ENFORCE} may not be changed to {:?}, which is weaker than {least:?}", shortened(now))
            }
            Some(_) => {
                let [was, is] = [old, new].map(|namespace| age(namespace.label(ENFORCE_VERSION)));
                let of_default =
                    self.labels.iter().find(|(key, _)| *key == ENFORCE_VERSION).map(|(_, value)| value.as_str());
                if is >= was || is >= age(of_default) {
                    return Ok(());
                }
                format!("label {ENFORCE_VERSION} may not be changed to an older version")
            }
        };
        Err(forbidden("namespaces", name, &why))
    }
}

/// Position among the levels; what is none comes before all, and the API server refuses it.
fn strictness(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

/// The minor version; the newest where the label is absent or says so.
fn age(version: Option<&str>) -> u16 {
    version.and_then(|version| version.strip_prefix("v1.")?.parse().ok()).unwrap_or(u16::MAX)
}

/// Whether it is a version of the policy: `latest`, or `v1.` and a number.
pub fn is_version(text: &str) -> bool {
    let number = |minor: &str| minor == "0" || (!minor.starts_with('0') && minor.parse::<u16>().is_ok());
    text == "latest"
        || text
            .strip_prefix("v1.")
            .is_some_and(|minor| minor.bytes().all(|byte| byte.is_ascii_digit()) && number(minor))
}
