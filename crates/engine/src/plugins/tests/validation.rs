//! What makes an `AdmissionPlugin` wrong.

use std::collections::HashSet;

use admission::{Findings, Review, Validating};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::Plugin;
use crate::plugins::catalog::{self, Service};
use crate::plugins::conflict::between;
use crate::plugins::validation::{AdmissionPluginValidation, compile};
use crate::snapshot::Snapshot;

fn faults(spec: Value) -> String {
    compile(&plugin("a", spec)).map_or_else(|errors| errors.to_string(), |_| String::new())
}

/// Each spec has a fault with the text beside it.
fn assert_told(cases: &[(Value, &str)]) {
    for (spec, expected) in cases {
        let found = faults(spec.clone());
        assert!(found.contains(expected), "{spec}: {found}");
    }
}

#[test]
fn every_fault_is_told_with_its_field() {
    assert_told(&[
        (json!({}), "spec.plugin: Required value: one of AlwaysPullImages, PodNodeSelector"),
        (
            json!({"plugin": "AlwaysPullImage"}),
            "spec.plugin: Unsupported value: \"AlwaysPullImage\": supported values: \"AlwaysPullImages\"",
        ),
        (json!({"plugin": "PodNodeSelecter"}), " (did you mean \"PodNodeSelector\"?)"),
        (
            json!({"plugin": "NamespaceAutoProvision"}),
            "spec.plugin: Invalid value: \"NamespaceAutoProvision\": Outrider does not serve it: a request into a missing namespace",
        ),
        (
            json!({"plugin": "LimitRanger"}),
            "spec.plugin: Invalid value: \"LimitRanger\": create a ClusterLimitRange instead: it runs on every cluster",
        ),
        (json!({"plugin": "EventRateLimit"}), "spec.eventRateLimit.limits: Required value: at least one limit"),
        (
            json!({"plugin": "EventRateLimit", "failurePolicy": "Fail", "timeoutSeconds": 3, "eventRateLimit": {"limits": [
                {"type": "Pod", "qps": 0, "burst": -1, "cacheSize": 65_537}]}}),
            "spec.failurePolicy: Invalid value: \"Fail\": must be Ignore",
        ),
        (
            json!({"plugin": "EventRateLimit", "timeoutSeconds": 3, "eventRateLimit": {"limits": [{"qps": 1, "burst": 1}]}}),
            "spec.timeoutSeconds: Invalid value: 3: must be 1 or 2",
        ),
        (
            json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": [{"type": "Pod", "qps": 1, "burst": 1}]}}),
            "spec.eventRateLimit.limits[0].type: Unsupported value: \"Pod\": supported values: \"Server\"",
        ),
        (
            json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": [{"type": "Server", "qps": 0, "burst": 1}]}}),
            "spec.eventRateLimit.limits[0].qps: Invalid value: 0: must be positive",
        ),
        (
            json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": [{"type": "Server", "qps": 1}]}}),
            "spec.eventRateLimit.limits[0].burst: Invalid value: 0: must be positive",
        ),
        (
            json!({"plugin": "EventRateLimit", "eventRateLimit": {"limits": [
                {"type": "User", "qps": 1, "burst": 1, "cacheSize": -1}]}}),
            "spec.eventRateLimit.limits[0].cacheSize: Invalid value: -1: must be between 0 and 65536",
        ),
        (json!({"plugin": "ResourceQuota"}), "spec.resourceQuota.limitedResources: Required value"),
        (
            json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"apiGroup": "apps", "resource": "pods"}]}}),
            "spec.resourceQuota.limitedResources[0].apiGroup: Invalid value: \"apps\": must be empty",
        ),
        (
            json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"resource": "configmaps", "matchContains": [""]}]}}),
            "spec.resourceQuota.limitedResources[0].resource: Unsupported value: \"configmaps\"",
        ),
        (
            json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"resource": "pods"}]}}),
            "spec.resourceQuota.limitedResources[0].matchContains: Required value",
        ),
        (
            json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"resource": "pods", "matchScopes": [
                {"scopeName": "BestEffort", "operator": "In", "values": ["a"]}]}]}}),
            "spec.resourceQuota.limitedResources[0].matchScopes[0].operator: Invalid value: \"In\": must be 'Exists'",
        ),
        (
            json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"resource": "pods", "matchScopes": [
                {"scopeName": "PriorityClass", "operator": "In"}]}]}}),
            "spec.resourceQuota.limitedResources[0].matchScopes[0].values: Required value",
        ),
        (
            json!({"plugin": "OwnerReferencesPermissionEnforcement",
                "ownerReferencesPermissionEnforcement": {"resources": ["pods", "Pods.apps"]}}),
            "spec.ownerReferencesPermissionEnforcement.resources[1]: Invalid value: \"Pods.apps\"",
        ),
    ]);
}

