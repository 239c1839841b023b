//! Modes, scopes and exemptions.

use std::fmt::Write as _;

use admission::{Decision, Unserved};
use serde_json::{Value, json};

use super::{namespace, plugin, pod};
use crate::pod::stages::narrowing;
use crate::reasons;
use crate::sidecarset::narrowing::NarrowingRule;
use crate::testing::{Cluster, Reply, review};

#[test]
fn a_mode_that_does_not_enforce_says_what_would_be_done_and_changes_nothing() {
    let (changed, would_change) = (reasons::PLUGIN_CHANGED, reasons::PLUGIN_WOULD_CHANGE);
    for (mode, decision, reason, code, warns) in [
        ("Enforce", Decision::Patched, changed, Some("a=PluginChanged"), false),
        ("Warn", Decision::Allowed, would_change, Some("a=PluginWouldChange"), true),
        ("Audit", Decision::Allowed, would_change, Some("a=PluginWouldChange"), false),
        ("Off", Decision::Allowed, reasons::NO_MATCH, None, false),
    ] {
        let cluster = Cluster::from_objects(&[
            plugin("a", json!({"plugin": "AlwaysPullImages", "mode": mode})),
            namespace(json!({})),
        ]);
        let reply = cluster.mutate(&pod(json!({})));
        assert_eq!((reply.decision, reply.audit.get("plugins").map(String::as_str)), (decision, code), "{mode}");
        assert_eq!(reply.reason, reason, "{mode}");
        assert_eq!(!reply.warnings.is_empty(), warns, "{mode}");
        if warns {
            let text = "PluginWouldChange: AdmissionPlugin \"a\" (AlwaysPullImages) would set the pull policy of 1 image to Always";
            assert_eq!(reply.warnings, [text]);
        }
        let judged = cluster.validate(&pod(json!({})));
        assert_eq!(judged.decision == Decision::Denied, mode == "Enforce", "{mode}");
    }
}

#[test]
fn a_refusal_that_is_not_enforced_is_a_warning_or_an_entry_of_the_audit_log() {
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    let apart = pod(json!({"affinity": {"podAntiAffinity": terms}}));
    for (mode, decision, code) in [
        ("Enforce", Decision::Denied, "l=PluginDenied"),
        ("Warn", Decision::Allowed, "l=PluginWouldDeny"),
        ("Audit", Decision::Allowed, "l=PluginWouldDeny"),
    ] {
        let cluster = Cluster::from_objects(&[
            plugin("l", json!({"plugin": "LimitPodHardAntiAffinityTopology", "mode": mode})),
            namespace(json!({})),
        ]);
        let reply = cluster.validate(&apart);
        assert_eq!((reply.decision, reply.audit["plugins"].as_str()), (decision, code), "{mode}");
        assert_eq!(reply.warnings.len(), usize::from(mode == "Warn"));
        assert!(reply.warnings.iter().all(|text| text.starts_with("PluginWouldDeny: AdmissionPlugin \"l\"")));
        let reason = if mode == "Enforce" { reasons::PLUGIN_DENIED } else { reasons::PLUGIN_WOULD_DENY };
        assert_eq!(reply.reason, reason, "{mode}");
        if mode == "Enforce" {
            assert_eq!((reply.reason, reply.audit["reason"].as_str()), (reasons::PLUGIN_DENIED, "PluginDenied"));
        }
    }
}

fn asked(cluster: &Cluster, namespace: &str, user: Value) -> Reply {
    let mut review = review(namespace, &pod(json!({})));
    review["request"]["userInfo"] = user;
    cluster.ask("/mutate--v1-pod", &review).unwrap()
}

