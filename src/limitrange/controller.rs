//! Writes into the status of every `ClusterLimitRange` whether it can be used, and whether the API server calls for it.

use std::time::Duration;

use engine::demand::Demand;
use engine::limitrange::api::KIND;
use engine::limitrange::compiled::CompiledRange;
use engine::limitrange::endpoints::{demands, is_needed_by};
use engine::snapshot::limit_ranges::RangeRecord;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::controller::Context;
use crate::controller::conditions::Statement;
use crate::field_managers::CLUSTER_LIMIT_RANGE;
use crate::plugins::statuses::{self, Keeper, PENDING, RequestError, StatementFacts, Statuses, keep, not_seen};
use crate::watch::ClusterLimitRangeResource;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "clusterlimitrange";

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    keep(context, RangeStatuses).boxed()
}

struct RangeStatuses;

impl Statuses for RangeStatuses {
    const NAME: &'static str = NAME;
    const KIND: &'static str = KIND;

    async fn pass(&mut self, keeper: &mut Keeper) -> Result<Option<Duration>, RequestError> {
        let records = keeper.model.range_table.all();
        keeper
            .write_programmed::<ClusterLimitRangeResource, _>(CLUSTER_LIMIT_RANGE, &records, demands, programmed)
            .await
    }
}

/// Whether the API server calls for it. `needed` is every on-demand entry of ranges.
fn programmed(record: &RangeRecord, facts: &StatementFacts, needed: &[Demand]) -> Statement {
    statuses::programmed(record, |range| {
        if let Some(what) = missing(range, facts, needed) {
            return (false, PENDING, what);
        }
        let left_out = if is_of_pods(range) { facts.left_out() } else { String::new() };
        (true, "Programmed", format!("The API server calls Outrider for what the range decides.{left_out}"))
    })
}

fn is_of_pods(range: &CompiledRange) -> bool {
    range.fills() || range.bounds_pods()
}

/// What is missing for the API server to call.
fn missing(range: &CompiledRange, facts: &StatementFacts, needed: &[Demand]) -> Option<String> {
    if facts.snapshot.limit_ranges.get(&range.name).is_none_or(|known| **known != *range) {
        return Some(not_seen());
    }
    let of_pods = if is_of_pods(range) { facts.lacks_pods() } else { None };
    of_pods.or_else(|| facts.lacks_entry(needed.iter().filter(|demand| is_needed_by(range, demand))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::snapshot::builder::SnapshotBuilder;
    use engine::snapshot::{Exclusion, Snapshot};
    use serde_json::{Value, json};

    use super::*;
    use crate::plugins::statuses::accepted;
    use crate::watch::coverage::Coverage;

    /// The record and the facts of one range, with every entry as it should be.
    fn case(limits: &Value) -> (Arc<RangeRecord>, StatementFacts) {
        let (mut builder, target) = (SnapshotBuilder::new(Exclusion::default(), true), arc_swap::ArcSwap::default());
        let object = json!({"metadata": {"name": "a", "uid": "a", "generation": 1}, "spec": {"limits": limits}});
        builder.collections.limit_ranges.apply(&serde_json::from_value(object).unwrap());
        builder.publish(&target);
        let record = builder.collections.limit_ranges.collection().table().all().remove(0);
        let snapshot = target.load_full();
        let (in_order, of_pods) = (Arc::new(demands(&snapshot)), crate::plugins::statuses::PodEntries::default());
        (record, StatementFacts { snapshot, in_order, of_pods, coverage: Coverage::Off })
    }

    fn said(record: &RangeRecord, facts: &StatementFacts) -> Statement {
        programmed(record, facts, &demands(&facts.snapshot))
    }

    type Change = fn(&mut StatementFacts);

    #[test]
    fn programmed_is_true_once_every_entry_that_the_range_needs_is_as_it_should_be() {
        let pods = json!([{"type": "Container", "max": {"cpu": "1"}}]);
        let claims = json!([{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]);
        let cases: [(&Value, Change, &str); 6] = [
            (&pods, |_| {}, ""),
            (&pods, |facts| facts.snapshot = Arc::new(Snapshot::default()), "has not seen"),
            (&pods, |facts| facts.in_order = Arc::default(), "limitranger-resize.policy.outrider.dev"),
            (&pods, |facts| facts.of_pods.fault = Some("It is not there.".to_owned()), "It is not there."),
            // Claims have nothing to do with the entries of pods.
            (&claims, |facts| facts.of_pods.fault = Some("It is not there.".to_owned()), ""),
            (&claims, |facts| facts.in_order = Arc::default(), "limitranger.policy.outrider.dev"),
        ];
        for (limits, change, missing) in cases {
            let (record, mut facts) = case(limits);
            change(&mut facts);
            let said = said(&record, &facts);
            assert_eq!(said.holds, missing.is_empty(), "{said:?}");
            assert!(said.message.contains(missing), "{said:?}");
            assert_eq!(said.reason == PENDING, !missing.is_empty());
        }
    }

    #[test]
    fn a_range_that_cannot_be_used_says_so() {
        let (record, facts) = case(&json!([{"type": "Pot"}]));
        assert!(accepted(&record).message.contains("spec.limits[0].type"), "{:?}", accepted(&record));
        assert!(said(&record, &facts).message.ends_with("does nothing."));
    }
}
