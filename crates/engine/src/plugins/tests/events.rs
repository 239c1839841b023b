//! `EventRateLimit` (4.5): which tokens an event takes, and what is said when there are none. How they are counted is tested where
//! the clock is.

use admission::registry::{FailurePolicy, MatchPolicy};
use admission::{Decision, Known, Question};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const PATH: &str = "/validate--v1-event-eventratelimit";

fn review(event: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "e", "namespace": "shop", "operation": "CREATE", "object": event,
        "kind": {"group": "", "version": "v1", "kind": "Event"},
        "resource": {"group": "", "version": "v1", "resource": "events"},
        "requestResource": {"group": "", "version": "v1", "resource": "events"},
        "userInfo": {"username": "kim"},
    }})
}

fn event() -> Value {
    json!({
        "metadata": {"name": "e"}, "source": {"component": "c", "host": "h"},
        "involvedObject": {"kind": "k", "namespace": "ns", "name": "n", "uid": "u", "apiVersion": "v", "fieldPath": "f"},
    })
}

fn limits(name: &str, mode: &str, types: &[&str]) -> Value {
    let limits: Vec<Value> = types.iter().map(|type_| json!({"type": type_, "qps": 1, "burst": 3})).collect();
    plugin(name, json!({"plugin": "EventRateLimit", "mode": mode, "eventRateLimit": {"limits": limits}}))
}

/// The keys of the tokens that are taken, and the reply when those of `empty` are not there.
fn asked(cluster: &Cluster, review: &Value, empty: &[&str]) -> (Vec<String>, Reply) {
    let mut keys = Vec::new();
    let (reply, asked) = cluster
        .ask_with(PATH, review, |question| {
            let Question::Tokens(tokens) = question else { panic!("{question:?}") };
            keys.extend(tokens.iter().map(|token| token.key.clone()));
            Known::Tokens(tokens.iter().map(|token| !empty.contains(&token.key.as_str())).collect())
        })
        .unwrap();
    assert!(asked.len() < 2, "all tokens are taken at one time: {asked:?}");
    (keys, reply)
}

#[test]
fn each_limit_takes_a_token_by_its_key_also_behind_one_that_refuses() {
    let cluster = Cluster::from_objects(&[
        limits("a", "Enforce", &["Server", "Namespace", "User", "SourceAndObject"]),
        limits("b", "Enforce", &["Namespace"]),
    ]);
    let (keys, reply) = asked(&cluster, &review(&event()), &[]);
    assert_eq!(keys, ["", "shop", "kim", "chknsnuv", "shop"]);
    assert_eq!(reply.decision, Decision::Allowed);
    let (keys, reply) = asked(&cluster, &review(&event()), &["", "kim"]);
    assert_eq!(keys.len(), 5);
    assert_eq!((reply.code, reply.decision), (Some(429), Decision::Denied));
    let said = "Too many requests: [limit reached on type Server for key , \
                limit reached on type User for key kim]";
    assert_eq!(reply.message, said);
    assert_eq!(reply.audit["plugins"], "a=PluginDenied");
    let (_, reply) = asked(&cluster, &review(&event()), &["shop"]);
    assert_eq!(reply.message, "Too many requests: limit reached on type Namespace for key shop");
    assert_eq!(reply.audit["plugins"], "a=PluginDenied,b=PluginDenied");
}

#[test]
fn a_source_and_object_differ_in_each_part_but_the_field_path() {
    let cluster = Cluster::from_objects(&[limits("a", "Enforce", &["SourceAndObject"])]);
    let key = |event: &Value| asked(&cluster, &review(event), &[]).0.remove(0);
    let first = key(&event());
    for pointer in [
        "/source/component",
        "/source/host",
        "/involvedObject/kind",
        "/involvedObject/namespace",
        "/involvedObject/name",
        "/involvedObject/uid",
        "/involvedObject/apiVersion",
    ] {
        let mut other = event();
        *other.pointer_mut(pointer).unwrap() = "other".into();
        assert_ne!(key(&other), first, "{pointer}");
    }
    let mut other = event();
    other["involvedObject"]["fieldPath"] = "other".into();
    assert_eq!(key(&other), first);
}

#[test]
fn dry_runs_newer_events_exempt_users_and_excluded_namespaces_take_no_token() {
    let mut exempt = limits("a", "Enforce", &["Server"]);
    exempt["spec"]["match"] = json!({"excludeUsers": ["root"]});
    let cluster = Cluster::from_objects(&[exempt]);
    let changed = |pointer: &str, value: Value| {
        let mut review = review(&event());
        json_patch::merge(&mut review["request"], &json!({"dryRun": false}));
        *review.pointer_mut(pointer).unwrap() = value;
        asked(&cluster, &review, &[""])
    };
    assert_eq!(changed("/request/dryRun", json!(false)).1.decision, Decision::Denied);
    for (pointer, value) in [
        ("/request/dryRun", json!(true)),
        ("/request/requestResource/group", json!("events.k8s.io")),
        ("/request/userInfo/username", json!("root")),
        ("/request/namespace", json!("kube-system")),
        ("/request/namespace", json!("outrider-system")),
    ] {
        let (keys, reply) = changed(pointer, value);
        assert_eq!((keys.len(), reply.decision), (0, Decision::Allowed), "{pointer}");
    }
}

#[test]
fn warn_and_audit_take_tokens_and_let_events_pass() {
    let cluster = Cluster::from_objects(&[limits("a", "Warn", &["Server"]), limits("b", "Audit", &["Server"])]);
    let (keys, reply) = asked(&cluster, &review(&event()), &[""]);
    assert_eq!((keys.len(), reply.decision), (2, Decision::Allowed));
    assert_eq!(reply.audit["plugins"], "a=PluginWouldDeny,b=PluginWouldDeny");
    assert_eq!(reply.warnings.len(), 1, "{:?}", reply.warnings);
    assert!(reply.warnings[0].contains("limit reached on type Server"), "{:?}", reply.warnings);
}

#[test]
fn the_entry_of_events_never_fails_and_waits_for_a_second() {
    let mut newer = limits("b", "Enforce", &["Server"]);
    newer["spec"]["eventRateLimit"]["coverEventsV1"] = true.into();
    for (objects, policy) in [
        (vec![limits("a", "Enforce", &["Server"])], MatchPolicy::Exact),
        (vec![limits("a", "Enforce", &["Server"]), newer], MatchPolicy::Equivalent),
    ] {
        let found = demands(&Cluster::from_objects(&objects).snapshot);
        let [entry] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((entry.failure_policy, entry.timeout_seconds), (FailurePolicy::Ignore, 1));
        assert_eq!(entry.rule.match_policy, policy);
    }
}