#[test]
fn scopes_and_exemptions_are_kept() {
    let scope = json!({
        "namespaceSelector": {"matchLabels": {"team": "a"}}, "excludeNamespaces": ["quiet"], "excludeUsers": ["root"],
        "excludeGroups": ["admins"], "excludeServiceAccounts": ["ci/runner"],
    });
    let named = |name: &str, labels: Value| json!({"kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let cluster = Cluster::from_objects(&[
        plugin("a", json!({"plugin": "AlwaysPullImages", "match": scope})),
        named("team", json!({"team": "a"})),
        named("quiet", json!({"team": "a"})),
        named("other", json!({"team": "b"})),
        named("kube-system", json!({"team": "a"})),
        named("outrider-system", json!({"team": "a"})),
        named("labelled", json!({"team": "a", "outrider.dev/exclude": ""})),
    ]);
    for namespace in ["quiet", "other", "kube-system", "kube-node-lease", "outrider-system", "labelled"] {
        let reply = asked(&cluster, namespace, json!({"username": "kim"}));
        assert_eq!((reply.decision, reply.audit.get("plugins")), (Decision::Allowed, None), "{namespace}");
    }
    for (user, exempt) in [
        (json!({"username": "kim", "groups": ["users"]}), false),
        (json!({"username": "root"}), true),
        (json!({"username": "kim", "groups": ["users", "admins"]}), true),
        (json!({"username": "system:serviceaccount:ci:runner"}), true),
        (json!({"username": "system:serviceaccount:ci:other"}), false),
    ] {
        let reply = asked(&cluster, "team", user.clone());
        let (decision, code) =
            if exempt { (Decision::Allowed, "a=PluginExempt") } else { (Decision::Patched, "a=PluginChanged") };
        assert_eq!(reply.reason == reasons::PLUGIN_EXEMPT, exempt, "{user}");
        assert_eq!((reply.decision, reply.audit["plugins"].as_str()), (decision, code), "{user}");
    }
}

#[test]
fn an_exempt_user_is_reported_only_where_something_would_have_been_changed_or_refused() {
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    let cluster = Cluster::from_objects(&[
        plugin("a", json!({"plugin": "AlwaysPullImages", "match": {"excludeUsers": ["root"]}})),
        plugin("l", json!({"plugin": "LimitPodHardAntiAffinityTopology", "match": {"excludeUsers": ["root"]}})),
        namespace(json!({})),
    ]);
    let asked = |path: &str, spec: Value| {
        let mut review = review("shop", &pod(spec));
        review["request"]["userInfo"] = json!({"username": "root"});
        cluster.ask(path, &review).unwrap().audit.get("plugins").cloned()
    };
    let pulled = json!({"containers": [{"name": "app", "image": "shop:1", "imagePullPolicy": "Always"}]});
    assert_eq!(asked("/mutate--v1-pod", pulled.clone()), None);
    assert_eq!(asked("/mutate--v1-pod", json!({})).unwrap(), "a=PluginExempt");
    assert_eq!(asked("/validate--v1-pod", pulled), None);
    let apart = json!({"affinity": {"podAntiAffinity": terms}});
    assert_eq!(asked("/validate--v1-pod", apart).unwrap(), "l=PluginExempt");
}

