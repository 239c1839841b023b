//! Objects in, snapshots out: keeps what is derived from objects and replaces the snapshot when a decision could change.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::ResourceExt as _;
use ring::digest::{Context, SHA256};

use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::index::SetIndex;
use crate::world::sets::{SetRecord, SetTable};
use crate::world::snapshot::{Exclusion, Snapshot};

/// What an object changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that anybody reads.
    None,
    /// Something that only controllers read, such as a status.
    Controllers,
    /// Something that decisions read.
    Decisions,
}

/// Compiles a set. A panic is an error like others here: every replica would meet it again after a restart, and a cluster
/// whose webhooks are all down creates no pods.
fn compile(set: &SidecarSet) -> Result<CompiledSet, String> {
    match catch_unwind(|| CompiledSet::compile(set)) {
        Ok(compiled) => compiled.map_err(|error| error.to_string()),
        Err(_) => Err("compiling it panicked".to_owned()),
    }
}

/// The source of snapshots.
#[derive(Debug)]
pub struct Feed {
    table: SetTable,
    /// What each set's compiled form was made from, so that a status update compiles nothing.
    sources: BTreeMap<String, Source>,
    sets_changed: bool,
    namespaces_changed: bool,
    version_changed: bool,
    next: Snapshot,
}

#[derive(Debug, PartialEq)]
struct Source {
    uid: Option<String>,
    generation: Option<i64>,
    // Of labels and annotations: kept as they are they would cost more than the set.
    digest: Vec<u8>,
}

impl Source {
    fn of(set: &SidecarSet) -> Self {
        Self { uid: set.metadata.uid.clone(), generation: set.metadata.generation, digest: digest(set) }
    }
}

/// SHA-256 of labels and annotations, each text with its length in front.
fn digest(set: &SidecarSet) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for map in [set.labels(), set.annotations()] {
        context.update(&map.len().to_le_bytes());
        for text in map.iter().flat_map(|(key, value)| [key, value]) {
            context.update(&text.len().to_le_bytes());
            context.update(text.as_bytes());
        }
    }
    context.finish().as_ref().to_vec()
}

impl Feed {
    /// A feed that has seen nothing. Namespaces may appear where a cluster is watched, and not where files are all there is.
    pub fn new(exclusion: Exclusion, namespaces_may_appear: bool) -> Self {
        let next = Snapshot { exclusion: Arc::new(exclusion), namespaces_may_appear, ..Snapshot::default() };
        Self {
            table: SetTable::default(),
            sources: BTreeMap::new(),
            // The first publication is due even when there is nothing in the cluster.
            sets_changed: true,
            namespaces_changed: true,
            version_changed: false,
            next,
        }
    }

    /// The sets, for controllers.
    pub fn sets(&self) -> SetTable {
        self.table.clone()
    }

    /// Takes in a set. One that does not compile keeps the last form that did.
    pub fn apply_set(&mut self, set: &SidecarSet) -> Effect {
        let name = set.name_any();
        let source = Source::of(set);
        let before = self.table.get(&name).filter(|record| Some(&record.uid) == set.metadata.uid.as_ref());
        let unchanged = set.metadata.generation.is_some() && self.sources.get(&name) == Some(&source);
        let mut record = SetRecord {
            name: name.clone(),
            uid: set.uid().unwrap_or_default(),
            terminating: set.metadata.deletion_timestamp.is_some(),
            status: set.status.clone(),
            compiled: before.as_ref().and_then(|record| record.compiled.clone()),
            compiled_generation: before.as_ref().map_or(0, |record| record.compiled_generation),
        };
        if unchanged {
            let same = before.is_some_and(|old| old.status == record.status && old.terminating == record.terminating);
            self.table.insert(record);
            return if same { Effect::None } else { Effect::Controllers };
        }
        match compile(set) {
            Ok(compiled) => {
                record.compiled = Some(Arc::new(compiled));
                record.compiled_generation = set.metadata.generation.unwrap_or_default();
            }
            Err(error) => {
                let kept = record.compiled.as_ref().map(|_| record.compiled_generation);
                tracing::warn!(sidecarset = name, error, last_good_generation = kept, "SidecarSet cannot be used");
            }
        }
        self.sources.insert(name, source);
        self.table.insert(record);
        self.sets_changed = true;
        Effect::Decisions
    }

    /// Forgets a set.
    pub fn remove_set(&mut self, name: &str) -> Effect {
        self.sources.remove(name);
        if !self.table.remove(name) {
            return Effect::None;
        }
        self.sets_changed = true;
        Effect::Decisions
    }

    /// Takes in a namespace.
    pub fn apply_namespace(&mut self, name: &str, labels: &BTreeMap<String, String>) -> Effect {
        if self.next.namespaces.labels(name) == Some(labels) {
            return Effect::None;
        }
        Arc::make_mut(&mut self.next.namespaces).insert(name.to_owned(), labels.clone());
        self.namespaces_changed = true;
        Effect::Decisions
    }

