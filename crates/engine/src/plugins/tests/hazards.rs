//! What could lock a cluster, or let somebody evade a plugin: the checklist of hazards, a test for each, under its number. What only an
//! API server shows is in `tests/e2e/hazards.rs`; hazards 6 and up are in `hazards_of_requests.rs`; those of the chart (14 and 15), of rate limits (17) and of watches (18) are tested
//! with those.

use std::sync::Arc;

use admission::registry::{FailurePolicy, Namespaces, Rule};
use admission::{Decision, Operation};
use serde_json::{Value, json};

use super::{admitted, namespace, plugin, pod};
use crate::demand::Demand;
use crate::plugins::Plugin;
use crate::plugins::endpoints::demands;
use crate::plugins::validation::compile;
use crate::testing::{Cluster, review, set};

/// The section of a plugin with which it refuses or changes nearly everything.
pub fn strict(plugin: Plugin) -> Value {
    let key = |key: &str| json!([{"key": key, "operator": "Exists"}]);
    match plugin {
        Plugin::AlwaysPullImages => json!({"includeEphemeralContainers": true}),
        Plugin::PodNodeSelector => {
            json!({"clusterDefaultNodeSelector": "pool=a", "namespaceAllowLists": {"shop": "pool=a"}})
        }
        Plugin::DefaultTolerationSeconds => json!({"notReadySeconds": 1, "unreachableSeconds": 1}),
        Plugin::PodTolerationRestriction => json!({"default": key("team"), "whitelist": key("team")}),
        Plugin::NamespaceLifecycle => json!({"protectedNamespaces": ["*"]}),
        Plugin::PodSecurity => json!({"defaults": {"enforce": "restricted"}}),
        Plugin::PodTopologyLabels => json!({"nodeLabels": ["rack"]}),
        Plugin::NodeRestriction => json!({"iUnderstandTheRisk": true}),
        Plugin::ServiceAccount => json!({"limitSecretReferences": true, "imagePullSecrets": [{"name": "registry"}]}),
        Plugin::Priority => json!({"priorityClassName": "low"}),
        Plugin::RuntimeClass => json!({"runtimeClassName": "sandbox"}),
        Plugin::DefaultStorageClass => json!({"storageClassName": "fast"}),
        Plugin::EventRateLimit => json!({"limits": [{"type": "Server", "qps": 1, "burst": 1}]}),
        Plugin::ResourceQuota => {
            let limited = |resource: &str, part: &str| json!({"resource": resource, "matchContains": [part]});
            json!({"limitedResources": [limited("pods", "cpu"), limited("pods", "pods"), limited("services", "services")]})
        }
        _ => json!({}),
    }
}

pub fn of(which: impl IntoIterator<Item = Plugin>) -> Vec<Value> {
    let object = |which: Plugin| {
        plugin(&which.name().to_lowercase(), json!({"plugin": which.name(), which.section(): strict(which)}))
    };
    which.into_iter().map(object).collect()
}

/// Every plugin of pods, and more, without a cluster.
pub fn of_pods(more: &[Value]) -> Cluster {
    let plugins = of(Plugin::ALL.into_iter().filter(|one| one.is_of_pods()));
    Cluster::from_objects(&[&plugins[..], &[namespace(json!({}))], more].concat())
}

/// Every plugin, as strict as it can be, in a cluster.
pub fn everything() -> Cluster {
    let node = json!({"kind": "Node", "metadata": {"name": "n1", "labels": {"rack": "r1"}}});
    let mut cluster = Cluster::from_objects(&[of(Plugin::ALL), vec![namespace(json!({})), node]].concat()).live();
    cluster.snapshot.may_name_all_resources = true;
    cluster
}

/// The same, where all quotas have been read: there are none.
pub fn with_quotas() -> Cluster {
    let mut cluster = everything();
    Arc::make_mut(&mut cluster.snapshot.quotas).is_complete = true;
    cluster
}

/// The part of a path that names the plugin.
pub fn plugin_of(rule: &Rule) -> &'static str {
    rule.suffix.trim_end_matches("-ignore")
}

pub fn entries() -> Vec<Demand> {
    demands(&everything().snapshot)
}