#[test]
fn of_several_codes_the_one_that_says_most_is_the_reason_and_a_refused_pod_counts_no_change() {
    let node = |name: &str, mode: &str, value: &str| {
        let section = json!({"clusterDefaultNodeSelector": format!("pool={value}")});
        plugin(name, json!({"plugin": "PodNodeSelector", "mode": mode, "podNodeSelector": section}))
    };
    let pull = |mode: &str| plugin("a", json!({"plugin": "AlwaysPullImages", "mode": mode}));
    let conflicting = || pod(json!({"nodeSelector": {"pool": "other"}}));
    for (objects, reason, audit, counted) in [
        (
            [pull("Audit"), node("n", "Warn", "x")],
            reasons::PLUGIN_WOULD_DENY,
            "a=PluginWouldChange,n=PluginWouldDeny",
            vec!["would_change", "would_deny"],
        ),
        (
            [pull("Enforce"), node("n", "Warn", "x")],
            reasons::PLUGIN_CHANGED,
            "a=PluginChanged,n=PluginWouldDeny",
            vec!["changed", "would_deny"],
        ),
        ([pull("Enforce"), node("n", "Enforce", "x")], reasons::PLUGIN_DENIED, "n=PluginDenied", vec!["denied"]),
    ] {
        let cluster = Cluster::from_objects(&[&objects[..], &[namespace(json!({}))]].concat());
        let review = review("shop", &conflicting()).to_string();
        let answer = cluster.answer("/mutate--v1-pod", review.as_bytes()).unwrap();
        assert_eq!(answer.reason, reason);
        let verdicts: Vec<&str> = answer.counts.iter().map(|count| count.verdict).collect();
        assert_eq!(verdicts, counted);
        assert_eq!(cluster.mutate(&conflicting()).audit["plugins"], audit);
    }
}

#[test]
fn very_many_labels_of_a_namespace_evade_no_selector() {
    let selecting = |mode: &str, key: &str| {
        let scope = json!({"namespaceSelector": {"matchLabels": {key: "x", "team": "a"}}});
        plugin("a", json!({"plugin": "AlwaysPullImages", "mode": mode, "match": scope}))
    };
    let set = crate::testing::set(
        "log",
        json!({"namespaceSelector": {"matchLabels": {"tenancy": "x"}}, "containers": [{"name": "log", "image": "log:1"}]}),
    );
    let team = |team: &str| json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": team}}});
    let mut web = pod(json!({}));
    web["metadata"]["labels"] = json!({"app": "web"});
    for (object, team_of, is_refused) in [
        (selecting("Enforce", "tenancy"), "a", true),
        (selecting("Enforce", "tenancy"), "b", false),
        (selecting("Warn", "tenancy"), "a", false),
        (selecting("Enforce", "kubernetes.io/metadata.name"), "a", false),
        (set, "a", true),
    ] {
        let mut cluster = Cluster::from_objects(&[object.clone(), team(team_of)]);
        assert!(cluster.mutate_in("shop", &web).is_ok(), "{object}");
        std::sync::Arc::make_mut(&mut cluster.snapshot.namespaces).mark_lacking_labels("shop");
        let refused = matches!(cluster.mutate_in("shop", &web), Err(Unserved::NamespaceLabels(name)) if name == "shop");
        assert_eq!(refused, is_refused, "{object} {team_of}");
    }
}

#[test]
fn a_mirror_pod_is_left_where_it_is_if_a_kubelet_creates_it() {
    let cluster = Cluster::from_objects(&[
        plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a=b"}})),
        namespace(json!({})),
    ]);
    let mut mirror = pod(json!({}));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
    for (groups, expected) in [(json!(["system:nodes"]), Decision::Allowed), (json!(["users"]), Decision::Patched)] {
        let mut review = review("shop", &mirror);
        review["request"]["userInfo"] = json!({"username": "u", "groups": groups});
        assert_eq!(cluster.ask("/mutate--v1-pod", &review).unwrap().decision, expected);
    }
}

