//! Hazards of admission plugins that only an API server shows: with every plugin on, as strict as it can be, and no replica that answers,
//! the cluster lives and comes back. The others are in `crates/engine/src/plugins/tests/hazards.rs`, under the same numbers.

use cluster::{Cluster, Output};
use serde_json::{Value, json};

use crate::plugins::{apply, condition, plugin, served, served_with, webhooks};
use crate::process::{eventually, outrider_on};

/// Each refuses while no replica answers, where that can be chosen.
fn strict() -> Vec<Value> {
    let everything = json!([{"key": "team", "operator": "Exists"}]);
    let limited = json!([
        {"resource": "pods", "matchContains": ["cpu"]}, {"resource": "services", "matchContains": ["services"]}]);
    let of_pods = [
        ("AlwaysPullImages", "alwaysPullImages", json!({"includeEphemeralContainers": true})),
        ("PodNodeSelector", "podNodeSelector", json!({"clusterDefaultNodeSelector": "pool=a"})),
        (
            "PodTolerationRestriction",
            "podTolerationRestriction",
            json!({"default": everything, "whitelist": everything}),
        ),
        ("ExtendedResourceToleration", "extendedResourceToleration", json!({})),
        ("LimitPodHardAntiAffinityTopology", "limitPodHardAntiAffinityTopology", json!({})),
        ("DefaultTolerationSeconds", "defaultTolerationSeconds", json!({"notReadySeconds": 1})),
    ];
    let others = [
        ("DenyServiceExternalIPs", "denyServiceExternalIPs", json!({})),
        ("NamespaceLifecycle", "namespaceLifecycle", json!({"protectedNamespaces": ["*"]})),
        ("PodSecurity", "podSecurity", json!({"defaults": {"enforce": "restricted"}})),
        ("OwnerReferencesPermissionEnforcement", "ownerReferencesPermissionEnforcement", json!({})),
        ("ResourceQuota", "resourceQuota", json!({"limitedResources": limited})),
    ];
    // As the original, it is called for every update of a pod: with Fail, labels of pods would wait for a replica.
    let images = json!({"failurePolicy": "Ignore", "timeoutSeconds": 1});
    let object = |name: &str, section: &str, configuration: &Value, more: Value| {
        let mut spec = json!({"plugin": name, section: configuration});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plugin(&name.to_lowercase(), &spec)
    };
    let events = json!({"limits": [{"type": "Server", "qps": 1, "burst": 1}]});
    of_pods
        .iter()
        .map(|(name, section, configuration)| object(name, section, configuration, json!({})))
        .chain(others.iter().map(|(name, section, configuration)| {
            object(name, section, configuration, json!({"failurePolicy": "Fail", "timeoutSeconds": 1}))
        }))
        .chain([
            object("EventRateLimit", "eventRateLimit", &events, json!({})),
            object("ImagePolicyWebhook", "imagePolicyWebhook", &json!({}), images),
        ])
        .collect()
}

fn of_pods(namespace: &str) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "namespace": namespace},
        "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "blockOwnerDeletion": true}]);
    pod
}

fn create(cluster: &Cluster, object: &Value) -> Output {
    cluster.kubectl(&["create", "-f", "-"], Some(&object.to_string())).unwrap()
}

