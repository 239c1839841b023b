//! The watch of nodes, which is there only while a plugin reads their labels. Only their metadata is sent: a node has a long status, which
//! changes all the time.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::Change;
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

    fn read(node: Self::Object) -> Self::Value {
        let mut room = LabelRoom::default();
        let labels = node.metadata.labels.unwrap_or_default().into_iter();
        Arc::new(labels.filter(|(key, value)| room.takes(key, value)).collect())
    }

    fn apply(change: &Change<String, Self::Value>, feed: &mut SnapshotBuilder) {
        feed.collections.nodes.apply(change);
    }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;
    use crate::watch::while_read::is_needed;

    #[test]
    fn nodes_are_needed_while_a_plugin_that_is_on_copies_their_labels() {
        let mut feed = SnapshotBuilder::new(Exclusion::default(), true);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec =
                json!({"plugin": "PodTopologyLabels", "mode": mode, "podTopologyLabels": {"nodeLabels": ["rack"]}});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            feed.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed::<Nodes>(&feed), needed, "{mode}");
        }
    }
}
