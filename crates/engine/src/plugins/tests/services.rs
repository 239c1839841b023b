//! `DenyServiceExternalIPs` (4.23).

use admission::Decision;
use admission::registry::{FailurePolicy, Phase};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::World;

const PATH: &str = "/validate--v1-service-denyserviceexternalips";

fn review(old: Option<&[&str]>, new: &[&str]) -> Value {
    let service = |ips: &[&str]| json!({"metadata": {"name": "s"}, "spec": {"externalIPs": ips}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "s", "namespace": "shop", "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "kind": {"group": "", "version": "v1", "kind": "Service"},
        "resource": {"group": "", "version": "v1", "resource": "services"},
        "object": service(new), "oldObject": old.map(service),
    }})
}

/// External IPs before and after, and whether the change is allowed.
type Row = (Option<&'static [&'static str]>, &'static [&'static str], bool);

#[test]
fn external_ips_are_denied_as_the_table_says() {
    let rows: [Row; 9] = [
        (None, &[], true),
        (None, &["1.1.1.1"], false),
        (Some(&["1.1.1.1"]), &["1.1.1.1"], true),
        (Some(&["1.1.1.1", "2.2.2.2"]), &["2.2.2.2", "1.1.1.1"], true),
        (Some(&["1.1.1.1"]), &["2.2.2.2"], false),
        (Some(&["1.1.1.1"]), &["1.1.1.1", "2.2.2.2"], false),
        (Some(&["1.1.1.1"]), &[], true),
        (Some(&["1.1.1.1", "2.2.2.2"]), &["1.1.1.1"], true),
        (Some(&["1.1.1.1", "2.2.2.2"]), &["2.2.2.2"], true),
    ];
    let world = World::from_objects(&[plugin("d", json!({"plugin": "DenyServiceExternalIPs"}))]);
    for (row, (old, new, is_allowed)) in rows.into_iter().enumerate() {
        let reply = world.ask(PATH, &review(old, new)).unwrap();
        assert_eq!(reply.decision == Decision::Allowed, is_allowed, "row {row}");
        if !is_allowed {
            let text = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
            assert_eq!((reply.code, reply.message.as_str()), (Some(403), text), "row {row}");
            assert_eq!(reply.audit["plugins"], "d=PluginDenied");
        }
    }
}

#[test]
fn addresses_of_allowed_ranges_are_not() {
    let ranges = json!({"allowedCIDRs": ["192.0.2.0/24", "2001:db8::/32", "10.0.0.1/32"]});
    let world = World::from_objects(&[plugin(
        "d",
        json!({"plugin": "DenyServiceExternalIPs", "denyServiceExternalIPs": ranges}),
    )]);
    for (address, expected) in [
        ("192.0.2.255", Decision::Allowed),
        ("192.0.3.0", Decision::Denied),
        ("2001:db8:1::1", Decision::Allowed),
        ("2001:db9::1", Decision::Denied),
        ("10.0.0.1", Decision::Allowed),
        ("10.0.0.2", Decision::Denied),
        ("nonsense", Decision::Denied),
    ] {
        assert_eq!(world.ask(PATH, &review(None, &[address])).unwrap().decision, expected, "{address}");
    }
}

#[test]
fn the_entry_of_services_fails_if_one_object_wants_it_to_and_waits_as_long_as_the_longest() {
    let object = |name: &str, policy: &str, seconds: i64| {
        let spec = json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": policy, "timeoutSeconds": seconds});
        plugin(name, spec)
    };
    for (objects, policy, seconds) in [
        (vec![object("a", "Ignore", 2)], FailurePolicy::Ignore, 2),
        (vec![object("a", "Ignore", 5), object("b", "Fail", 2)], FailurePolicy::Fail, 5),
    ] {
        let found = demands(&World::from_objects(&objects).snapshot);
        let [entry] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((entry.phase, entry.failure_policy, entry.timeout_seconds), (Phase::Validating, policy, seconds));
        assert_eq!(entry.name, "denyserviceexternalips.policy.outrider.dev");
    }
    assert!(demands(&World::from_objects(&[]).snapshot).is_empty());
}