/// What keeps a cluster alive, none of which may wait for Outrider.
fn lives(cluster: &Cluster) {
    let lease = |namespace: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"generateName": "l-", "namespace": namespace}});
    let of_core = |kind: &str, namespace: &str, more: Value| {
        let mut object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"generateName": "o-", "namespace": namespace}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let access = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t"}});
    let involved =
        json!({"involvedObject": {"kind": "Pod", "namespace": "shop", "name": "p"}, "reason": "R", "type": "Normal"});
    for (what, object) in [
        ("hazard 1: a pod of kube-system", of_pods("kube-system")),
        ("hazard 1: a pod of ours", of_pods("outrider-system")),
        ("hazard 1: a Secret with certificates", of_core("Secret", "outrider-system", json!({}))),
        ("hazard 1: a Node", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})),
        ("hazard 1: a review of access", access),
        ("hazard 1: a review of a token", token),
        ("hazard 2: a heartbeat", lease("kube-node-lease")),
        ("hazard 2: a Lease elsewhere", lease("shop")),
        ("hazard 2: an Event", of_core("Event", "shop", involved)),
        ("an object that no plugin is about", of_core("ConfigMap", "shop", json!({}))),
    ] {
        let created = create(cluster, &object);
        assert!(created.success(), "{what}: {}", created.stderr);
    }
    for (what, arguments) in [
        (
            "hazard 1: a status of a Node",
            &["patch", "node/n1", "--subresource=status", "--type=merge", "-p", r#"{"status":{"phase":"Running"}}"#][..],
        ),
        ("hazard 8: a label of a pod", &["label", "pod/web", "-n", "shop", "a=b"]),
        (
            "hazard 8: a finalizer of a pod",
            &[
                "patch",
                "pod/web",
                "-n",
                "shop",
                "--type=merge",
                "-p",
                r#"{"metadata":{"finalizers":["example.com/f"]}}"#,
            ],
        ),
        (
            "hazard 8: it goes",
            &["patch", "pod/web", "-n", "shop", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#],
        ),
        (
            "hazard 9: a status of a pod",
            &[
                "patch",
                "pod/web",
                "-n",
                "shop",
                "--subresource=status",
                "--type=merge",
                "-p",
                r#"{"status":{"phase":"Failed"}}"#,
            ],
        ),
        ("hazard 10: pods, many at a time", &["delete", "--raw=/api/v1/namespaces/shop/pods"]),
        ("an AdmissionPlugin goes", &["delete", "admissionplugin/alwayspullimages"]),
    ] {
        let done = cluster.kubectl(arguments, None).unwrap();
        assert!(done.success(), "{what}: {}", done.stderr);
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn with_every_plugin_on_and_no_replica_the_cluster_lives_and_comes_back() {
    let (cluster, outrider) = served_with(&[], &["--on-demand-all-resources"]);
    apply(&cluster, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})]);
    let mut web = of_pods("shop");
    web["metadata"] = json!({"name": "web", "namespace": "shop"});
    assert!(create(&cluster, &web).success());
    apply(&cluster, &strict());
    eventually("all are called for", || {
        // There is no Secret with a backend to review images.
        let names = strict().into_iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
        let mut names = names.filter(|name| name != "imagepolicywebhook");
        names.all(|name| condition(&cluster, &name, "Programmed") == "True")
    });
    eventually("images are reviewed", || webhooks(&cluster).iter().any(|name| name.starts_with("imagepolicywebhook")));
    outrider.kill();
    let refused = create(&cluster, &of_pods("shop"));
    assert!(refused.stderr.contains("failed calling webhook"), "hazard 3: {}", refused.stderr);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]}});
    assert!(!create(&cluster, &service).success(), "hazard 3");
    lives(&cluster);
    // The way out needs no replica either.
    let opened = outrider_on(&cluster.kubeconfig(), &["break-glass"]);
    assert!(opened.success(), "{}", opened.stderr);
    eventually("the API server lets requests pass", || {
        create(&cluster, &of_pods("shop")).success()
            && cluster.kubectl(&["delete", "namespace/shop", "--dry-run=server"], None).unwrap().success()
    });
}

#[test]
#[ignore = "needs a control plane: make test"]
fn hazard_11_a_namespace_and_its_pods_are_applied_together() {
    let (cluster, _outrider) = served(&[]);
    apply(&cluster, &[plugin("node", &json!({"plugin": "PodNodeSelector"}))]);
    eventually("it is programmed", || condition(&cluster, "node", "Programmed") == "True");
    for round in 0..10 {
        let name = format!("new-{round}");
        let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": format!("round={round}")});
        let mut pod = of_pods(&name);
        pod["metadata"] = json!({"name": "web", "namespace": name});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [namespace, pod]}).to_string();
        let created = cluster.kubectl(&["create", "-f", "-"], Some(&list)).unwrap();
        assert!(created.success(), "{}", created.stderr);
        let path = "jsonpath={.spec.nodeSelector.round}";
        let found = cluster.kubectl_ok(&["get", "pod/web", "-n", &name, "-o", path], None).unwrap();
        assert_eq!(found, round.to_string());
    }
}