    /// Forgets a namespace.
    pub fn remove_namespace(&mut self, name: &str) -> Effect {
        if self.next.namespaces.labels(name).is_none() {
            return Effect::None;
        }
        Arc::make_mut(&mut self.next.namespaces).remove(name);
        self.namespaces_changed = true;
        Effect::Decisions
    }

    /// Takes in the minor version of the API server.
    pub fn apply_version(&mut self, minor: Option<u32>) {
        self.version_changed |= self.next.minor_version != minor;
        self.next.minor_version = minor;
    }

    /// Whether a decision could come out differently than with the snapshot published last.
    pub const fn is_stale(&self) -> bool {
        self.sets_changed || self.namespaces_changed || self.version_changed
    }

    /// Replaces the snapshot, if it is stale.
    pub fn publish(&mut self, target: &ArcSwap<Snapshot>) {
        if !self.is_stale() {
            return;
        }
        if self.sets_changed {
            let records = self.table.all();
            let compiled = records.iter().filter_map(|record| record.compiled.clone());
            self.next.sets = Arc::new(SetIndex::build(compiled));
        }
        self.next.generation += 1;
        target.store(Arc::new(self.next.clone()));
        self.sets_changed = false;
        self.namespaces_changed = false;
        self.version_changed = false;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str, generation: i64, image: &str) -> SidecarSet {
        serde_json::from_value(json!({
            "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet",
            "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "containers": [{"name": "proxy", "image": image}],
            },
        }))
        .unwrap()
    }

    fn feed() -> (Feed, ArcSwap<Snapshot>) {
        (Feed::new(Exclusion::default(), true), ArcSwap::default())
    }

    #[test]
    fn each_publication_raises_the_generation_and_none_happens_without_a_change() {
        let (mut feed, target) = feed();
        feed.publish(&target);
        assert_eq!(target.load().generation, 1);
        feed.publish(&target);
        assert_eq!(target.load().generation, 1);
        feed.apply_set(&set("a", 1, "proxy:1"));
        feed.publish(&target);
        assert_eq!(target.load().generation, 2);
    }

    #[test]
    fn a_version_of_the_api_server_is_published_when_it_is_another() {
        let (mut feed, target) = feed();
        feed.publish(&target);
        for (minor, generation) in [(None, 1), (Some(30), 2), (Some(30), 2), (Some(31), 3)] {
            feed.apply_version(minor);
            feed.publish(&target);
            assert_eq!((target.load().minor_version, target.load().generation), (minor, generation));
        }
    }

    #[test]
    fn a_status_update_concerns_controllers_only() {
        let (mut feed, _) = feed();
        let mut object = set("a", 1, "proxy:1");
        assert_eq!(feed.apply_set(&object), Effect::Decisions);
        assert_eq!(feed.apply_set(&object), Effect::None);
        object.status = Some(serde_json::from_value(json!({"matchedPods": 3})).unwrap());
        assert_eq!(feed.apply_set(&object), Effect::Controllers);
        assert_eq!(feed.sets().get("a").unwrap().status.as_ref().unwrap().matched_pods, 3);
    }

    #[test]
    fn a_set_that_stops_compiling_keeps_its_last_good_form() {
        let (mut feed, _) = feed();
        feed.apply_set(&set("a", 1, "proxy:1"));
        let good = feed.sets().get("a").unwrap().compiled.clone().unwrap();
        let mut broken = set("a", 2, "proxy:2");
        let bad_selector = json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]});
        broken.spec.selector = Some(serde_json::from_value(bad_selector).unwrap());
        feed.apply_set(&broken);
        let record = feed.sets().get("a").unwrap();
        assert!(Arc::ptr_eq(record.compiled.as_ref().unwrap(), &good));
        assert_eq!(record.compiled_generation, 1);
    }

    #[test]
    fn a_set_recreated_under_the_same_name_inherits_nothing() {
        let (mut feed, _) = feed();
        feed.apply_set(&set("a", 1, "proxy:1"));
        let mut recreated = set("a", 1, "proxy:2");
        recreated.metadata.uid = Some("another".to_owned());
        let before = feed.sets().get("a").unwrap().compiled.clone().unwrap();
        assert_eq!(feed.apply_set(&recreated), Effect::Decisions);
        let after = feed.sets().get("a").unwrap().compiled.clone().unwrap();
        assert_ne!(before.hash, after.hash);
    }

    #[test]
    fn a_namespace_counts_as_changed_only_when_its_labels_changed() {
        let (mut feed, target) = feed();
        // The API server gives every namespace the label of its own name.
        let labels = [("env", "prod"), ("kubernetes.io/metadata.name", "a")];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(feed.apply_namespace("a", &labels), Effect::Decisions);
        assert_eq!(feed.apply_namespace("a", &labels), Effect::None);
        feed.publish(&target);
        let published = target.load_full();
        assert_eq!(feed.remove_namespace("a"), Effect::Decisions);
        assert_eq!(published.namespaces.labels("a"), Some(&labels));
        assert_eq!(feed.remove_namespace("a"), Effect::None);
    }
}
