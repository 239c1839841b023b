//! Writes into the status of every `PodSecurityProfile` whether it can be used, and whether the API server calls for it.

use std::time::Duration;

use engine::demand::Demand;
use engine::podsecurityprofile::api::KIND;
use engine::podsecurityprofile::compiled::CompiledProfile;
use engine::podsecurityprofile::endpoints::demands;
use engine::snapshot::security_profiles::ProfileRecord;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::controller::Context;
use crate::controller::conditions::Statement;
use crate::field_managers::POD_SECURITY_PROFILE;
use crate::plugins::statuses::{self, Keeper, PENDING, RequestError, StatementFacts, Statuses, keep, not_seen};
use crate::watch::PodSecurityProfileResource;

/// Name of the controller in logs, metrics and the flag `--controllers`.
pub const NAME: &str = "podsecurityprofile";

/// Runs the controller until its term ends.
pub fn start(context: Context) -> BoxFuture<'static, ()> {
    keep(context, ProfileStatuses).boxed()
}

struct ProfileStatuses;

impl Statuses for ProfileStatuses {
    const NAME: &'static str = NAME;
    const KIND: &'static str = KIND;

    async fn pass(&mut self, keeper: &mut Keeper) -> Result<Option<Duration>, RequestError> {
        let records = keeper.model.profile_table.all();
        keeper
            .write_programmed::<PodSecurityProfileResource, _>(POD_SECURITY_PROFILE, &records, demands, programmed)
            .await
    }
}

/// Whether the API server calls for it. `needed` is every on-demand entry of profiles.
fn programmed(record: &ProfileRecord, facts: &StatementFacts, needed: &[Demand]) -> Statement {
    statuses::programmed(record, |profile| {
        if let Some(what) = missing(profile, facts, needed) {
            return (false, PENDING, what);
        }
        let said = format!("The API server calls Outrider for what the profile decides.{}", facts.left_out());
        (true, "Programmed", said)
    })
}

/// What is missing for the API server to call.
fn missing(profile: &CompiledProfile, facts: &StatementFacts, needed: &[Demand]) -> Option<String> {
    if facts.snapshot.security_profiles.get(&profile.name).is_none_or(|known| **known != *profile) {
        return Some(not_seen());
    }
    facts.lacks_pods().or_else(|| facts.lacks_entry(needed.iter()))
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

    /// The record and the facts of one profile, with every entry as it should be.
    fn case(user: &str) -> (Arc<ProfileRecord>, StatementFacts) {
        let (mut builder, target) = (SnapshotBuilder::new(Exclusion::default(), true), arc_swap::ArcSwap::default());
        let any = json!({"rule": "RunAsAny"});
        let spec: Value =
            json!({"runAsUser": {"rule": user}, "seLinux": any, "fsGroup": any, "supplementalGroups": any});
        let object = json!({"metadata": {"name": "a", "uid": "a", "generation": 1}, "spec": spec});
        builder.collections.security_profiles.apply(&serde_json::from_value(object).unwrap());
        builder.publish(&target);
        let record = builder.collections.security_profiles.collection().table().all().remove(0);
        let snapshot = target.load_full();
        let (in_order, of_pods) = (Arc::new(demands(&snapshot)), crate::plugins::statuses::PodEntries::default());
        (record, StatementFacts { snapshot, in_order, of_pods, coverage: Coverage::Off })
    }

    fn said(record: &ProfileRecord, facts: &StatementFacts) -> Statement {
        programmed(record, facts, &demands(&facts.snapshot))
    }

    type Change = fn(&mut StatementFacts);

    #[test]
    fn programmed_is_true_once_every_entry_that_profiles_need_is_as_it_should_be() {
        let cases: [(Change, &str); 4] = [
            (|_| {}, ""),
            (|facts| facts.snapshot = Arc::new(Snapshot::default()), "has not seen"),
            (|facts| facts.in_order = Arc::default(), "podsecurityprofiles.policy.outrider.dev"),
            (|facts| facts.of_pods.fault = Some("It is not there.".to_owned()), "It is not there."),
        ];
        for (change, missing) in cases {
            let (record, mut facts) = case("RunAsAny");
            change(&mut facts);
            let said = said(&record, &facts);
            assert_eq!(said.holds, missing.is_empty(), "{said:?}");
            assert!(said.message.contains(missing), "{said:?}");
            assert_eq!(said.reason == PENDING, !missing.is_empty());
        }
    }

    #[test]
    fn a_profile_that_cannot_be_used_says_so() {
        let (record, facts) = case("RunAsSome");
        assert!(accepted(&record).message.contains("spec.runAsUser.rule"), "{:?}", accepted(&record));
        assert!(said(&record, &facts).message.ends_with("does nothing."));
    }
}