#[test]
fn every_fault_of_what_all_plugins_have_is_told_with_its_field() {
    assert_told(&[
        (json!({"plugin": "AlwaysPullImages", "mode": "On"}), "spec.mode: Unsupported value"),
        (json!({"plugin": "AlwaysPullImages", "backend": "Policy"}), "spec.backend: Forbidden: not served yet"),
        (
            json!({"plugin": "PodTopologyLabels", "failurePolicy": "Fail", "podTopologyLabels": {"nodeLabels": ["rack"]}}),
            "spec.failurePolicy: Invalid value: \"Fail\": must be Ignore: no pod may stay without a node",
        ),
        (
            json!({"plugin": "TaintNodesByCondition", "failurePolicy": "Fail"}),
            "spec.failurePolicy: Invalid value: \"Fail\": must be Ignore: no node may stay out of the cluster",
        ),
        (
            json!({"plugin": "ServiceAccount", "serviceAccount": {"imagePullSecrets": [{"name": "a"}, {}]}}),
            "spec.serviceAccount.imagePullSecrets[1].name: Required value",
        ),
        (
            json!({"plugin": "ServiceAccount", "serviceAccount": {"imagePullSecrets": [{"name": "A"}]}}),
            "spec.serviceAccount.imagePullSecrets[0].name: Invalid value: \"A\"",
        ),
        (
            json!({"plugin": "ServiceAccount", "serviceAccount": {"imagePullSecrets": vec![json!({"name": "a"}); 17]}}),
            "spec.serviceAccount.imagePullSecrets: Too many: 17: must have at most 16 items",
        ),
        (
            json!({"plugin": "NodeRestriction", "nodeRestriction": {"iUnderstandTheRisk": false}}),
            "spec.nodeRestriction.iUnderstandTheRisk: Required value: true: kubelets wait for this plugin",
        ),
        (
            json!({"plugin": "NodeRestriction", "failurePolicy": "Fail", "nodeRestriction": {"iUnderstandTheRisk": true}}),
            "spec.failurePolicy: Invalid value: \"Fail\": must be Ignore: no node may stay out of the cluster",
        ),
        (
            json!({"plugin": "TaintNodesByCondition", "timeoutSeconds": 3}),
            "spec.timeoutSeconds: Invalid value: 3: must be 1 or 2: a kubelet would wait for as long",
        ),
        (
            json!({"plugin": "TaintNodesByCondition", "match": {"excludeNamespaces": ["a"]}}),
            "spec.match.excludeNamespaces: Forbidden: nodes are in no namespace",
        ),
        (
            json!({"plugin": "TaintNodesByCondition", "match": {"namespaceSelector": {}}}),
            "spec.match.namespaceSelector: Forbidden: nodes are in no namespace",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "eventRateLimit": {}}),
            "spec.eventRateLimit: Forbidden: only for spec.plugin: EventRateLimit",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "podNodeSelector": {}}),
            "spec.podNodeSelector: Forbidden: only for spec.plugin: PodNodeSelector",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "failurePolicy": "Ignore"}),
            "spec.failurePolicy: Forbidden: plugins of pods share",
        ),
        (
            json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": "Maybe"}),
            "spec.failurePolicy: Unsupported value",
        ),
        (
            json!({"plugin": "DenyServiceExternalIPs", "timeoutSeconds": 11}),
            "spec.timeoutSeconds: Invalid value: 11: must be between 1 and 10",
        ),
        (
            json!({"plugin": "DenyServiceExternalIPs", "denyServiceExternalIPs": {"allowedCIDRs": ["10.0.0.0/33"]}}),
            "spec.denyServiceExternalIPs.allowedCIDRs[0]: Invalid value",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "match": {"excludeNamespaces": ["A"]}}),
            "spec.match.excludeNamespaces[0]: Invalid value",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "match": {"excludeServiceAccounts": ["a"]}}),
            "spec.match.excludeServiceAccounts[0]: Invalid value: \"a\": must be namespace/name",
        ),
        (
            json!({"plugin": "AlwaysPullImages", "match": {"namespaceSelector": {"matchLabels": {"-": "a"}}}}),
            "spec.match.namespaceSelector",
        ),
    ]);
}

