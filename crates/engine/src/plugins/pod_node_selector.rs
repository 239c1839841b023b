//! `PodNodeSelector`: pods run where the annotation of their namespace says, and may select only nodes that an allow-list has.

use std::collections::BTreeMap;

use super::change::PodChange;
use super::compiled::At;
use super::forbidden;
use super::placement::{self, NODE_SELECTOR};
use super::pod_facts::Spec;

/// Who creates the pods of every `DaemonSet`. An owner reference says so too, and anybody can write one.
const DAEMON_SETS: &str = "system:serviceaccount:kube-system:daemon-set-controller";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodNodeSelector {
    /// The selector of namespaces without the annotation.
    pub cluster_default: BTreeMap<String, String>,
    /// By namespace, the labels that its pods may select.
    pub allow_lists: AllowLists,
    /// Whether the pods of every `DaemonSet` are left alone.
    pub skips_daemon_sets: bool,
}

/// Lists of the labels that pods of a namespace may select, of those that are not empty: an empty one allows all. They are one behind the
/// other in one text, and read for each pod: as many maps would take forty times as much memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowLists {
    text: Box<str>,
    // In the order of the namespaces.
    places: Box<[EntrySpan]>,
}

/// Where the name of a namespace begins in the text, where its list does, and where that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntrySpan {
    name: u32,
    list: u32,
    end: u32,
}

impl AllowLists {
    /// Lists by namespace.
    pub fn of(lists: &BTreeMap<String, String>) -> Self {
        let mut text = String::new();
        let mut add = |part: &str| {
            text.push_str(part);
            // No object has four gigabytes.
            u32::try_from(text.len()).unwrap_or(u32::MAX)
        };
        let mut name = 0;
        let places = lists.iter().filter(|(_, labels)| !labels.is_empty()).map(|(namespace, labels)| {
            let (list, end) = (add(namespace), add(labels));
            EntrySpan { name: std::mem::replace(&mut name, end), list, end }
        });
        let places = places.collect();
        Self { text: text.into(), places }
    }

    /// Every namespace with its list, which is written as in the configuration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| (self.part(place.name, place.list), self.part(place.list, place.end)))
    }

    /// The list of a namespace.
    pub fn get(&self, namespace: &str) -> Option<&str> {
        let found = self.places.binary_search_by(|place| self.part(place.name, place.list).cmp(namespace)).ok()?;
        self.places.get(found).map(|place| self.part(place.list, place.end))
    }

    fn part(&self, begin: u32, end: u32) -> &str {
        self.text.get(begin as usize..end as usize).unwrap_or_default()
    }
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

    /// What a new pod that selects nothing by this key gets there.
    pub fn given<'s>(&'s self, key: &str, at: &'s At<'_>) -> Option<&'s str> {
        let selector = if self.skips(at) { None } else { self.selector(at).ok() };
        selector?.get(key).map(String::as_str)
    }

    /// What is to be changed in a new pod.
    ///
    /// # Errors
    /// Why the pod is refused.
    pub fn change<'a>(&self, spec: &Spec<'a>, at: &At<'_>) -> Result<PodChange<'a>, String> {
        if self.skips(at) {
            return Ok(PodChange::default());
        }
        let selector = self.selector(at)?;
        without_conflict(selector, spec, at)?;
        let missing = selector.iter().filter(|(key, _)| spec.node_label(key).is_none());
        let added: Vec<(String, String)> = missing.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.within(spec.node_labels().chain(added.iter().map(|(key, value)| (key.as_str(), value.as_str()))), at)?;
        Ok(PodChange { node_labels: added, ..PodChange::default() })
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

    fn within<'l>(&self, mut labels: impl Iterator<Item = (&'l str, &'l str)>, at: &At<'_>) -> Result<(), String> {
        let Some(list) = self.allow_lists.get(at.namespace) else { return Ok(()) };
        // It had no fault when the plugin was compiled.
        let allowed = placement::labels(list).unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_each_namespace_is_found_and_an_empty_one_is_none() {
        let lists = [("b", "x=1"), ("a", ""), ("ab", "y=2,z=é"), ("", "w=3")];
        let lists: BTreeMap<String, String> = lists.map(|(name, list)| (name.to_owned(), list.to_owned())).into();
        let packed = AllowLists::of(&lists);
        assert_eq!(packed.iter().collect::<Vec<_>>(), [("", "w=3"), ("ab", "y=2,z=é"), ("b", "x=1")]);
        let found = ["", "a", "ab", "b", "c"].map(|namespace| packed.get(namespace));
        assert_eq!(found, [Some("w=3"), None, Some("y=2,z=é"), Some("x=1"), None]);
        assert_eq!(AllowLists::of(&BTreeMap::new()), AllowLists::default());
    }
}
