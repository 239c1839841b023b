//! `ResourceQuota` with `limitedResources` (4.18).

use admission::Decision;
use admission::registry::{FailurePolicy, Phase};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::endpoints::demands;
use crate::testing::{Cluster, Reply};

const PATH: &str = "/validate--v1-pod-resourcequota";

fn quota(name: &str, hard: &[&str], scopes: Value, selector: Value) -> Value {
    let hard: serde_json::Map<String, Value> = hard.iter().map(|&name| (name.to_owned(), json!("10"))).collect();
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"hard": hard, "scopes": scopes, "scopeSelector": selector}, "status": {"hard": hard},
    })
}

fn cluster(limited: &Value, quotas: &[Value]) -> Cluster {
    let spec = json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}});
    Cluster::from_objects(&[&[plugin("q", spec)], quotas].concat())
}

fn review(kind: &str, sub_resource: &str, old: Option<&Value>, new: &Value) -> Value {
    let resource = match kind {
        "PersistentVolumeClaim" => "persistentvolumeclaims",
        "Service" => "services",
        _ => "pods",
    };
    let object = |spec: &Value| json!({"metadata": {"name": "x"}, "spec": spec});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "x", "namespace": "shop", "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": resource}, "subResource": sub_resource,
        "object": object(new), "oldObject": old.map(object),
    }})
}

fn said(cluster: &Cluster, review: &Value) -> String {
    let reply: Reply = cluster.ask(PATH, review).unwrap();
    if reply.decision == Decision::Allowed {
        assert_eq!(reply.message, "");
        return String::new();
    }
    assert_eq!(reply.code, Some(403));
    let message = reply.message.trim_start_matches("pods \"x\" is forbidden: ");
    message.trim_start_matches("services \"x\" is forbidden: ").to_owned()
}

fn pod(requests: Value) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": requests}}]})
}

/// Rows 1 to 5 of the reference are the first five.
#[test]
fn what_is_consumed_and_limited_needs_a_quota_that_names_it() {
    let cpu = pod(json!({"cpu": "1"}));
    let of = |resource: &str, contains: &[&str]| json!([{"resource": resource, "matchContains": contains}]);
    let none = || Value::Null;
    for (row, limited, quotas, object, expected) in [
        (1, of("pods", &["requests.cpu"]), vec![], &cpu, "insufficient quota to consume: requests.cpu"),
        (2, of("services", &["services"]), vec![], &cpu, ""),
        (3, of("pods", &["requests.cpu"]), vec![quota("a", &["requests.cpu"], none(), none())], &cpu, ""),
        (
            4,
            of("pods", &["requests.cpu"]),
            vec![quota("a", &["memory"], none(), none())],
            &cpu,
            "insufficient quota to consume: requests.cpu",
        ),
        (5, of("pods", &["cpu"]), vec![quota("a", &["pods", "requests.cpu", "cpu"], none(), none())], &cpu, ""),
        (6, of("pods", &["cpu"]), vec![], &cpu, "insufficient quota to consume: cpu,requests.cpu"),
        (7, of("pods", &["cpu"]), vec![], &pod(json!({"cpu": "0"})), ""),
        (8, of("pods", &["cpu"]), vec![], &pod(json!({"memory": "1"})), ""),
        (
            9,
            of("pods", &["requests.example.com/gpu"]),
            vec![],
            &pod(json!({"example.com/gpu": "1"})),
            "insufficient quota to consume: requests.example.com/gpu",
        ),
        (
            10,
            of("pods", &["example.com/gpu"]),
            vec![quota("a", &["requests.example.com/gpu"], none(), none())],
            &pod(json!({"example.com/gpu": "1"})),
            "",
        ),
        // A quota that has not been counted yet covers nothing, nor does one of another scope.
        (
            11,
            of("pods", &["requests.cpu"]),
            vec![quota("a", &["requests.cpu"], json!(["BestEffort"]), none())],
            &cpu,
            "insufficient quota to consume: requests.cpu",
        ),
        (12, of("pods", &["count/pods"]), vec![], &cpu, "insufficient quota to consume: count/pods"),
    ] {
        let found = said(&cluster(&limited, &quotas), &review("Pod", "", None, object));
        assert_eq!(found, expected, "row {row}");
    }
    let mut uncounted = quota("a", &["requests.cpu"], none(), none());
    uncounted["status"] = json!({});
    let found = said(&cluster(&of("pods", &["requests.cpu"]), &[uncounted]), &review("Pod", "", None, &cpu));
    assert_eq!(found, "insufficient quota to consume: requests.cpu");
}

