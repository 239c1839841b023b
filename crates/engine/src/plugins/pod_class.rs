//! `Priority` and `RuntimeClass`, which the API server has for the whole cluster: a class that the pods of a namespace get which name none.
//! What follows from it is computed by the API server's own plugins (k8s.io/kubernetes/plugin/pkg/admission/priority and runtimeclass), which
//! run again after a webhook has changed a pod.

use std::collections::BTreeSet;

use super::change::PodChange;
use super::compiled::At;
use super::forbidden;
use super::pod_facts::Spec;

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodClass {
    /// Name of the class.
    pub name: String,
    /// Classes that are replaced as if the pod named none.
    pub replaced: BTreeSet<String>,
}

impl PodClass {
    /// The class that a pod gets which names this one, or none.
    fn given(&self, own: Option<&str>) -> Option<String> {
        let is_given = own.is_none_or(|own| own != self.name && self.replaced.contains(own));
        is_given.then(|| self.name.clone())
    }

    /// What is to be changed in a new pod: its class of priority.
    pub fn change_priority(&self, spec: &Spec<'_>, at: &At<'_>) -> PodChange<'static> {
        let given = if at.is_mirror { None } else { self.given(spec.priority_class()) };
        PodChange { priority_class: given, ..PodChange::default() }
    }

    /// What is to be changed in a new pod: its class of runtimes.
    pub fn change_runtime(&self, spec: &Spec<'_>, at: &At<'_>) -> PodChange<'static> {
        let given = if at.is_mirror { None } else { self.given(spec.runtime_class()) };
        PodChange { runtime_class: given, ..PodChange::default() }
    }

    /// Judges a pod as it is to be stored, by what would be changed.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(change: &PodChange<'_>, at: &At<'_>) -> Result<(), String> {
        let lacking = [("priority class", &change.priority_class), ("runtime class", &change.runtime_class)];
        match lacking.into_iter().find_map(|(what, name)| Some((what, name.as_ref()?))) {
            None => Ok(()),
            Some((what, name)) => {
                let why = format!(
                    "pod lacks the {what} {name} of its namespace; another admission webhook may have removed it"
                );
                Err(forbidden("pods", at.name, &why))
            }
        }
    }
}
