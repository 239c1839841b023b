//! The watch of nodes, which is there only while a plugin reads their labels. Only their metadata is sent: a node has a long status, which
//! changes all the time.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::CollectionChange;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;
use kube::core::PartialObjectMeta;

use crate::watch::partial::LabelRoom;
use crate::watch::while_read::WhileRead;

/// Every node.
pub struct Nodes;

impl WhileRead for Nodes {
    type Object = PartialObjectMeta<Node>;
    type Key = String;
    type Value = Arc<BTreeMap<String, String>>;

    fn is_read_by(plugin: &CompiledPlugin) -> bool {
        plugin.plugin == Plugin::PodTopologyLabels
    }

    fn key(node: &Self::Object) -> String {
        node.name_any()
    }

    fn left_out(node: &Self::Object) -> usize {
        let mut room = LabelRoom::default();
        let labels = node.metadata.labels.iter().flatten();
        labels.filter(|(key, value)| !room.takes(key, value)).count()
    }

    fn log_left_out(node: &String, labels: usize) {
        tracing::warn!(node, labels, "A node has more labels than there is room for; pods on it get none of these");
    }

    fn read(node: Self::Object) -> Self::Value {
        let mut room = LabelRoom::default();
        let labels = node.metadata.labels.unwrap_or_default().into_iter();
        Arc::new(labels.filter(|(key, value)| room.takes(key, value)).collect())
    }

    fn apply(change: &CollectionChange<String, Self::Value>, builder: &mut SnapshotBuilder) {
        builder.collections.nodes.apply(change);
    }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;
    use crate::watch::while_read::is_needed;

    #[test]
    fn labels_beyond_the_room_are_left_out_and_counted() {
        let node = |count: usize| {
            let labels: BTreeMap<String, String> = (0..count).map(|at| (format!("l{at:05}"), "x".repeat(63))).collect();
            PartialObjectMeta::<Node> {
                metadata: kube::core::ObjectMeta { labels: Some(labels), ..Default::default() },
                ..Default::default()
            }
        };
        assert_eq!(Nodes::left_out(&node(100)), 0);
        let many = node(1_000);
        let left_out = Nodes::left_out(&many);
        assert!(left_out > 0, "32 KiB have no room for a thousand labels of 69 bytes");
        assert_eq!(Nodes::read(many).len(), 1_000 - left_out);
    }

    #[test]
    fn nodes_are_needed_while_a_plugin_that_is_on_copies_their_labels() {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec =
                json!({"plugin": "PodTopologyLabels", "mode": mode, "podTopologyLabels": {"nodeLabels": ["rack"]}});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed::<Nodes>(&builder), needed, "{mode}");
        }
    }
}