/// Row 6 of the reference.
#[test]
fn services_and_claims_count_what_they_take() {
    let limited = json!([
        {"resource": "services", "matchContains": ["services.loadbalancers"]},
        {"resource": "persistentvolumeclaims", "matchContains": ["fast.storageclass.storage.k8s.io/requests.storage"]},
    ]);
    let service = |type_: &str| json!({"type": type_, "ports": [{"port": 80, "nodePort": 30000}]});
    let denied = "insufficient quota to consume: services.loadbalancers";
    let cluster = cluster(&limited, &[]);
    let (balanced, node) = (service("LoadBalancer"), service("NodePort"));
    for (old, new, expected) in [
        (Some(&balanced), &balanced, ""),
        (Some(&node), &balanced, denied),
        (Some(&balanced), &node, ""),
        (None, &balanced, denied),
        (None, &node, ""),
    ] {
        assert_eq!(said(&cluster, &review("Service", "", old, new)), expected, "{old:?} {new}");
    }
    let claim =
        |class: &str, size: &str| json!({"storageClassName": class, "resources": {"requests": {"storage": size}}});
    let of_fast = "fast.storageclass.storage.k8s.io/requests.storage";
    for (old, new, is_denied) in [
        (None, claim("slow", "1Gi"), false),
        (None, claim("fast", "1Gi"), true),
        (Some(claim("fast", "1Gi")), claim("fast", "1024Mi"), false),
        (Some(claim("fast", "1Gi")), claim("fast", "2Gi"), true),
        (Some(claim("fast", "2Gi")), claim("fast", "1Gi"), false),
    ] {
        let found = said(&cluster, &review("PersistentVolumeClaim", "", old.as_ref(), &new));
        let expected = format!("persistentvolumeclaims \"x\" is forbidden: insufficient quota to consume: {of_fast}");
        assert_eq!(found, if is_denied { expected } else { String::new() }, "{old:?} {new}");
    }
}

