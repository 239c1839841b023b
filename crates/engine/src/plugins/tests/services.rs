//! `DenyServiceExternalIPs` (4.23).

use admission::Decision;
use admission::registry::FailurePolicy;
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::{demands, entries};
use crate::testing::Cluster;

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
    let cluster = Cluster::from_objects(&[plugin("d", json!({"plugin": "DenyServiceExternalIPs"}))]);
    for (row, (old, new, is_allowed)) in rows.into_iter().enumerate() {
        let reply = cluster.ask(PATH, &review(old, new)).unwrap();
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
    let cluster = Cluster::from_objects(&[plugin(
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
        assert_eq!(cluster.ask(PATH, &review(None, &[address])).unwrap().decision, expected, "{address}");
    }
}

#[test]
fn objects_that_fail_and_objects_that_ignore_have_entries_of_their_own() {
    let object = |name: &str, policy: &str, seconds: i64| {
        let spec = json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": policy, "timeoutSeconds": seconds});
        plugin(name, spec)
    };
    let (plain, ignoring) =
        ("denyserviceexternalips.policy.outrider.dev", "denyserviceexternalips-ignore.policy.outrider.dev");
    let ignoring_path = "/validate--v1-service-denyserviceexternalips-ignore";
    for (objects, expected) in [
        (vec![object("a", "Ignore", 2)], vec![(plain, FailurePolicy::Ignore, 2, ignoring_path)]),
        (
            vec![object("a", "Ignore", 5), object("b", "Fail", 2), object("c", "Fail", 3)],
            vec![(plain, FailurePolicy::Fail, 3, PATH), (ignoring, FailurePolicy::Ignore, 5, ignoring_path)],
        ),
        (vec![], vec![]),
    ] {
        let found = demands(&Cluster::from_objects(&objects).snapshot);
        let found: Vec<_> = found
            .iter()
            .map(|entry| {
                (entry.name.as_str(), entry.failure_policy, entry.timeout_seconds, entry.rule.path(entry.phase))
            })
            .collect();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, policy, seconds, path)| (name, policy, seconds, path.to_owned()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_path_of_each_group_decides_by_its_objects_only() {
    let object =
        |name: &str, policy: &str| plugin(name, json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": policy}));
    let audit = |objects: &[Value], path: &str| {
        let reply = Cluster::from_objects(objects).ask(path, &review(None, &["1.1.1.1"])).unwrap();
        reply.audit.get("plugins").cloned()
    };
    let ignoring = format!("{PATH}-ignore");
    let both = [object("a", "Fail"), object("b", "Ignore")];
    assert_eq!(audit(&both, PATH).unwrap(), "a=PluginDenied");
    assert_eq!(audit(&both, &ignoring).unwrap(), "b=PluginDenied");
    assert_eq!(audit(&both[1..], PATH).unwrap(), "b=PluginDenied", "who posts a review by hand sees what is decided");
    assert_eq!(audit(&both[..1], &ignoring), None);
}

#[test]
fn on_what_all_objects_of_an_entry_agree_the_api_server_evaluates() {
    let object = |name: &str, scope: Value| plugin(name, json!({"plugin": "DenyServiceExternalIPs", "match": scope}));
    let entries = |objects: &[Value]| entries::all(&Cluster::from_objects(objects).snapshot);
    let wide = json!({
        "namespaceSelector": {"matchLabels": {"team": "a"}}, "excludeNamespaces": ["x", "y"], "excludeUsers": ["o'\"neil"],
        "excludeGroups": ["admins"], "excludeServiceAccounts": ["ci/runner"],
    });
    let alone = entries(&[object("a", wide.clone())]);
    let demand = &alone[0].demand;
    assert_eq!(demand.excluded_namespaces, ["x".to_owned(), "y".to_owned()].into());
    assert!(demand.namespaces.is_some());
    let conditions: Vec<(&str, &str)> =
        demand.match_conditions.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(
        conditions,
        [
            (
                "outrider.dev/exempt-users",
                r#"!has(request.userInfo.username) || !(request.userInfo.username in ["o'\"neil", "system:serviceaccount:ci:runner"])"#
            ),
            (
                "outrider.dev/exempt-groups",
                r#"!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in ["admins"])"#
            ),
        ]
    );
    let narrow = json!({"excludeNamespaces": ["y", "z"], "excludeGroups": ["admins"]});
    let (objects, cluster) =
        ([object("a", wide.clone()), object("b", narrow.clone())], |objects: &[Value]| Cluster::from_objects(objects));
    let both = entries(&objects);
    assert_eq!(both[0].demand.excluded_namespaces, ["y".to_owned()].into());
    assert!(both[0].demand.namespaces.is_none() && both[0].demand.match_conditions.len() == 1);
    let cluster = cluster(&objects);
    let lacking = |name: &str| both[0].not_evaluated(cluster.snapshot.plugins.get(name).unwrap());
    assert_eq!(
        lacking("a"),
        [
            "spec.match.namespaceSelector",
            "spec.match.excludeNamespaces",
            "spec.match.excludeUsers or excludeServiceAccounts"
        ]
    );
    assert_eq!(lacking("b"), ["spec.match.excludeNamespaces"]);
}
