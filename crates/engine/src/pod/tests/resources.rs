//! Requests and limits that follow from the pod's own containers, and those that are filled in. The numbers are those of the cases of
//! OpenKruise.

use admission::Decision;
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

/// A cluster with a set whose container has this policy.
fn cluster(policy: Value) -> Cluster {
    Cluster::from_objects(&[set(
        "s",
        json!({"containers": [{"name": "log", "image": "l:1", "resourcesPolicy": policy}]}),
    )])
}

fn policy(mode: &str, names: &str, limits: Value, requests: Value) -> Value {
    json!({"targetContainersMode": mode, "targetContainersNameRegex": names, "resourcesExpr": {"limits": limits, "requests": requests}})
}

fn container(name: &str, limits: Value, requests: Value) -> Value {
    json!({"name": name, "image": "shop:1", "resources": {"limits": limits, "requests": requests}})
}

fn two() -> [Value; 2] {
    [
        container(
            "large.engine.v4",
            json!({"cpu": "200m", "memory": "200Mi"}),
            json!({"cpu": "50m", "memory": "100Mi"}),
        ),
        container(
            "large.engine.v8",
            json!({"cpu": "400m", "memory": "400Mi"}),
            json!({"cpu": "100m", "memory": "100Mi"}),
        ),
    ]
}

/// The resources of the container that the cluster's set adds to a pod with these containers.
fn resources(cluster: &Cluster, containers: &[Value], inits: Value) -> Value {
    let reply = cluster.mutate(&pod(json!({"containers": containers, "initContainers": inits})));
    assert_eq!(reply.reason, reasons::INJECTED, "{}", reply.message);
    let again = cluster.mutate(&reply.pod);
    assert_eq!((again.reason, again.patch), (reasons::ALREADY_INJECTED, None));
    reply.pod["spec"]["containers"][0]["resources"].clone()
}

#[test]
fn case_62_amounts_of_all_containers_add_up() {
    let expressions = |list: &str| match list {
        "limits" => json!({"cpu": "cpu*50%", "memory": "200Mi"}),
        _ => json!({"cpu": "cpu*50%", "memory": "100Mi"}),
    };
    let cluster = cluster(policy("sum", ".*", expressions("limits"), expressions("requests")));
    assert_eq!(
        resources(&cluster, &two(), json!(null)),
        json!({"limits": {"cpu": "300m", "memory": "200Mi"}, "requests": {"cpu": "75m", "memory": "100Mi"}})
    );
}

#[test]
fn case_63_the_largest_amount_counts_and_a_regular_expression_that_matches_nothing_fails() {
    let of = |names: &str| {
        cluster(policy("max", names, json!({"cpu": "max(cpu*50%, 50m)"}), json!({"cpu": "max(cpu*50%, 50m)"})))
    };
    for (names, expected) in [
        ("^large.engine.v.*$", json!({"limits": {"cpu": "200m"}, "requests": {"cpu": "50m"}})),
        ("^large.engine.v4$", json!({"limits": {"cpu": "100m"}, "requests": {"cpu": "50m"}})),
        ("v4", json!({"limits": {"cpu": "100m"}, "requests": {"cpu": "50m"}})),
    ] {
        assert_eq!(resources(&of(names), &two(), json!(null)), expected, "{names}");
    }
    let reply = of("^small").mutate(&pod(json!({"containers": two()})));
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::EVALUATION_FAILED));
    assert!(
        reply.message.contains("none of the pod's own containers has a name that matches \"^small\""),
        "{}",
        reply.message
    );
}

#[test]
fn a_set_that_may_be_skipped_is_where_it_cannot_be_evaluated() {
    let policy = policy("max", "^small", json!({"cpu": "cpu"}), json!({}));
    let container = json!({"name": "log", "image": "l:1", "resourcesPolicy": policy});
    let spec = json!({"containers": [container], "clashPolicy": "Skip"});
    let cluster = Cluster::from_objects(&[set("s", spec)]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::EVALUATION_FAILED));
    assert!(reply.warnings[0].starts_with("EvaluationFailed: "), "{:?}", reply.warnings);
    assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed);
}

#[test]
fn cases_64_and_69_without_a_limit_of_one_container_constants_stay_and_the_rest_has_none() {
    let [first, mut second] = two();
    let limits = second["resources"]["limits"].as_object_mut().unwrap();
    limits.remove("cpu");
    let of = |mode: &str| cluster(policy(mode, ".*", json!({"cpu": "cpu*40%", "memory": "memory*30%"}), json!({})));
    let containers = [first.clone(), second.clone()];
    assert_eq!(resources(&of("sum"), &containers, json!(null)), json!({"limits": {"memory": "180Mi"}}));
    let [first, mut second] = two();
    second["resources"]["limits"].as_object_mut().unwrap().remove("memory");
    let containers = [first, second];
    assert_eq!(resources(&of("max"), &containers, json!(null)), json!({"limits": {"cpu": "160m"}}));
    let constant = cluster(policy("sum", ".*", json!({"memory": "200Mi"}), json!({})));
    assert_eq!(resources(&constant, &containers, json!(null)), json!({"limits": {"memory": "200Mi"}}));
}