#[test]
fn every_fault_of_a_configuration_is_told_with_its_field() {
    assert_told(&[
        (
            json!({"plugin": "AlwaysPullImages", "alwaysPullImages": {"exemptImages": [""]}}),
            "spec.alwaysPullImages.exemptImages[0]",
        ),
        (
            json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a==b"}}),
            "spec.podNodeSelector.clusterDefaultNodeSelector: Invalid value",
        ),
        (
            json!({"plugin": "PodNodeSelector", "podNodeSelector": {"namespaceAllowLists": {"a": "b"}}}),
            "spec.podNodeSelector.namespaceAllowLists[a]",
        ),
        (
            json!({"plugin": "PodNodeSelector", "podNodeSelector": {"daemonSetPods": "No"}}),
            "spec.podNodeSelector.daemonSetPods: Unsupported value",
        ),
        (
            json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": -1}}),
            "spec.defaultTolerationSeconds.notReadySeconds",
        ),
        (
            json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": {"default": [{"operator": "Equal"}]}}),
            "spec.podTolerationRestriction.default[0].operator",
        ),
        (
            json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": {"whitelist": [{"key": "a", "effect": "No"}]}}),
            "spec.podTolerationRestriction.whitelist[0].effect: Unsupported value",
        ),
        (
            json!({"plugin": "PodSecurity", "podSecurity": {"defaults": {"enforce": "strict", "warn-version": "1.30"}}}),
            "spec.podSecurity.defaults.enforce: Unsupported value: \"strict\"",
        ),
        (
            json!({"plugin": "PodSecurity", "podSecurity": {"defaults": {"warn-version": "1.30"}}}),
            "spec.podSecurity.defaults.warn-version: Invalid value",
        ),
        (
            json!({"plugin": "NamespaceLifecycle", "namespaceLifecycle": {"protectedNamespaces": [""], "breakGlassAnnotation": "-"}}),
            "spec.namespaceLifecycle.breakGlassAnnotation: Invalid value",
        ),
        (
            json!({"plugin": "LimitPodHardAntiAffinityTopology", "limitPodHardAntiAffinityTopology": {"allowedTopologyKeys": [" "]}}),
            "allowedTopologyKeys[0]",
        ),
    ]);
}

#[test]
fn every_plugin_that_needs_no_configuration_is_accepted_by_its_name_alone() {
    for plugin in Plugin::ALL {
        // Without a configuration these would do nothing.
        if matches!(
            plugin,
            Plugin::NamespaceLifecycle
                | Plugin::PodSecurity
                | Plugin::EventRateLimit
                | Plugin::ResourceQuota
                | Plugin::PodTopologyLabels
                | Plugin::Priority
                | Plugin::RuntimeClass
                | Plugin::NodeRestriction
        ) {
            assert!(faults(json!({"plugin": plugin.name()})).contains(&format!("spec.{}", plugin.section())));
            continue;
        }
        assert_eq!(faults(json!({"plugin": plugin.name()})), "");
        assert_eq!(faults(json!({"plugin": plugin.name(), plugin.section(): {}})), "");
    }
}

