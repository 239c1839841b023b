//! The watch of `ResourceQuota`s, which is there only while a plugin reads them: a cluster may have many, whose status changes often.

use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::plugins::resource_quota::Quota;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::CollectionChange;
use engine::snapshot::quotas::{QuotaKey, QuotaSpec, QuotaStatus, read};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::ResourceExt as _;

use crate::watch::partial::Partial;
use crate::watch::while_read::WhileRead;

/// A quota: its scopes, and what it limits.
pub type PartialQuota = Partial<ResourceQuota, QuotaSpec, QuotaStatus>;

/// Quotas of every namespace.
pub struct Quotas;

impl WhileRead for Quotas {
    type Object = PartialQuota;
    type Key = QuotaKey;
    type Value = Arc<Quota>;

    fn is_read_by(plugin: &CompiledPlugin) -> bool {
        plugin.plugin == Plugin::ResourceQuota
    }

    fn key(quota: &PartialQuota) -> QuotaKey {
        QuotaKey { namespace: quota.namespace().unwrap_or_default(), name: quota.name_any() }
    }

    fn read(quota: PartialQuota) -> Arc<Quota> {
        Arc::new(read(quota.spec, quota.status))
    }

    fn apply(change: &CollectionChange<QuotaKey, Arc<Quota>>, builder: &mut SnapshotBuilder) {
        builder.collections.quotas.apply(change);
    }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;
    use crate::watch::while_read::is_needed;

    #[test]
    fn quotas_are_needed_while_a_plugin_that_is_on_reads_them() {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        let limited = json!([{"resource": "pods", "matchContains": ["pods"]}]);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec = json!({"plugin": "ResourceQuota", "mode": mode, "resourceQuota": {"limitedResources": limited}});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed::<Quotas>(&builder), needed, "{mode}");
        }
        builder.collections.plugins.remove("a");
        assert!(!is_needed::<Quotas>(&builder));
    }
}
