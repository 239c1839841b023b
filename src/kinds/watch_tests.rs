//! A kind may watch what it watches, and nothing else: rules and watches are written apart, as rules say more than that.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;

use engine::snapshot::Exclusion;
use engine::snapshot::builder::SnapshotBuilder;
use futures::poll;
use http::{Request, Response};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::task::yield_now;

use super::{KINDS, product};
use crate::controller::leader_term::LeaderTerm;
use crate::controller::options::ControllerOptions;
use crate::controller::{Context, Own};
use crate::kind::{Kind, Start};
use crate::metrics::{Freshness, Metrics};
use crate::watch::coverage::Coverage;
use crate::watch::read_model::ReadModel;

/// The resources that a controller watches while there is a set.
async fn watched(start: Start) -> BTreeSet<String> {
    let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
    let set = json!({"metadata": {"name": "a", "uid": "a", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "containers": [{"name": "c", "image": "i"}]}});
    builder.collections.sets.apply(&serde_json::from_value(set).unwrap());
    let model = ReadModel::of(&builder);
    model.publish(&mut builder);
    let silent = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let client = Client::new(silent, "default");
    let mut controller = start(Context {
        client: client.clone(),
        client_without_retries: client,
        metrics: Metrics::new(Freshness::default()),
        options: ControllerOptions::default(),
        term: LeaderTerm::default(),
        model: model.clone(),
        own: Own::default(),
        coverage: tokio::sync::watch::Sender::new(Coverage::Off).subscribe(),
        in_order: tokio::sync::watch::Sender::default().subscribe(),
    });
    for _ in 0..100 {
        assert!(poll!(&mut controller).is_pending());
        yield_now().await;
    }
    model.ungated.failing().into_iter().map(|(resource, _)| resource.into_owned()).collect()
}

/// The resources that rules of the kind allow to be watched.
fn watchable(kind: &Kind) -> BTreeSet<String> {
    let watching = |rule: &PolicyRule| rule.verbs.iter().any(|verb| verb == "watch");
    kind.cluster_rules().into_iter().filter(watching).flat_map(|rule| rule.resources.unwrap_or_default()).collect()
}

#[tokio::test]
async fn controllers_watch_what_rules_of_their_kind_allow_and_decisions_do_not_watch() {
    let of_product: BTreeSet<String> = product().flat_map(watchable).collect();
    for kind in KINDS {
        let Some(start) = kind.controller else { continue };
        let watched = watched(start).await;
        let allowed = watchable(kind);
        let by_decisions: BTreeSet<String> = kind.watches.iter().map(|(_, plural)| (*plural).to_owned()).collect();
        let lacking: Vec<_> = watched.iter().filter(|it| !allowed.contains(*it) && !of_product.contains(*it)).collect();
        assert!(lacking.is_empty(), "{} watches {lacking:?}, which no rule allows", kind.name);
        let idle: Vec<_> = allowed.iter().filter(|it| !watched.contains(*it) && !by_decisions.contains(*it)).collect();
        assert!(idle.is_empty(), "rules of {} allow watches of {idle:?}, which it does not watch", kind.name);
        let own = kind.definition().spec.names.plural;
        assert!(watched.contains(&own) || by_decisions.contains(&own), "{} does not watch its own kind", kind.name);
    }
}
