//! `PodNodeSelector`: pods run where the annotation of their namespace says, and may select only nodes that an allow-list has.

use std::collections::BTreeMap;

use super::change::Change;
use super::compiled::At;
use super::forbidden;
use super::placement::NODE_SELECTOR;
use super::pod_facts::Spec;

/// Who creates the pods of every `DaemonSet`. An owner reference says so too, and anybody can write one.
const DAEMON_SETS: &str = "system:serviceaccount:kube-system:daemon-set-controller";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodNodeSelector {
    /// The selector of namespaces without the annotation.
    pub cluster_default: BTreeMap<String, String>,
    /// By namespace, the labels that its pods may select.
    pub allow_lists: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether the pods of every `DaemonSet` are left alone.
    pub skips_daemon_sets: bool,
}

impl PodNodeSelector {
    fn skips(&self, at: &At<'_>) -> bool {
        at.is_mirror || (self.skips_daemon_sets && at.user == DAEMON_SETS)
    }

    fn selector<'s>(&'s self, at: &'s At<'_>) -> Result<&'s BTreeMap<String, String>, String> {
        match at.placement.and_then(|placement| placement.node_selector.as_ref()) {
            None => Ok(&self.cluster_default),
            Some(Ok(selector)) => Ok(selector),
            Some(Err(error)) => Err(at.annotation(NODE_SELECTOR, error)),
        }
    }

    /// What is to be changed in a new pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn change<'a>(&self, spec: &Spec<'a>, at: &At<'_>) -> Result<Change<'a>, String> {
        if self.skips(at) {
            return Ok(Change::default());
        }
        let selector = self.selector(at)?;
        without_conflict(selector, spec, at)?;
        let missing = selector.iter().filter(|(key, _)| spec.node_label(key).is_none());
        let added: Vec<(String, String)> = missing.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.within(spec.node_labels().chain(added.iter().map(|(key, value)| (key.as_str(), value.as_str()))), at)?;
        Ok(Change { node_labels: added, ..Change::default() })
    }

    /// Judges a pod as it is to be stored.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn check(&self, spec: &Spec<'_>, at: &At<'_>) -> Result<(), String> {
        if self.skips(at) {
            return Ok(());
        }
        let selector = self.selector(at)?;
        without_conflict(selector, spec, at)?;
        self.within(spec.node_labels(), at)?;
        match selector.iter().find(|(key, _)| spec.node_label(key).is_none()) {
            None => Ok(()),
            Some((key, value)) => Err(forbidden(
                "pods",
                at.name,
                &format!(
                    "pod lacks the node selector {key}={value} of its namespace; another admission webhook may have removed it"
                ),
            )),
        }
    }

    /// An allow-list that is empty allows all.
    fn within<'l>(&self, mut labels: impl Iterator<Item = (&'l str, &'l str)>, at: &At<'_>) -> Result<(), String> {
        let Some(allowed) = self.allow_lists.get(at.namespace).filter(|list| !list.is_empty()) else { return Ok(()) };
        if labels.all(|(key, value)| allowed.get(key).is_some_and(|allowed| allowed == value)) {
            Ok(())
        } else {
            Err(forbidden("pods", at.name, "pod node label selector labels conflict with its namespace whitelist"))
        }
    }
}

fn without_conflict(selector: &BTreeMap<String, String>, spec: &Spec<'_>, at: &At<'_>) -> Result<(), String> {
    let conflicts = |(key, value): (&String, &String)| spec.node_label(key).is_some_and(|own| own != value);
    if selector.iter().any(conflicts) {
        Err(forbidden("pods", at.name, "pod node label selector conflicts with its namespace node label selector"))
    } else {
        Ok(())
    }
}
