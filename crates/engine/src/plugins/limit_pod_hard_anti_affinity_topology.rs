//! `LimitPodHardAntiAffinityTopology`: required anti-affinity is between nodes, not between zones.

use admission::Text;
use admission::review::null_as_default;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

use super::pod_facts::Spec;
use super::{forbidden, shortened};

/// The topology key of a node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitTopology {
    /// The topology keys that required anti-affinity may have, as written.
    said: Vec<String>,
    allowed: BTreeSet<String>,
}

impl LimitTopology {
    /// Those of a list; where it is empty, that of a node.
    pub fn of(mut keys: Vec<String>) -> Self {
        if keys.is_empty() {
            keys.push(HOSTNAME.to_owned());
        }
        Self { allowed: keys.iter().cloned().collect(), said: keys }
    }

    /// The keys.
    pub const fn allowed(&self) -> &BTreeSet<String> {
        &self.allowed
    }

    fn allows(&self, key: &str) -> bool {
        super::work::done(1);
        self.allowed.contains(key)
    }

    /// Judges a pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(&self, spec: &Spec<'_>, name: &str) -> Result<(), String> {
        let Some(affinity) = spec.affinity else { return Ok(()) };
        let affinity = serde_json::from_str::<Affinity<'_>>(affinity.get());
        let affinity =
            affinity.map_err(|error| forbidden("pods", name, &format!("spec.affinity cannot be read: {error}")))?;
        let terms = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution;
        let Some(key) = terms.keys.iter().find(|key| !self.allows(key)) else {
            return Ok(());
        };
        let allowed = match self.said.as_slice() {
            [one] => format!("key {one} is"),
            several => format!("keys {} are", several.join(", ")),
        };
        let key = shortened(key);
        let why = format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only {allowed} allowed"
        );
        Err(forbidden("pods", name, &why))
    }
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Affinity<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    pod_anti_affinity: PodAntiAffinity<'a>,
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct PodAntiAffinity<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    required_during_scheduling_ignored_during_execution: Terms<'a>,
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Term<'a> {
    #[serde(borrow)]
    topology_key: Text<'a>,
}

admission::only_objects!(Affinity<'a>, PodAntiAffinity<'a>, Term<'a>);

/// The topology keys of terms, in their order, each once in a row.
#[derive(Default)]
struct Terms<'a> {
    keys: Vec<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Terms<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Terms<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut keys: Vec<Text<'de>> = Vec::new();
                while let Some(term) = seq.next_element::<Term<'de>>()? {
                    if keys.last() != Some(&term.topology_key) {
                        keys.push(term.topology_key);
                    }
                }
                Ok(Terms { keys })
            }
        }
        deserializer.deserialize_seq(Keys)
    }
}
