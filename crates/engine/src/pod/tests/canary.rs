//! Canaries in place of their bases.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

pub(super) fn canary(name: &str, base: &str, mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "proxy", "image": "proxy:canary"}]);
    let mut object = set(name, spec);
    object["metadata"]["annotations"] =
        json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base});
    object
}

fn base(mut spec: Value) -> Value {
    spec["containers"] = json!([{"name": "proxy", "image": "proxy:base"}]);
    set("base", spec)
}

fn image(sets: &[Value], pod: &Value) -> String {
    let reply = Cluster::from_objects(sets).mutate(pod);
    let containers = reply.pod["spec"]["containers"].as_array().unwrap();
    let found = containers.iter().find(|it| it["name"] == "proxy").map(|it| it["image"].as_str().unwrap().to_owned());
    found.unwrap_or_default()
}

#[test]
fn case_56_a_canary_is_injected_in_place_of_its_base_whichever_comes_first() {
    for order in [-1, 1] {
        let sets = [base(json!({})), canary("canary", "base", json!({"order": order}))];
        let reply = Cluster::from_objects(&sets).mutate(&pod(json!({})));
        assert_eq!(reply.names("containers"), ["proxy", "app"]);
        assert_eq!(image(&sets, &pod(json!({}))), "proxy:canary");
        assert_eq!(reply.audit["sets"], "canary");
        assert_eq!(reply.audit["skipped"], "base=CanaryShadowed");
        let stored = Cluster::from_objects(&sets).validate(&reply.pod);
        assert_eq!((stored.reason, &stored.warnings), (reasons::ALREADY_INJECTED, &vec![]));
    }
    let elsewhere = canary("canary", "base", json!({"selector": {"matchLabels": {"canary": "yes"}}}));
    assert_eq!(image(&[base(json!({})), elsewhere], &pod(json!({}))), "proxy:base");
}

#[test]
fn case_57_a_paused_canary_leaves_the_place_to_its_base() {
    let sets = [base(json!({})), canary("canary", "base", json!({"injectionStrategy": {"paused": true}}))];
    assert_eq!(image(&sets, &pod(json!({}))), "proxy:base");
}

#[test]
fn a_canary_that_leaves_out_pods_that_end_leaves_the_place_to_its_base() {
    let must = |jobs: &str| json!({"optOut": "Denied", "jobPods": jobs});
    let sets = [base(must("Inject")), canary("canary", "base", must("Skip"))];
    let mut forged = pod(json!({}));
    forged["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": false}]);
    for (pod, expected) in [
        (pod(json!({})), "proxy:canary"),
        (pod(json!({"restartPolicy": "OnFailure"})), "proxy:base"),
        (forged, "proxy:base"),
    ] {
        assert_eq!(image(&sets, &pod), expected, "{pod}");
        let injected = Cluster::from_objects(&sets).mutate(&pod).pod;
        assert_eq!(Cluster::from_objects(&sets).validate(&injected).decision, Decision::Allowed, "{pod}");
        assert_eq!(Cluster::from_objects(&sets).validate(&pod).decision, Decision::Denied, "{pod}");
    }
}

#[test]
fn there_are_two_levels_and_sets_that_name_each_other_do_not_both_go() {
    let mut first = canary("base", "canary", json!({}));
    first["spec"]["containers"][0]["image"] = json!("proxy:base");
    assert_ne!(image(&[first, canary("canary", "base", json!({}))], &pod(json!({}))), "");
}

#[test]
fn no_pod_evades_a_must_by_a_canary_that_it_may_go_without() {
    let must = json!({"optOut": "Denied"});
    let mut evading = pod(json!({}));
    evading["metadata"]["annotations"] = json!({"outrider.dev/skip": "true"});
    for (spec, expected) in [(json!({}), "proxy:base"), (must.clone(), "proxy:canary")] {
        let sets = [base(must.clone()), canary("canary", "base", spec)];
        assert_eq!(image(&sets, &evading), expected);
    }
    // Opted out of the canary alone, of a base that is no must.
    evading["metadata"]["annotations"] = json!({"outrider.dev/skip": "canary"});
    assert_eq!(image(&[base(json!({})), canary("canary", "base", json!({}))], &evading), "proxy:base");
}