#[test]
fn more_default_tolerations_than_may_be_written_count_where_they_are_stored() {
    let object = |count: usize, mode: &str| {
        let list: Vec<Value> = (0..count).map(|at| json!({"key": format!("k{at}"), "operator": "Exists"})).collect();
        plugin(
            "t",
            json!({"plugin": "PodTolerationRestriction", "mode": mode, "podTolerationRestriction": {"default": list}}),
        )
    };
    assert!(compile(&object(300, "Enforce")).is_ok(), "what an older build stored decides as before");
    let ask = |old: Option<&Value>, new: &Value| {
        let body = serde_json::to_vec(&crate::testing::review("", new)).unwrap();
        let review = Review::<Value>::parse(&body).unwrap();
        let (mut findings, cluster) = (Findings::default(), Snapshot::default());
        match old {
            Some(old) => AdmissionPluginValidation.update(new, old, &review.request, &cluster, &mut findings),
            None => AdmissionPluginValidation.create(new, &review.request, &cluster, &mut findings),
        }
        if findings.errors.is_empty() { String::new() } else { findings.errors.to_string() }
    };
    assert_eq!(ask(None, &object(100, "Enforce")), "");
    assert!(ask(None, &object(101, "Enforce")).contains("spec.podTolerationRestriction.default: Too many"));
    assert_eq!(ask(Some(&object(101, "Warn")), &object(101, "Enforce")), "", "another field changes");
    assert!(ask(Some(&object(101, "Enforce")), &object(102, "Enforce")).contains("Too many"));
}

#[test]
fn contradictions_are_told_and_only_where_both_decide() {
    let seconds = |name: &str, seconds: i64, more: Value| {
        let mut spec =
            json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": seconds}});
        json_patch::merge(&mut spec, &more);
        compile(&plugin(name, spec)).unwrap()
    };
    let team = |team: &str| json!({"match": {"namespaceSelector": {"matchLabels": {"team": team}}}});
    let one = seconds("a", 30, json!({}));
    assert!(between(&one, &seconds("b", 60, json!({}))).unwrap().contains("AdmissionPlugin \"b\" has other seconds"));
    assert_eq!(between(&one, &seconds("b", 30, json!({}))), None);
    assert_eq!(between(&one, &seconds("b", 60, json!({"mode": "Off"}))), None);
    assert_eq!(between(&seconds("a", 30, team("x")), &seconds("b", 60, team("y"))), None);
}

#[test]
fn the_catalog_has_every_plugin_of_kubernetes_once_and_serves_what_is_served() {
    let names: HashSet<&str> = catalog::ALL.iter().map(|entry| entry.name).collect();
    assert_eq!((names.len(), catalog::ALL.len()), (42, 42));
    for entry in catalog::ALL {
        let is_served = Plugin::named(entry.name).is_some() || catalog::kind_of(entry.name).is_some();
        assert_eq!(is_served, entry.service == Service::Served, "{}", entry.name);
    }
}

#[test]
fn labels_of_nodes_by_which_a_must_selects_are_warned_of() {
    let must = |selector: Value, more: Value| {
        let mut spec = json!({"selector": selector});
        json_patch::merge(&mut spec, &more);
        crate::testing::set("mesh", spec)
    };
    let denied = json!({"optOut": "Denied"});
    let by_label = json!({"matchLabels": {"rack": "r1"}});
    let by_expression = json!({"matchExpressions": [{"key": "rack", "operator": "Exists"}]});
    for (set, target, warned) in [
        (must(by_label.clone(), denied.clone()), "Labels", true),
        (must(by_expression, denied.clone()), "Both", true),
        (must(by_label.clone(), denied.clone()), "Annotations", false),
        (must(by_label, json!({})), "Labels", false),
        (must(json!({"matchLabels": {"app": "web"}}), denied), "Labels", false),
    ] {
        let section = json!({"nodeLabels": ["zone", "rack"], "target": target});
        let object = plugin("t", json!({"plugin": "PodTopologyLabels", "podTopologyLabels": section}));
        let cluster = crate::testing::Cluster::from_objects(std::slice::from_ref(&set));
        let body = serde_json::to_vec(&crate::testing::review("", &object)).unwrap();
        let review = Review::<Value>::parse(&body).unwrap();
        let mut findings = Findings::default();
        AdmissionPluginValidation.create(&object, &review.request, &cluster.snapshot, &mut findings);
        let says = "SidecarSet \"mesh\" (spec.optOut: Denied) selects pods by the label \"rack\"";
        assert_eq!(
            findings.warnings.iter().any(|warning| warning.starts_with(says)),
            warned,
            "{set} {target}: {:?}",
            findings.warnings
        );
    }
}