#[test]
fn case_65_a_missing_request_counts_as_zero_and_as_the_limit_where_there_is_one() {
    let cluster = cluster(policy("sum", ".*", json!({}), json!({"cpu": "cpu*30%", "memory": "memory"})));
    let containers = [container("a", json!({}), json!({"cpu": "100m"})), container("b", json!({}), json!({}))];
    assert_eq!(resources(&cluster, &containers, json!(null)), json!({"requests": {"cpu": "30m", "memory": "0"}}));
    // The API server requests what a container is limited to.
    let containers =
        [container("a", json!({"cpu": "100m"}), json!({})), container("b", json!({}), json!({"cpu": "1"}))];
    assert_eq!(resources(&cluster, &containers, json!(null)), json!({"requests": {"cpu": "330m", "memory": "0"}}));
}

#[test]
fn case_66_native_sidecars_of_the_pod_count_and_neither_plain_init_containers_nor_those_of_sets() {
    let limits = || json!({"cpu": "100m", "memory": "100Mi"});
    let requests = || json!({"cpu": "40m", "memory": "40Mi"});
    let mut native = container("mesh", limits(), requests());
    native["restartPolicy"] = json!("Always");
    let inits = json!([native, container("setup", json!({"cpu": "8"}), json!({"cpu": "8"}))]);
    let all = || json!({"cpu": "cpu", "memory": "memory"});
    let of_set = json!({"name": "log", "image": "l:1", "resourcesPolicy": policy("sum", ".*", all(), all())});
    let other =
        set("other", json!({"containers": [{"name": "other", "image": "o:1", "resources": {"limits": {"cpu": "7"}}}]}));
    let cluster = Cluster::from_objects(&[other, set("s", json!({"containers": [of_set]}))]);
    let reply =
        cluster.mutate(&pod(json!({"containers": [container("app", limits(), requests())], "initContainers": inits})));
    assert_eq!(reply.names("containers"), ["other", "log", "app"]);
    let expected = json!({"limits": {"cpu": "200m", "memory": "200Mi"}, "requests": {"cpu": "80m", "memory": "80Mi"}});
    assert_eq!(reply.pod["spec"]["containers"][1]["resources"], expected);
    assert!(cluster.mutate(&reply.pod).patch.is_none());
}

#[test]
fn case_67_a_native_sidecar_may_have_a_policy() {
    let policy = policy(
        "sum",
        ".*",
        json!({"cpu": "cpu*30%", "memory": "memory*25%"}),
        json!({"cpu": "cpu*10%", "memory": "memory*7.5%"}),
    );
    let container_of_set =
        json!({"name": "mesh", "image": "m:1", "restartPolicy": "Always", "resourcesPolicy": policy});
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": null, "initContainers": [container_of_set]}))]);
    let same = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let containers = [
        container("a", same("400m", "800Mi"), same("400m", "800Mi")),
        container("b", same("600m", "1200Mi"), same("600m", "1200Mi")),
    ];
    let reply = cluster.mutate(&pod(json!({"containers": containers})));
    assert_eq!(
        reply.pod["spec"]["initContainers"][0]["resources"],
        json!({"limits": {"cpu": "300m", "memory": "500Mi"}, "requests": {"cpu": "100m", "memory": "150Mi"}})
    );
}

/// There, an empty expression of a request is a request of 0.
#[test]
fn case_68_an_empty_expression_is_none() {
    let cluster = cluster(policy("sum", ".*", json!({"cpu": "", "memory": "1Gi"}), json!({"cpu": "", "memory": ""})));
    assert_eq!(resources(&cluster, &two(), json!(null)), json!({"limits": {"memory": "1Gi"}}));
}

#[test]
fn case_70_a_request_is_never_above_the_limit_and_a_limit_of_zero_is_none() {
    let cluster = cluster(policy("sum", ".*", json!({"cpu": "cpu-2"}), json!({"cpu": "cpu"})));
    let of = |limit: &str| [container("app", json!({"cpu": limit}), json!({"cpu": "1"}))];
    assert_eq!(
        resources(&cluster, &of("2500m"), json!(null)),
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}})
    );
    assert_eq!(resources(&cluster, &of("2"), json!(null)), json!({"requests": {"cpu": "1"}}));
}

#[test]
fn claims_of_the_container_stay_beside_the_computed_amounts() {
    let policy = policy("sum", ".*", json!({"cpu": "1"}), json!({}));
    let of_set =
        json!({"name": "log", "image": "l:1", "resourcesPolicy": policy, "resources": {"claims": [{"name": "gpu"}]}});
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [of_set]}))]);
    let reply = cluster.mutate(&pod(json!({"resourceClaims": [{"name": "gpu"}]})));
    let expected = json!({"claims": [{"name": "gpu"}], "limits": {"cpu": "1"}});
    assert_eq!(reply.pod["spec"]["containers"][0]["resources"], expected);
}