/// What no plugin leaves as it is: a pod, a service, an event and a namespace in one.
fn offending(name: &str) -> Value {
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]});
    json!({
        "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "blockOwnerDeletion": true}]},
        "spec": {
            "nodeSelector": {"pool": "b"}, "tolerations": [{"key": "other", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": terms}, "externalIPs": ["192.0.2.1"], "ports": [{"port": 80}],
            "resources": {"requests": {"storage": "1Gi"}},
            "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Never", "resources": {"requests": {"cpu": "1", "a.com/b": "1"}}}],
            "ephemeralContainers": [{"name": "d", "image": "i", "imagePullPolicy": "Never"}], "nodeName": "n1",
        },
    })
}

/// A review of the offending object for an entry, in a namespace; of a namespace itself, about that one.
pub fn offence(rule: &Rule, namespace: &str) -> Value {
    let resource = rule.resources[0];
    let ((plural, sub_resource), operation) = (resource.parts(), rule.operations[0]);
    let (plural, sub_resource, kind) =
        if plural == "*" { ("configmaps", "", "ConfigMap") } else { (plural, sub_resource, resource.kind) };
    let is_namespace = plural == "namespaces";
    let object = offending(if is_namespace { namespace } else { "x" });
    let (new, old) = match operation {
        Operation::Create => (object, Value::Null),
        Operation::Delete => (Value::Null, object),
        _ => (object, json!({"metadata": {"name": "x"}, "spec": {"containers": []}})),
    };
    let user = match plugin_of(rule) {
        "noderestriction" => json!({"username": "system:node:n1", "groups": ["system:nodes"]}),
        _ => json!({"username": "kim"}),
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": if is_namespace { namespace } else { "x" }, "namespace": namespace, "operation": operation.as_str(),
        "kind": {"group": "", "version": "v1", "kind": kind}, "resource": {"group": "", "version": "v1", "resource": plural},
        "subResource": sub_resource, "userInfo": user, "object": new, "oldObject": old,
    }})
}

#[test]
fn hazard_1_no_entry_is_for_what_the_cluster_needs_to_come_back() {
    let needed = [
        "leases",
        "secrets",
        "nodes/status",
        "tokenreviews",
        "subjectaccessreviews",
        "selfsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "localsubjectaccessreviews",
        "admissionplugins",
        "customresourcedefinitions",
        "*",
        "pods/*",
    ];
    for entry in entries() {
        for resource in entry.rule.resources.iter().map(|resource| resource.resource) {
            assert!(!needed.contains(&resource), "{}: {resource}", entry.name);
            // What is for everything leaves those out by the conditions, which the tests of owner references compare with the code.
            let is_of_owners = entry.rule.suffix.starts_with("ownerreferences");
            assert!(resource != "*/*" || is_of_owners && entry.rule.match_conditions.len() == 3, "{}", entry.name);
            // A node must be able to register without us.
            let is_short = entry.failure_policy == FailurePolicy::Ignore && entry.timeout_seconds <= 2;
            assert!(resource != "nodes" || is_short, "{}", entry.name);
            assert!(
                entry.rule.namespaces == Namespaces::NotExcluded || resource == "namespaces",
                "{} is for every namespace",
                entry.name
            );
        }
    }
}

#[test]
fn hazard_1_nothing_in_kube_system_or_our_own_namespace_is_changed_or_refused() {
    let cluster = everything();
    for namespace in ["kube-system", "kube-public", "kube-node-lease", "outrider-system", "cert-manager"] {
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = cluster.ask(path, &review(namespace, &offending("x"))).unwrap();
            assert_eq!((reply.decision, reply.patch), (Decision::Allowed, None), "{path} in {namespace}");
        }
        for entry in entries() {
            // This one may be labelled, and protected like others: no pod is in it, and it need not be deleted.
            if namespace == "kube-node-lease" && entry.rule.resources[0].resource == "namespaces" {
                continue;
            }
            let path = entry.rule.path(entry.phase);
            let (reply, asked) = cluster
                .ask_with(&path, &offence(&entry.rule, namespace), |question| panic!("{path}: {question:?}"))
                .unwrap();
            assert_eq!(
                (reply.decision, reply.patch, asked.len()),
                (Decision::Allowed, None, 0),
                "{path} in {namespace}"
            );
        }
    }
}

/// The objects of the test before offend: elsewhere each entry that is not for events changes or refuses them, waits, or asks.
#[test]
fn hazard_1_the_same_objects_are_changed_or_refused_elsewhere() {
    let cluster = with_quotas();
    for entry in entries() {
        let path = entry.rule.path(entry.phase);
        let reply = cluster.ask(&path, &offence(&entry.rule, "shop"));
        let passes = matches!(&reply, Ok(reply) if reply.decision == Decision::Allowed);
        assert!(!passes, "{path}: {reply:?}");
    }
}

