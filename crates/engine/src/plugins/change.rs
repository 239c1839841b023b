//! What a plugin would change in a pod.

use super::taint_nodes_by_condition::{EFFECT, KEY};
use super::toleration::Tolerated;

/// A list of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Init containers.
    Init,
    /// `spec.containers`.
    Containers,
    /// Ephemeral containers.
    Ephemeral,
}

impl List {
    /// In the order in which the API server visits them (`VisitContainers` of k8s.io/kubernetes/pkg/api/v1/pod).
    pub const ALL: [Self; 3] = [Self::Init, Self::Containers, Self::Ephemeral];

    /// The field of the spec.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Init => "initContainers",
            Self::Containers => "containers",
            Self::Ephemeral => "ephemeralContainers",
        }
    }

    /// The same, in the pod.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Init => "spec.initContainers",
            Self::Containers => "spec.containers",
            Self::Ephemeral => "spec.ephemeralContainers",
        }
    }
}

/// What is to be changed. A change of nothing is empty.
#[derive(Debug, Default)]
pub struct PodChange<'a> {
    /// Containers that get the policy `Always`.
    pub pulled: Vec<(List, usize)>,
    /// Volumes that get the policy `Always`.
    pub pulled_volumes: Vec<usize>,
    /// Node labels that are added.
    pub node_labels: Vec<(String, String)>,
    /// Labels that are added.
    pub labels: Vec<(String, String)>,
    /// Annotations that are added.
    pub annotations: Vec<(String, String)>,
    /// The class of priority that a pod gets.
    pub priority_class: Option<String>,
    /// The class of runtimes that a pod gets.
    pub runtime_class: Option<String>,
    /// The finalizer that is added.
    pub finalizer: Option<&'static str>,
    /// Whether a node gets the taint of nodes that are not ready.
    pub is_tainted: bool,
    /// Pull secrets that a pod gets.
    pub pull_secrets: Vec<String>,
    /// The storage class that a claim gets.
    pub storage_class: Option<String>,
    /// Tolerations that are added, or all as they are to be.
    pub tolerations: Tolerations<'a>,
}

/// A change of tolerations.
#[derive(Debug)]
pub enum Tolerations<'a> {
    /// These are added behind those that are there; none changes nothing.
    Added(Vec<Tolerated<'a>>),
    /// These take the place of all that are there.
    Replaced(Vec<Tolerated<'a>>),
}

impl Default for Tolerations<'_> {
    fn default() -> Self {
        Self::Added(Vec::new())
    }
}

impl PodChange<'_> {
    /// Whether nothing is to be changed.
    pub const fn is_empty(&self) -> bool {
        self.pulled.is_empty()
            && self.pulled_volumes.is_empty()
            && self.node_labels.is_empty()
            && self.labels.is_empty()
            && self.annotations.is_empty()
            && self.priority_class.is_none()
            && self.runtime_class.is_none()
            && self.finalizer.is_none()
            && !self.is_tainted
            && self.pull_secrets.is_empty()
            && self.storage_class.is_none()
            && matches!(&self.tolerations, Tolerations::Added(none) if none.is_empty())
    }

    /// In words, for somebody who is warned.
    pub fn in_words(&self) -> String {
        let mut words = Vec::new();
        let pulled = self.pulled.len() + self.pulled_volumes.len();
        if pulled > 0 {
            words
                .push(format!("set the pull policy of {pulled} image{} to Always", if pulled == 1 { "" } else { "s" }));
        }
        let pairs =
            [("node selector", &self.node_labels), ("labels", &self.labels), ("annotations", &self.annotations)];
        for (what, pairs) in pairs.into_iter().filter(|(_, pairs)| !pairs.is_empty()) {
            let said: Vec<String> = pairs.iter().take(SAID).map(|(key, value)| format!("{key}={value}")).collect();
            words.push(format!("add the {what} {}", said.join(",")));
        }
        words.extend(self.priority_class.iter().map(|class| format!("set the priority class {class}")));
        words.extend(self.runtime_class.iter().map(|class| format!("set the runtime class {class}")));
        words.extend(self.finalizer.iter().map(|finalizer| format!("add the finalizer {finalizer}")));
        if self.is_tainted {
            words.push(format!("add the taint {KEY}:{EFFECT}"));
        }
        if !self.pull_secrets.is_empty() {
            let said: Vec<&str> = self.pull_secrets.iter().take(SAID).map(String::as_str).collect();
            words.push(format!("add the pull secrets {}", said.join(",")));
        }
        words.extend(self.storage_class.iter().map(|class| format!("set the storage class {class}")));
        match &self.tolerations {
            Tolerations::Added(none) if none.is_empty() => {}
            Tolerations::Added(added) => {
                let count = added.len();
                words.push(format!("add {count} toleration{}", if count == 1 { "" } else { "s" }));
            }
            Tolerations::Replaced(all) => words.push(format!("set {} tolerations", all.len())),
        }
        words.join(" and ")
    }
}

/// Labels, or names, that a warning has.
const SAID: usize = 8;
