//! The watch of `ServiceAccount`s, which is there only while a plugin reads them: a cluster has one in each namespace, and more.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::plugins::service_account::{Account, ENFORCING, Names, is_true};
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::CollectionChange;
use engine::snapshot::service_accounts::AccountKey;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use serde::{Deserialize, Deserializer};

use crate::watch::resource_of_kind;
use crate::watch::while_read::WhileRead;

/// An account: which it is, and the secrets that it names.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialAccount {
    #[serde(default, deserialize_with = "metadata_that_is_read")]
    metadata: ObjectMeta,
    secrets: Option<Names>,
    image_pull_secrets: Option<Names>,
}

resource_of_kind!(PartialAccount: ServiceAccount);

/// The rest, as managedFields, is skipped; of the annotations one is kept, where it says yes.
fn metadata_that_is_read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Read {
        name: Option<String>,
        namespace: Option<String>,
        resource_version: Option<String>,
        annotations: Option<BTreeMap<String, String>>,
    }
    let Read { name, namespace, resource_version, annotations } = Read::deserialize(deserializer)?;
    let mut annotations = annotations.unwrap_or_default();
    annotations.retain(|key, value| key == ENFORCING && is_true(value));
    Ok(ObjectMeta { name, namespace, resource_version, annotations: Some(annotations), ..ObjectMeta::default() })
}

/// Accounts of every namespace.
pub struct ServiceAccounts;

impl WhileRead for ServiceAccounts {
    type Object = PartialAccount;
    type Key = AccountKey;
    type Value = Arc<Account>;

    fn is_read_by(plugin: &CompiledPlugin) -> bool {
        plugin.plugin == Plugin::ServiceAccount
    }

    fn key(account: &PartialAccount) -> AccountKey {
        AccountKey { namespace: account.namespace().unwrap_or_default(), name: account.name_any() }
    }

    fn read(account: PartialAccount) -> Arc<Account> {
        let is_enforcing = account.metadata.annotations.is_some_and(|kept| !kept.is_empty());
        let (secrets, pull_secrets) = (account.secrets, account.image_pull_secrets);
        let (secrets, pull_secrets) = (secrets.unwrap_or_default(), pull_secrets.unwrap_or_default());
        Arc::new(Account { is_enforcing, secrets, pull_secrets })
    }

    fn apply(change: &CollectionChange<AccountKey, Arc<Account>>, builder: &mut SnapshotBuilder) {
        builder.collections.service_accounts.apply(change);
    }
}

#[cfg(test)]
mod tests {
    use engine::snapshot::Exclusion;
    use serde_json::json;

    use super::*;
    use crate::watch::while_read::is_needed;

    #[test]
    fn accounts_are_needed_while_a_plugin_that_is_on_reads_them() {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        for (mode, needed) in [("Enforce", true), ("Off", false), ("Audit", true)] {
            let spec = json!({"plugin": "ServiceAccount", "mode": mode});
            let object = json!({"metadata": {"name": "a", "uid": "u", "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
            assert_eq!(is_needed::<ServiceAccounts>(&builder), needed, "{mode}");
        }
    }

    /// The watch reads what a request for the object reads.
    #[test]
    fn an_account_is_read_alike_from_the_watch_and_from_an_answer() {
        for (annotation, secrets) in [
            (json!("true"), json!([{"name": "a"}, {"name": "b\nc"}, {"name": null}, {"kind": "Secret"}])),
            (json!("1"), json!(null)),
            (json!("yes"), json!([])),
        ] {
            let object = json!({
                "metadata": {"name": "a", "namespace": "shop", "annotations": {ENFORCING: annotation, "other": "true"}},
                "secrets": secrets, "imagePullSecrets": [{"name": "registry"}],
            });
            let partial: PartialAccount = serde_json::from_value(object.clone()).unwrap();
            let key = AccountKey { namespace: "shop".to_owned(), name: "a".to_owned() };
            assert_eq!(ServiceAccounts::key(&partial), key);
            assert_eq!(*ServiceAccounts::read(partial), Account::read(&object), "{object}");
            assert_eq!(Account::read(&object).is_enforcing, annotation != "yes");
        }
    }
}