#[test]
fn hazard_2_an_event_is_never_lost_because_no_replica_answers() {
    let of_events: Vec<Demand> = entries().into_iter().filter(|entry| entry.rule.suffix == "eventratelimit").collect();
    let [entry] = of_events.as_slice() else { panic!("{of_events:?}") };
    assert_eq!((entry.failure_policy, entry.timeout_seconds), (FailurePolicy::Ignore, 1));
    for (field, value) in [("failurePolicy", json!("Fail")), ("timeoutSeconds", json!(3))] {
        let spec = json!({"plugin": "EventRateLimit", "eventRateLimit": strict(Plugin::EventRateLimit), field: value});
        let refused = compile(&plugin("e", spec)).unwrap_err();
        assert!(refused.to_string().contains(field), "{refused}");
    }
}

#[test]
fn hazard_3_what_isolates_refuses_while_no_replica_answers_unless_its_object_says_otherwise() {
    let open = [
        "eventratelimit",
        "noderestriction",
        "ownerreferences",
        "podtopologylabels",
        "storageobjectinuseprotection",
        "taintnodesbycondition",
    ];
    for entry in entries() {
        let is_open = open.contains(&plugin_of(&entry.rule));
        assert_eq!(entry.failure_policy == FailurePolicy::Ignore, is_open, "{}", entry.name);
    }
}

#[test]
fn hazard_4_what_a_later_webhook_undoes_or_adds_is_refused_by_the_twin() {
    let undone = |which: Plugin, stored: Value, part: &str| {
        let cluster = Cluster::from_objects(&[of([which]), vec![namespace(json!({}))]].concat());
        let first = cluster.mutate(&pod(json!({})));
        assert_eq!(cluster.validate(&first.pod).decision, Decision::Allowed, "{which}: {}", first.message);
        let judged = cluster.validate(&stored);
        assert!(judged.decision == Decision::Denied && judged.message.contains(part), "{which}: {}", judged.message);
    };
    let injected = json!({"containers": [
        {"name": "app", "image": "shop:1", "imagePullPolicy": "Always"}, {"name": "late", "image": "l", "imagePullPolicy": "Never"}]});
    undone(Plugin::AlwaysPullImages, pod(json!({})), "spec.containers[0].imagePullPolicy");
    undone(Plugin::AlwaysPullImages, pod(injected), "spec.containers[1].imagePullPolicy");
    undone(Plugin::PodNodeSelector, pod(json!({})), "lacks the node selector");
    undone(Plugin::PodNodeSelector, pod(json!({"nodeSelector": {"pool": "b"}})), "conflicts");
    undone(Plugin::Priority, pod(json!({"priority": 0})), "lacks the priority class low");
    undone(Plugin::RuntimeClass, pod(json!({})), "lacks the runtime class sandbox");
    let late = json!({"tolerations": [{"key": "team", "operator": "Exists"}, {"key": "late", "operator": "Exists"}]});
    undone(Plugin::PodTolerationRestriction, pod(late), "conflict with its cluster whitelist");
    let cluster = Cluster::from_objects(&of([Plugin::PodSecurity]));
    let bare = json!({"metadata": {"name": "n"}});
    let mut review = review("n", &bare);
    review["request"]["kind"]["kind"] = "Namespace".into();
    review["request"]["resource"]["resource"] = "namespaces".into();
    let labelled = cluster.ask("/mutate--v1-namespace-podsecurity", &review).unwrap();
    assert_eq!(labelled.decision, Decision::Patched);
    assert_eq!(cluster.ask("/validate--v1-namespace-podsecurity", &review).unwrap().decision, Decision::Denied);
}

#[test]
fn hazard_5_a_second_call_changes_nothing() {
    let cluster = of_pods(&[set("log", json!({}))]);
    let mut web = pod(json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}));
    web["metadata"]["labels"] = json!({"app": "web"});
    // Also asks twice, and has the twins judge the result.
    let stored = admitted(&cluster, &web).unwrap();
    assert_eq!(stored["spec"]["containers"].as_array().unwrap().len(), 2);
    assert_eq!(stored["spec"]["nodeSelector"], json!({"pool": "a"}));
}