/// Row 7 of the reference.
#[test]
fn scopes_that_are_limited_need_a_quota_of_the_scope_that_selects_the_object() {
    let class =
        |operator: &str, values: &[&str]| json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
    let selector = |scope: Value| json!({"matchExpressions": [scope]});
    let limited = |scopes: Value| json!([{"resource": "pods", "matchScopes": scopes}]);
    let of_class =
        |class: &str| json!({"priorityClassName": class, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    let best_effort = |class: &str| json!({"priorityClassName": class, "containers": [{}]});
    let best = json!({"scopeName": "BestEffort", "operator": "Exists"});
    let (exists, services) = (class("Exists", &[]), class("In", &["cluster-services"]));
    let two = limited(json!([best, services]));
    let covering = |scope: &Value| quota("a", &["pods"], Value::Null, selector(scope.clone()));
    let of_best = || quota("b", &["pods"], json!(["BestEffort"]), Value::Null);
    let denied = |scopes: &str| format!("insufficient quota to match these scopes: [{scopes}]");
    let (no_class, no_best) = ("{PriorityClass In [cluster-services]}", "{BestEffort Exists []}");
    let in_two = class("In", &["a", "cluster-services"]);
    let rows = [
        (limited(json!([exists])), vec![covering(&exists)], of_class("fake-priority"), String::new()),
        (limited(json!([exists])), vec![], of_class("fake-priority"), denied("{PriorityClass Exists []}")),
        (limited(json!([best])), vec![], best_effort(""), denied(no_best)),
        (limited(json!([best])), vec![of_best()], best_effort(""), String::new()),
        (two.clone(), vec![], of_class("fake-priority"), String::new()),
        (two.clone(), vec![], best_effort("fake-priority"), denied(no_best)),
        (two.clone(), vec![], of_class("cluster-services"), denied(no_class)),
        (two.clone(), vec![], best_effort("cluster-services"), denied(&format!("{no_best} {no_class}"))),
        (two.clone(), vec![of_best()], best_effort("cluster-services"), denied(no_class)),
        (two.clone(), vec![covering(&services)], best_effort("cluster-services"), denied(no_best)),
        (two, vec![of_best(), covering(&services)], best_effort("cluster-services"), String::new()),
        (limited(json!([services])), vec![], of_class("other"), String::new()),
        (limited(json!([in_two])), vec![covering(&services)], of_class("cluster-services"), String::new()),
        (
            limited(json!([in_two])),
            vec![covering(&class("In", &["a"]))],
            of_class("cluster-services"),
            denied("{PriorityClass In [a cluster-services]}"),
        ),
        (limited(json!([in_two])), vec![covering(&class("In", &["a"]))], of_class("a"), String::new()),
        (limited(json!([in_two])), vec![], of_class("a"), denied("{PriorityClass In [a cluster-services]}")),
        (limited(json!([in_two])), vec![covering(&exists)], of_class("a"), String::new()),
        // Of what is limited by scope and by name, the name is said first.
        (
            json!([{"resource": "pods", "matchScopes": [exists], "matchContains": ["requests.cpu"]}]),
            vec![covering(&exists)],
            of_class("fake-priority"),
            "insufficient quota to consume: requests.cpu".to_owned(),
        ),
        // Scopes count for pods, whichever resource they are written under.
        (
            json!([{"resource": "services", "matchScopes": [exists]}]),
            vec![],
            of_class("a"),
            denied("{PriorityClass Exists []}"),
        ),
    ];
    for (row, (limited, quotas, object, expected)) in rows.into_iter().enumerate() {
        assert_eq!(said(&cluster(&limited, &quotas), &review("Pod", "", None, &object)), expected, "row {row}");
    }
}

#[test]
fn what_is_in_a_scope() {
    let is_in = |scope: &str, spec: &Value| {
        let limited = json!([{"resource": "pods", "matchScopes": [{"scopeName": scope, "operator": "Exists"}]}]);
        !said(&cluster(&limited, &[]), &review("Pod", "", None, spec)).is_empty()
    };
    let term = json!({"topologyKey": "a", "namespaces": ["b"]});
    let required = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let preferred = json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {}}}]}}});
    let own = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "a", "namespaces": [], "namespaceSelector": null}]}}});
    for (scope, spec, expected) in [
        ("Terminating", json!({"activeDeadlineSeconds": 0}), true),
        ("NotTerminating", json!({"activeDeadlineSeconds": 0}), false),
        ("NotTerminating", json!({}), true),
        ("BestEffort", json!({"containers": [{"resources": {"limits": {"example.com/gpu": 1}}}]}), true),
        ("BestEffort", json!({"initContainers": [{"resources": {"limits": {"memory": "1"}}}]}), false),
        ("BestEffort", json!({"resources": {"requests": {"cpu": "1"}}}), false),
        // What names neither CPU nor memory for the pod as a whole says nothing of what its containers ask for.
        (
            "BestEffort",
            json!({"resources": {"requests": {}}, "containers": [{"resources": {"limits": {"cpu": "1"}}}]}),
            false,
        ),
        ("NotBestEffort", pod(json!({"cpu": "1m"})), true),
        ("CrossNamespacePodAffinity", required, true),
        ("CrossNamespacePodAffinity", preferred, true),
        ("CrossNamespacePodAffinity", own, false),
    ] {
        assert_eq!(is_in(scope, &spec), expected, "{scope} {spec}");
    }
}

#[test]
fn a_resize_needs_a_quota_only_for_more_and_other_updates_of_pods_none() {
    let limited = json!([{"resource": "pods", "matchContains": ["requests.cpu"]}]);
    let cluster = cluster(&limited, &[]);
    let of = |amounts: &[&str]| {
        let containers: Vec<Value> =
            amounts.iter().map(|cpu| json!({"resources": {"requests": {"cpu": cpu}}})).collect();
        json!({"containers": containers})
    };
    let denied = "insufficient quota to consume: requests.cpu";
    for (sub_resource, old, new, expected) in [
        ("resize", of(&["1", "1"]), of(&["500m", "1500m"]), ""),
        ("resize", of(&["1", "1"]), of(&["1", "1001m"]), denied),
        ("", of(&["1"]), of(&["2"]), ""),
        ("ephemeralcontainers", of(&["1"]), of(&["2"]), ""),
    ] {
        let review = review("Pod", sub_resource, Some(&old), &new);
        if sub_resource == "ephemeralcontainers" {
            assert_eq!(cluster.ask(PATH, &review).unwrap().code, Some(400), "it is not served here");
        } else {
            assert_eq!(said(&cluster, &review), expected, "{sub_resource} {old} {new}");
        }
    }
}