#[test]
fn a_must_with_a_policy_is_compared_with_what_injection_would_give_the_pod() {
    let policy = policy("sum", ".*", json!({"cpu": "cpu*50%"}), json!({}));
    let spec = json!({"containers": [{"name": "log", "image": "l:1", "resourcesPolicy": policy}], "optOut": "Denied"});
    let cluster = Cluster::from_objects(&[set("s", spec)]);
    let mut pod = cluster.mutate(&pod(json!({"containers": two()}))).pod;
    assert_eq!(cluster.validate(&pod).decision, Decision::Allowed);
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1m");
    let refused = cluster.validate(&pod);
    assert_eq!(refused.decision, Decision::Denied);
    assert!(refused.message.contains("in resources.limits[cpu]"), "{}", refused.message);
    assert_eq!(cluster.mutate(&pod).decision, Decision::Denied);
}

#[test]
fn defaults_fill_in_what_is_lacking_resource_by_resource_and_after_the_policy() {
    let defaults = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}});
    for (fields, expected) in [
        (json!({}), defaults.clone()),
        (json!({"resources": null}), defaults.clone()),
        (
            json!({"resources": {"limits": {"cpu": "50m"}, "requests": {"memory": "2Gi"}}}),
            json!({"limits": {"cpu": "50m", "memory": "2Gi"}, "requests": {"cpu": "50m", "memory": "2Gi"}}),
        ),
        (
            json!({"resources": {"limits": {"nvidia.com/gpu": 1}}}),
            json!({"limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 1}, "requests": {"cpu": "100m", "memory": "64Mi"}}),
        ),
        (
            json!({"resourcesPolicy": policy("sum", ".*", json!({"cpu": "cpu*50%"}), json!({"memory": "memory"}))}),
            json!({"limits": {"cpu": "300m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "200Mi"}}),
        ),
    ] {
        let mut container = json!({"name": "log", "image": "l:1"});
        json_patch::merge(&mut container, &fields);
        let spec = json!({"containers": [container], "resourceDefaults": defaults});
        let cluster = Cluster::from_objects(&[set("s", spec)]);
        assert_eq!(resources(&cluster, &two(), json!(null)), expected, "{fields}");
    }
}

#[test]
fn a_pod_that_is_taken_out_of_guaranteed_is_told_of_once() {
    let same = || json!({"cpu": "1", "memory": "1Gi"});
    let guaranteed = [container("app", same(), same())];
    let limited = [container("app", same(), json!({}))];
    let burstable = [container("app", same(), json!({"cpu": "500m"}))];
    let with = |defaults: Value| {
        Cluster::from_objects(&[
            set("a", json!({"resourceDefaults": defaults})),
            set("b", json!({"resourceDefaults": defaults})),
        ])
    };
    let warned = |cluster: &Cluster, containers: &[Value], more: Value| {
        let mut pod = pod(json!({"containers": containers}));
        json_patch::merge(&mut pod, &json!({"spec": more}));
        let reply = cluster.mutate(&pod);
        assert!(cluster.mutate(&reply.pod).warnings.is_empty());
        reply.warnings.iter().filter(|warning| warning.contains("no longer Guaranteed")).count()
    };
    let open = with(json!(null));
    for (cluster, containers, more, expected) in [
        (&open, &guaranteed, json!({}), 1),
        (&open, &limited, json!({}), 1),
        (&open, &burstable, json!({}), 0),
        (&open, &guaranteed, json!({"initContainers": [{"name": "init", "image": "i:1"}]}), 0),
        (&open, &guaranteed, json!({"resources": {"limits": {"cpu": "4"}}}), 0),
        (&with(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), &guaranteed, json!({}), 0),
        (&with(json!({"limits": {"cpu": "1"}})), &guaranteed, json!({}), 1),
    ] {
        assert_eq!(warned(cluster, containers, more.clone()), expected, "{containers:?} {more}");
    }
}

#[test]
fn many_containers_and_many_policies_take_no_time_together() {
    let containers: Vec<Value> = (0..1_000).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect();
    let sidecars: Vec<Value> =
        (0..900).map(|at| json!({"name": format!("i{at}"), "image": "i", "restartPolicy": "Always"})).collect();
    let spec = |at: usize| {
        let names = if at.is_multiple_of(2) { ".*".to_owned() } else { format!("c{at}") };
        let container = json!({"name": format!("s{at}"), "image": "l:1", "resourcesPolicy": policy("sum", &names, json!({"cpu": "1"}), json!({}))});
        json!({"containers": [container], "clashPolicy": "Skip"})
    };
    let sets: Vec<_> = (0..300).map(|at| set(&format!("s{at}"), spec(at))).collect();
    let reply =
        Cluster::from_objects(&sets).mutate(&pod(json!({"containers": containers, "initContainers": sidecars})));
    assert_eq!(reply.names("containers").len(), 1_150);
    let skipped = &reply.audit["skipped"];
    assert_eq!(skipped.matches("EvaluationFailed").count(), 10);
    assert!(skipped.ends_with(",and 140 more"), "{skipped}");
    assert!(reply.warnings[0].ends_with("the pod has more than 1000 containers"), "{}", reply.warnings[0]);
}
