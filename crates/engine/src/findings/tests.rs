use std::sync::Arc;

use serde_json::{Value, json};

use super::namespace_limits::{Left, NamespaceLimits};
use super::*;
use crate::limitrange::api::RangeSpec;
use crate::sidecarset::index::SetIndex;
use crate::snapshot::Exclusion;
use crate::snapshot::namespace::Namespaces;

fn set(spec: Value) -> CompiledSet {
    let mut object = json!({"metadata": {"name": "logs", "uid": "u", "generation": 1}, "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    CompiledSet::compile(&serde_json::from_value(object).unwrap()).unwrap()
}

fn of_container(container: Value) -> CompiledSet {
    let mut whole = json!({"name": "logger", "image": "logger:1"});
    for (field, value) in container.as_object().unwrap() {
        whole[field] = value.clone();
    }
    set(json!({"containers": [whole]}))
}

fn snapshot(namespaces: &[(&str, Value)]) -> Snapshot {
    let mut known = Namespaces::default();
    for (name, labels) in namespaces {
        known.insert((*name).to_owned(), serde_json::from_value(labels.clone()).unwrap());
    }
    Snapshot {
        sets: Arc::new(SetIndex::build([])),
        namespaces: Arc::new(known),
        exclusion: Arc::new(Exclusion::new("outrider-system", [])),
        ..Snapshot::default()
    }
}

fn enforcing(level: &str) -> Value {
    json!({"pod-security.kubernetes.io/enforce": level})
}

/// What is found of a set in the namespace shop with this level.
fn at_level(set: &CompiledSet, labels: Value) -> Vec<String> {
    refused(set, &snapshot(&[("shop", labels)]), &NamespaceLimits::default()).first
}

const HARDENED: &str = r#"{"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}"#;

fn hardened(more: Value) -> Value {
    let mut context: Value = serde_json::from_str(HARDENED).unwrap();
    for (field, value) in more.as_object().unwrap() {
        context[field] = value.clone();
    }
    json!({"securityContext": context})
}

#[test]
fn a_level_names_the_container_and_the_field_that_it_refuses() {
    let prefix = |level: &str| format!("namespace shop enforces the pod security level {level}: ");
    let context = |context: Value| json!({"securityContext": context});
    for (level, container, expected) in [
        ("privileged", context(json!({"privileged": true})), None),
        ("baseline", json!({}), None),
        ("baseline", context(json!({"privileged": true})), Some("container logger: privileged is true")),
        (
            "baseline",
            context(json!({"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}})),
            Some("container logger: capabilities.add contains SYS_ADMIN"),
        ),
        (
            "baseline",
            json!({"ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2}]}),
            Some("container logger: a port has a hostPort"),
        ),
        (
            "baseline",
            context(json!({"seLinuxOptions": {"type": "spc_t"}})),
            Some("container logger: seLinuxOptions.type is spc_t"),
        ),
        (
            "baseline",
            context(json!({"seccompProfile": {"type": "Unconfined"}})),
            Some("container logger: seccompProfile.type is Unconfined"),
        ),
        ("restricted", hardened(json!({})), None),
        ("restricted", json!({}), Some("container logger: allowPrivilegeEscalation is not false")),
        (
            "restricted",
            context(json!({"allowPrivilegeEscalation": false})),
            Some("container logger: capabilities.drop does not contain ALL"),
        ),
        (
            "restricted",
            hardened(json!({"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}})),
            Some("container logger: capabilities.add contains CHOWN"),
        ),
        ("restricted", hardened(json!({"runAsNonRoot": false})), Some("container logger: runAsNonRoot is false")),
        ("restricted", hardened(json!({"runAsUser": 0})), Some("container logger: runAsUser is 0")),
        ("no level", json!({}), Some("container logger: allowPrivilegeEscalation is not false")),
    ] {
        let expected: Vec<String> = expected
            .map(|cause| prefix(if level == "baseline" { level } else { "restricted" }) + cause)
            .into_iter()
            .collect();
        assert_eq!(at_level(&of_container(container.clone()), enforcing(level)), expected, "{level} {container}");
    }
}

#[test]
fn an_older_version_of_a_level_asks_for_less() {
    let plain = of_container(json!({}));
    for (version, is_refused) in [("v1.7", false), ("v1.8", true), ("latest", true), ("v1.300", true), ("1.7", true)] {
        let mut labels = enforcing("restricted");
        labels["pod-security.kubernetes.io/enforce-version"] = version.into();
        assert_eq!(!at_level(&plain, labels).is_empty(), is_refused, "{version}");
    }
}

#[test]
fn what_complete_fills_in_is_not_refused_and_what_is_written_otherwise_is() {
    let complete = |context: Value| {
        set(json!({
            "podSecurity": "Complete", "containers": [{"name": "logger", "image": "i", "securityContext": context}],
        }))
    };
    assert_eq!(at_level(&complete(json!({})), enforcing("restricted")), [""; 0]);
    let found = at_level(&complete(json!({"privileged": true})), enforcing("restricted"));
    assert!(found[0].ends_with("container logger: privileged is true"), "{found:?}");
}

#[test]
fn volumes_count_where_a_container_mounts_them() {
    let with = |volume: Value, mounts: Value| {
        let mut container = hardened(json!({}));
        container["name"] = "logger".into();
        container["volumeMounts"] = mounts;
        set(json!({"containers": [container], "volumes": [volume]}))
    };
    let host = json!({"name": "host", "hostPath": {"path": "/"}});
    let nfs = json!({"name": "nfs", "nfs": {"server": "s", "path": "/"}});
    let mounted = |name: &str| json!([{"name": name, "mountPath": "/m"}]);
    for (set, level, is_refused) in [
        (with(host.clone(), mounted("host")), "baseline", true),
        (with(host, json!([])), "baseline", false),
        (with(nfs.clone(), mounted("nfs")), "baseline", false),
        (with(nfs, mounted("nfs")), "restricted", true),
        (with(json!({"name": "e", "emptyDir": {}}), mounted("e")), "restricted", false),
    ] {
        assert_eq!(!at_level(&set, enforcing(level)).is_empty(), is_refused, "{level} {:?}", set.volumes);
    }
}

#[test]
fn only_namespaces_that_the_set_reaches_count_and_only_the_first_are_named() {
    let many: Vec<(String, Value)> = (0..9).map(|n| (format!("n{n}"), enforcing("restricted"))).collect();
    let mut all: Vec<(&str, Value)> = many.iter().map(|(name, labels)| (name.as_str(), labels.clone())).collect();
    all.push(("kube-system", enforcing("restricted")));
    all.push(("a-free-one", json!({})));
    let found = refused(&of_container(json!({})), &snapshot(&all), &NamespaceLimits::default());
    assert_eq!((found.namespaces, found.first.len()), (9, 3));
    assert!(found.first[0].contains("namespace n0 ") && found.first[2].contains("namespace n2 "), "{found:?}");
    let named = set(json!({"namespace": "n4", "containers": [{"name": "logger", "image": "i"}]}));
    assert_eq!(refused(&named, &snapshot(&all), &NamespaceLimits::default()).namespaces, 1);
    let paused = set(json!({
        "injectionStrategy": {"paused": true}, "containers": [{"name": "logger", "image": "i"}],
    }));
    assert_eq!(refused(&paused, &snapshot(&all), &NamespaceLimits::default()), Refused::default());
}

fn limited(limits: Value) -> NamespaceLimits {
    let mut all = NamespaceLimits::default();
    let spec: RangeSpec = serde_json::from_value(json!({"limits": limits})).unwrap();
    assert!(all.range("shop", "l", Some(spec)));
    all
}

fn left(spec: Value, status: Value) -> Option<Left> {
    Left::of(Some(&serde_json::from_value(spec).unwrap()), Some(&serde_json::from_value(status).unwrap()))
}

fn quota(hard: Value, used: Value) -> NamespaceLimits {
    let mut all = NamespaceLimits::default();
    assert!(all.quota("shop", "q", left(json!({}), json!({"hard": hard, "used": used}))));
    all
}

fn in_shop(set: &CompiledSet, limits: &NamespaceLimits) -> Vec<String> {
    refused(set, &snapshot(&[("shop", json!({}))]), limits).first
}

fn asking(resources: Value) -> CompiledSet {
    of_container(json!({"resources": resources}))
}

#[test]
fn a_range_refuses_what_its_bounds_do_not_allow_once_its_defaults_are_filled_in() {
    let max = json!([{"type": "Container", "max": {"memory": "64Mi"}}]);
    let min = json!([{"type": "Container", "min": {"cpu": "100m"}}]);
    let ratio = json!([{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}]);
    let default = json!([{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]);
    for (limits, resources, expected) in [
        (
            &max,
            json!({"limits": {"memory": "128Mi"}}),
            "maximum memory usage per Container is 64Mi, but limit is 128Mi",
        ),
        (&max, json!({"limits": {"memory": "64Mi"}}), ""),
        (&max, json!({}), ""),
        (
            &max,
            json!({"requests": {"memory": "65Mi"}}),
            "maximum memory usage per Container is 64Mi, but request is 65Mi",
        ),
        (&min, json!({"requests": {"cpu": "99m"}}), "minimum cpu usage per Container is 100m, but request is 99m"),
        (&min, json!({}), ""),
        (
            &ratio,
            json!({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            &ratio,
            json!({}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (&default, json!({"requests": {"cpu": "2"}}), "the default limit of cpu is less than the request of 2"),
        (&default, json!({}), ""),
        (
            &json!([{"type": "Pod", "max": {"cpu": "1"}}, {"type": "Container", "max": {"cpu": "4"}}]),
            json!({"limits": {"cpu": "2"}}),
            "",
        ),
    ] {
        let found = in_shop(&asking(resources.clone()), &limited(limits.clone()));
        let whole: Vec<String> = Some(format!("LimitRange l of namespace shop: container logger: {expected}"))
            .filter(|_| !expected.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found, whole, "{limits} {resources}");
    }
}

#[test]
fn a_quota_refuses_containers_without_what_it_counts_and_those_that_need_more_than_is_left() {
    let cpu = |hard: &str, used: &str| quota(json!({"requests.cpu": hard}), json!({"requests.cpu": used}));
    for (limits, resources, expected) in [
        (cpu("1", "0"), json!({}), "container logger has no requests.cpu, which the quota demands"),
        (cpu("1", "0"), json!({"limits": {"cpu": "1"}}), ""),
        (cpu("1", "0"), json!({"requests": {"cpu": "1"}}), ""),
        (cpu("1", "1m"), json!({"requests": {"cpu": "1"}}), "container logger needs more requests.cpu than is left"),
        (cpu("1", "2"), json!({"requests": {"cpu": "0"}}), ""),
        (
            quota(json!({"limits.memory": "1Gi"}), json!({"limits.memory": "0"})),
            json!({"requests": {"memory": "1Mi"}}),
            "container logger has no limits.memory, which the quota demands",
        ),
        (
            quota(json!({"requests.ephemeral-storage": "1Gi"}), json!({"requests.ephemeral-storage": "0"})),
            json!({}),
            "",
        ),
    ] {
        let found = in_shop(&asking(resources.clone()), &limits);
        let whole: Vec<String> = Some(format!("ResourceQuota q of namespace shop: {expected}"))
            .filter(|_| !expected.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found, whole, "{resources}");
    }
}

#[test]
fn containers_that_run_at_one_time_share_what_is_left_and_those_that_end_do_not() {
    let container = |name: &str| json!({"name": name, "image": "i", "resources": {"requests": {"cpu": "600m"}}});
    let limits = quota(json!({"cpu": "1"}), json!({"cpu": "0"}));
    let both = set(json!({"containers": [container("a"), container("b")]}));
    assert_eq!(
        in_shop(&both, &limits),
        ["ResourceQuota q of namespace shop: container b with those before it needs more cpu than is left"]
    );
    let one_ends = set(json!({"initContainers": [container("a")], "containers": [container("b")]}));
    assert_eq!(in_shop(&one_ends, &limits), [""; 0]);
}

#[test]
fn a_range_fills_in_what_a_quota_demands() {
    let mut limits = limited(json!([{"type": "Container", "defaultRequest": {"cpu": "100m"}}]));
    let used = json!({"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}});
    assert!(limits.quota("shop", "q", left(json!({}), used)));
    assert_eq!(in_shop(&asking(json!({})), &limits), [""; 0]);
}

#[test]
fn resources_that_follow_from_the_pod_are_not_judged() {
    let policy = json!({"targetContainersMode": "sum", "targetContainersNamePattern": ".*", "resourcesExpr": {"limits": {"cpu": "1"}}});
    let set = of_container(json!({"resourcesPolicy": policy}));
    let limits = quota(json!({"requests.memory": "1"}), json!({"requests.memory": "1"}));
    assert_eq!(in_shop(&set, &limits), [""; 0]);
}

#[test]
fn quotas_of_some_pods_and_those_that_are_not_counted_yet_are_not_kept() {
    let whole = json!({"hard": {"cpu": "1"}, "used": {"cpu": "0"}});
    for (spec, status, is_kept) in [
        (json!({}), whole.clone(), true),
        (json!({"scopes": []}), whole.clone(), true),
        (json!({"scopes": ["BestEffort"]}), whole.clone(), false),
        (json!({"scopeSelector": {"matchExpressions": []}}), whole, false),
        (json!({}), json!({"hard": {"cpu": "1"}}), false),
        (json!({}), json!({"hard": {"pods": "1"}, "used": {"pods": "0"}}), false),
    ] {
        assert_eq!(left(spec.clone(), status.clone()).is_some(), is_kept, "{spec} {status}");
    }
}

#[test]
fn what_is_gone_is_forgotten_and_only_what_is_another_is_news() {
    let mut all = NamespaceLimits::default();
    let at = |used: &str| left(json!({}), json!({"hard": {"cpu": "1"}, "used": {"cpu": used}}));
    assert!(all.quota("shop", "q", at("0")) && !all.quota("shop", "q", at("0")) && all.quota("shop", "q", at("1")));
    assert!(!all.range("shop", "l", None) && !all.quota("other", "q", None));
    assert!(all.quota("shop", "q", None) && all.of("shop").is_none());
    for n in 0..100 {
        all.quota("shop", &n.to_string(), at("0"));
    }
    assert!(!all.quota("shop", "one-more", at("0")), "few are kept of one namespace");
}