#[test]
fn objects_of_one_plugin_follow_each_other_by_name_and_a_contradiction_refuses_the_pod() {
    let default = |name: &str, selector: &str| {
        plugin(name, json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": selector}}))
    };
    let cluster = Cluster::from_objects(&[default("b", "b=2"), default("a", "a=1"), namespace(json!({}))]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!(reply.pod["spec"]["nodeSelector"], json!({"a": "1", "b": "2"}));
    assert_eq!(reply.audit["plugins"], "a=PluginChanged,b=PluginChanged");
    let cluster = Cluster::from_objects(&[default("b", "a=2"), default("a", "a=1"), namespace(json!({}))]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.audit["plugins"].as_str()), (Decision::Denied, "b=PluginDenied"));
}

#[test]
fn the_patch_touches_only_what_changes() {
    let cluster = Cluster::from_objects(&[
        plugin("a", json!({"plugin": "AlwaysPullImages"})),
        plugin("n", json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a/b=c"}})),
        plugin("d", json!({"plugin": "DefaultTolerationSeconds"})),
        namespace(json!({})),
    ]);
    let reply =
        cluster.mutate(&pod(json!({"nodeSelector": {"x": "y"}, "tolerations": [{"key": "k", "operator": "Exists"}]})));
    let added = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    assert_eq!(
        reply.patch.unwrap(),
        json!([
            {"op": "add", "path": "/spec/containers/0/imagePullPolicy", "value": "Always"},
            {"op": "add", "path": "/spec/nodeSelector/a~1b", "value": "c"},
            {"op": "add", "path": "/spec/tolerations/-", "value": added("node.kubernetes.io/not-ready")},
            {"op": "add", "path": "/spec/tolerations/-", "value": added("node.kubernetes.io/unreachable")},
        ])
    );
}

#[test]
fn every_pod_is_asked_about_while_a_plugin_is_about_pods() {
    let sets = || NarrowingRule::of_clauses(["(s)"]);
    for (spec, expected) in [
        (json!({"plugin": "AlwaysPullImages"}), NarrowingRule::Wide),
        (json!({"plugin": "AlwaysPullImages", "mode": "Off"}), sets()),
        (json!({"plugin": "DenyServiceExternalIPs"}), sets()),
    ] {
        assert_eq!(narrowing(sets(), &[], &Cluster::from_objects(&[plugin("a", spec)]).snapshot), expected);
    }
}

#[test]
fn tolerations_are_read_up_to_a_limit_and_a_pod_of_more_is_refused() {
    let cluster = Cluster::from_objects(&[
        plugin(
            "t",
            json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": {
            "default": [{"key": "x", "operator": "Exists"}], "whitelist": [{"operator": "Exists"}]}}),
        ),
        plugin("e", json!({"plugin": "ExtendedResourceToleration"})),
        namespace(json!({})),
    ]);
    let mut list = String::new();
    for index in 0..250 {
        let _ = write!(
            list,
            "{}{{\"key\":\"a\",\"operator\":\"Equal\",\"value\":\"{index}\"}}",
            if index > 0 { "," } else { "" }
        );
    }
    let tolerations: Value = serde_json::from_str(&format!("[{list}]")).unwrap();
    let reply = cluster.mutate(&pod(json!({"tolerations": tolerations})));
    assert_eq!(reply.pod["spec"]["tolerations"].as_array().unwrap().len(), 251);
    let many: Vec<Value> = vec![json!({}); 301];
    let reply = cluster.mutate(&pod(json!({"tolerations": many})));
    assert_eq!((reply.code, reply.reason), (Some(422), admission::Reason::TOO_LARGE));
    assert!(reply.message.contains("spec.tolerations holds more than 300 tolerations"), "{}", reply.message);
}

#[test]
fn a_plugin_that_only_reports_refuses_no_pod_for_its_size() {
    for (mode, decision) in [("Enforce", Decision::Denied), ("Warn", Decision::Allowed)] {
        let section = json!({"plugin": "PodTolerationRestriction", "mode": mode,
            "podTolerationRestriction": {"whitelist": [{"operator": "Exists"}]}});
        let cluster = Cluster::from_objects(&[plugin("t", section), namespace(json!({}))]);
        let large = pod(json!({"tolerations": vec![json!({"key": "a", "operator": "Exists"}); 301]}));
        let reply = cluster.mutate(&large);
        assert_eq!((reply.decision, cluster.validate(&large).decision), (decision, decision), "{mode}");
        let said = format!("{} {:?}", reply.message, reply.warnings);
        assert!(said.contains("spec.tolerations holds more than 300 tolerations"), "{mode}: {said}");
    }
}