#[test]
fn sidecars_init_containers_and_overhead_count_as_in_the_api_server() {
    // 2 in the containers, 1 in a sidecar, and an init container of 4 that runs beside the sidecar: 5, and 1 of overhead.
    let pod = |init: &str| {
        json!({
            "containers": [{"resources": {"requests": {"cpu": "2"}}}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                {"resources": {"requests": {"cpu": init}}},
            ],
            "overhead": {"cpu": "1"},
        })
    };
    let cluster = cluster(&json!([{"resource": "pods", "matchContains": ["requests.cpu"]}]), &[]);
    let grows = |old: &Value, new: &Value| !said(&cluster, &review("Pod", "resize", Some(old), new)).is_empty();
    let six = json!({"containers": [{"resources": {"requests": {"cpu": "6"}}}]});
    let (less, more) = (json!({"containers": [{"resources": {"requests": {"cpu": "5999m"}}}]}), pod("4"));
    assert!(!grows(&six, &more) && grows(&less, &more));
    // The init container that asks for less than the others together is no matter.
    let four = json!({"containers": [{"resources": {"requests": {"cpu": "4"}}}]});
    assert!(!grows(&four, &pod("2")));
}

#[test]
fn the_entry_is_there_while_an_object_is_and_quotas_that_were_not_read_are_no_verdict() {
    let limited = json!([{"resource": "pods", "matchContains": ["cpu"]}]);
    let mut cluster = cluster(&limited, &[]).live();
    cluster.snapshot.namespaces = std::sync::Arc::new({
        let mut known = crate::snapshot::namespace::Namespaces::default();
        known.insert("shop".to_owned(), std::collections::BTreeMap::new());
        known
    });
    let found = demands(&cluster.snapshot);
    let [entry] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((entry.phase, entry.failure_policy), (Phase::Validating, FailurePolicy::Fail));
    let review = review("Pod", "", None, &pod(json!({"cpu": "1"})));
    let open = cluster.ask(PATH, &review).unwrap_err();
    assert_eq!((open.status(), open.retry_after()), (503, Some(1)));
    let spec = json!({"plugin": "ResourceQuota", "mode": "Audit", "resourceQuota": {"limitedResources": limited}});
    let mut audited = Cluster::from_objects(&[plugin("q", spec)]).live();
    audited.snapshot.namespaces = std::sync::Arc::clone(&cluster.snapshot.namespaces);
    assert_eq!(
        audited.ask(PATH, &review).unwrap().decision,
        Decision::Allowed,
        "what only reports keeps no request waiting"
    );
    let mut quotas = crate::snapshot::quotas::Quotas::default();
    quotas.is_complete = true;
    cluster.snapshot.quotas = std::sync::Arc::new(quotas);
    assert_eq!(cluster.ask(PATH, &review).unwrap().decision, Decision::Denied);
}

/// Hazards: `kube-system` and our own namespace are never concerned.
#[test]
fn excluded_namespaces_need_no_quota() {
    let limited = json!([{"resource": "pods", "matchContains": ["cpu"]}]);
    let cluster = cluster(&limited, &[]);
    for namespace in ["kube-system", "outrider-system"] {
        let mut review = review("Pod", "", None, &pod(json!({"cpu": "1"})));
        review["request"]["namespace"] = namespace.into();
        assert_eq!(cluster.ask(PATH, &review).unwrap().decision, Decision::Allowed, "{namespace}");
    }
}

/// A class of 210 characters makes a name that is longer than what messages name.
#[test]
fn a_quota_that_names_a_long_name_covers_it() {
    let name = format!("{}.storageclass.storage.k8s.io/persistentvolumeclaims", "c".repeat(210));
    let limited = json!([{"resource": "persistentvolumeclaims", "matchContains": ["storageclass"]}]);
    let claim = json!({"storageClassName": "c".repeat(210)});
    let judged =
        |quotas: &[Value]| said(&cluster(&limited, quotas), &review("PersistentVolumeClaim", "", None, &claim));
    assert_eq!(judged(&[quota("a", &[&name], Value::Null, Value::Null)]), "");
    assert!(judged(&[]).contains("insufficient quota to consume: ccc"), "{}", judged(&[]));
}

#[test]
fn sixty_four_names_are_in_the_message_and_the_others_are_counted() {
    let requests: serde_json::Map<String, Value> = (0..70).map(|at| (format!("x.com/{at}"), json!("1"))).collect();
    let limited = json!([{"resource": "pods", "matchContains": ["x.com"]}]);
    let found = said(&cluster(&limited, &[]), &review("Pod", "", None, &pod(Value::Object(requests))));
    assert!(found.matches("requests.x.com/").count() == 64 && found.ends_with(" and 6 more"), "{found}");
}

