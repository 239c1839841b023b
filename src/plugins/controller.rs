//! Writes into the status of every `AdmissionPlugin` whether it can be used, whether the API server calls for it, and whether another
//! contradicts it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::plugins::api::KIND;
use engine::plugins::compiled::Settings;
use engine::plugins::endpoints::entries;
use engine::plugins::image_policy::ImagePolicy;
use engine::snapshot::plugins::PluginRecord;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::conditions::{Asked, Contradictions, contradicted, programmed};
use super::statuses::{Keeper, RequestError, Statuses, accepted, keep};
use crate::controller::Context;
use crate::field_managers::ADMISSION_PLUGIN;
use crate::image_policy::BackendState;
use crate::watch::AdmissionPluginResource;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "admissionplugin";

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    keep(context, PluginStatuses::default()).boxed()
}

#[derive(Default)]
struct PluginStatuses {
    contradictions: Contradictions,
}

impl Statuses for PluginStatuses {
    const NAME: &'static str = NAME;
    const KIND: &'static str = KIND;

    async fn pass(&mut self, keeper: &mut Keeper) -> Result<Option<Duration>, RequestError> {
        let records = keeper.model.plugin_table.all();
        if records.is_empty() {
            return Ok(None);
        }
        let facts = keeper.facts().await?;
        let (needed, backends) = (entries::all(&facts.snapshot), backends(keeper, &records).await);
        let asked = Asked { needed: &needed, backends: &backends };
        self.contradictions.update(&facts.snapshot.plugins);
        let statements = |record: &PluginRecord| {
            vec![
                accepted(record),
                programmed(record, &facts, &asked),
                contradicted(self.contradictions.found.get(&record.name)),
            ]
        };
        keeper.write_all::<AdmissionPluginResource, _>(ADMISSION_PLUGIN, &records, statements).await.map(Some)
    }
}

/// The backends that the objects name.
async fn backends(keeper: &Keeper, records: &[Arc<PluginRecord>]) -> BTreeMap<String, BackendState> {
    let mut found = BTreeMap::new();
    for settings in records.iter().filter_map(|record| Some(&record.compiled.as_ref()?.settings)) {
        if let Settings::ImagePolicy(ImagePolicy { backend, .. }) = settings {
            found.insert(backend.name.clone(), keeper.model.images.state(&backend.name).await);
        }
    }
    found
}