#[test]
fn the_deadline_is_checked_for_each_quota_and_a_scope_that_is_written_often_is_one() {
    let scope = json!({"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"});
    let selector = json!({"matchExpressions": vec![scope; 5000]});
    let limited = json!([{"resource": "pods", "matchContains": ["cpu"]}]);
    let checks = |count: usize| {
        let quotas: Vec<Value> =
            (0..count).map(|at| quota(&format!("q{at}"), &["cpu"], Value::Null, selector.clone())).collect();
        let cluster = cluster(&limited, &quotas);
        assert!(cluster.snapshot.quotas.of("shop").all(|quota| quota.scopes.len() == 1));
        let body = serde_json::to_vec(&review("Pod", "", None, &pod(json!({"cpu": "1"})))).unwrap();
        let calls = std::cell::Cell::new(0);
        let is_over = || {
            calls.set(calls.get() + 1);
            false
        };
        cluster.answer_within(PATH, &body, admission::Deadline::until(&is_over)).unwrap();
        calls.get()
    };
    assert_eq!(checks(7) - checks(2), 5);
}

#[test]
fn parts_of_names_are_bounded() {
    let parts: Vec<String> = (0..65).map(|at| format!("p{at}")).collect();
    let spec = json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"resource": "pods", "matchContains": parts}]}});
    let refused = format!("{:?}", crate::plugins::validation::compile(&plugin("q", spec)));
    assert!(refused.contains("limitedResources[0].matchContains") && refused.contains("64"), "{refused}");
}

#[test]
fn plugins_that_do_not_bind_the_user_refuse_no_object_for_its_size() {
    let containers = vec![json!({}); 40_001];
    let limited = json!([{"resource": "pods", "matchContains": ["cpu"]}]);
    for (mode, code) in [("Enforce", Some(422)), ("Warn", None), ("Audit", None)] {
        let spec = json!({"plugin": "ResourceQuota", "mode": mode, "resourceQuota": {"limitedResources": limited}});
        let cluster = Cluster::from_objects(&[plugin("q", spec)]);
        let reply = cluster.ask(PATH, &review("Pod", "", None, &json!({"containers": containers}))).unwrap();
        assert_eq!(reply.code, code, "{mode}");
        assert_eq!(reply.warnings.len(), usize::from(mode == "Warn"), "{mode}");
    }
}

/// What was too large to be read counts as nothing, so that the object has more than before.
#[test]
fn an_update_of_what_was_too_large_is_judged_as_a_creation() {
    let cluster = cluster(&json!([{"resource": "pods", "matchContains": ["cpu"]}]), &[]);
    let now = pod(json!({"cpu": "1"}));
    assert_eq!(said(&cluster, &review("Pod", "resize", Some(&now), &now)), "");
    let mut large = now.clone();
    large["containers"] = vec![now["containers"][0].clone(); 40_001].into();
    let refusal = said(&cluster, &review("Pod", "resize", Some(&large), &now));
    assert!(refusal.contains("insufficient quota to consume: cpu"), "{refusal}");
}

/// The labels of a namespace that was created a moment ago are not known.
#[test]
fn plugins_that_do_not_bind_the_user_keep_no_request_waiting_for_its_namespace() {
    for (mode, users, waits, warnings) in [
        ("Enforce", &[][..], true, 0),
        ("Enforce", &["kim"], false, 0),
        ("Warn", &[], false, 1),
        ("Audit", &[], false, 0),
    ] {
        let scope = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}, "excludeUsers": users});
        let limited = json!({"limitedResources": [{"resource": "pods", "matchContains": ["cpu"]}]});
        let spec = json!({"plugin": "ResourceQuota", "mode": mode, "match": scope, "resourceQuota": limited});
        let cluster = Cluster::from_objects(&[plugin("q", spec)]).live();
        let mut review = review("Pod", "", None, &pod(json!({"cpu": "1"})));
        review["request"]["userInfo"] = json!({"username": "kim"});
        match cluster.ask(PATH, &review) {
            Err(open) => assert!(waits && open.status() == 503, "{mode}: {open:?}"),
            Ok(reply) => assert_eq!((waits, reply.warnings.len()), (false, warnings), "{mode}: {:?}", reply.warnings),
        }
    }
}
