//! `ResourceQuota` with limited resources, beside the API server's own plugin.

use std::fs;

use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, served_with, small, webhooks};
use crate::plugins_asking::{programmed, run};
use crate::process::eventually;

fn limited_resources() -> Value {
    json!([
        {"resource": "pods", "matchContains": ["x.com/gpu"], "matchScopes": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}, {"scopeName": "BestEffort", "operator": "Exists"}]},
        {"resource": "services", "matchContains": ["services.loadbalancers"]},
        {"resource": "persistentvolumeclaims", "matchContains": ["fast.storageclass.storage.k8s.io/requests.storage"]},
    ])
}

/// Namespaces, each with a quota for these resources and scopes.
fn quotas() -> Vec<Value> {
    let high = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    [
        ("none", json!([]), Value::Null, Value::Null),
        ("gpu", json!(["requests.x.com/gpu"]), Value::Null, Value::Null),
        ("balanced", json!(["services.loadbalancers"]), Value::Null, Value::Null),
        ("best", json!(["pods"]), json!(["BestEffort"]), Value::Null),
        ("high", json!(["pods"]), Value::Null, high.clone()),
        ("fast", json!(["fast.storageclass.storage.k8s.io/requests.storage"]), Value::Null, Value::Null),
    ]
    .into_iter()
    .flat_map(|(name, resources, scopes, selector)| {
        let amounts = |amount: &str| -> Value {
            resources
                .as_array()
                .unwrap()
                .iter()
                .map(|it| (it.as_str().unwrap().to_owned(), json!(amount)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": name},
            "spec": {"hard": amounts("1000"), "scopes": scopes, "scopeSelector": selector},
            "status": {"hard": amounts("1000"), "used": amounts("0")}});
        if name == "none" { vec![namespace] } else { vec![namespace, quota] }
    })
    .collect()
}

fn consumer(random: &mut Random, at: usize, namespace: &str) -> Value {
    let of = |kind: &str, spec: Value| {
        let name = format!("{}-{at}", kind.to_lowercase());
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    match at % 4 {
        0 => of(
            "Service",
            json!({"type": random.pick(&[json!("LoadBalancer"), json!("ClusterIP"), json!("NodePort")]),
            "ports": [{"port": 80}]}),
        ),
        1 => of(
            "PersistentVolumeClaim",
            json!({"accessModes": ["ReadWriteOnce"],
            "storageClassName": random.pick(&[json!("fast"), json!("slow")]),
            "resources": {"requests": {"storage": random.pick(&[json!("1"), json!("100")])}}}),
        ),
        _ => {
            let gpu = json!({"requests": {"x.com/gpu": "1"}, "limits": {"x.com/gpu": "1"}});
            let resources = random.pick(&[json!({}), json!({"requests": {"cpu": "1m"}}), gpu]);
            of(
                "Pod",
                json!({
                    "priorityClassName": random.pick(&[json!("high"), json!("low"), Value::Null]),
                    "containers": [{"name": "c", "image": "i:1", "resources": resources}],
                }),
            )
        }
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn limited_resources_need_a_quota_as_in_the_plugin_of_the_api_server() {
    let config = std::env::temp_dir().join(format!("outrider-quota-{}.json", std::process::id()));
    let limited = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
        "limitedResources": limited_resources()});
    let whole = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "ResourceQuota", "configuration": limited}]});
    fs::write(&config, whole.to_string()).unwrap();
    let original = small(&[format!("--admission-control-config-file={}", config.display())]);
    fs::remove_file(&config).unwrap();
    let (replaced, outrider) = served_with(&[], &[]);
    let classes = ["high", "low"].map(|name| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1})
    });
    for cluster in [&original, &replaced] {
        apply(cluster, &[&classes[..], &quotas()].concat());
        for quota in quotas().into_iter().filter(|object| object["kind"] == "ResourceQuota") {
            let (namespace, status) =
                (quota["metadata"]["namespace"].as_str().unwrap(), json!({"status": quota["status"]}));
            let patch = ["patch", "resourcequota/q", "-n", namespace, "--subresource=status", "--type=merge", "-p"];
            cluster.kubectl_ok(&[&patch[..], &[status.to_string().as_str()]].concat(), None).unwrap();
        }
    }
    let object = plugin(
        "quota",
        &json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited_resources()}}),
    );
    apply(&replaced, &[object]);
    programmed(&replaced, "quota");
    let mut random = Random(seed(20_261_130) as u64);
    let names = ["none", "gpu", "balanced", "best", "high", "fast"];
    let objects: Vec<Value> = (0..size(240)).map(|at| consumer(&mut random, at, names[at / 4 % names.len()])).collect();
    let (theirs, ours) = (run(&original, "create", "", &objects), run(&replaced, "create", "", &objects));
    assert_eq!(ours, theirs);
    eprintln!("{} of {} objects were refused, alike", theirs.len(), objects.len());
    assert!(
        theirs.len() * 3 > objects.len() && theirs.len() < objects.len(),
        "the objects show little: {}",
        theirs.len()
    );
    let changes: Vec<Value> = objects.iter().filter(|object| object["kind"] == "Service").cloned().collect();
    let changes: Vec<Value> = changes
        .into_iter()
        .map(|mut service| {
            service["spec"]["type"] = random.pick(&[json!("LoadBalancer"), json!("ClusterIP"), json!("NodePort")]);
            service
        })
        .collect();
    assert_eq!(run(&replaced, "replace", "", &changes), run(&original, "replace", "", &changes));
    // A quota that appears is known, and quotas are watched no longer than an object reads them.
    let patch = json!({"metadata": {"name": "late", "namespace": "none"}, "apiVersion": "v1", "kind": "ResourceQuota",
        "spec": {"hard": {"services.loadbalancers": "9"}}});
    apply(&replaced, &[patch]);
    let status = json!({"status": {"hard": {"services.loadbalancers": "9"}, "used": {"services.loadbalancers": "0"}}})
        .to_string();
    let arguments =
        ["patch", "resourcequota/late", "-n", "none", "--subresource=status", "--type=merge", "-p", &status];
    replaced.kubectl_ok(&arguments, None).unwrap();
    eventually("the new quota covers a service", || {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "s-", "namespace": "none"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
        run(&replaced, "create", "", &[service]).is_empty()
    });
    replaced.kubectl_ok(&["delete", "admissionplugin/quota"], None).unwrap();
    eventually("the entry is withdrawn", || webhooks(&replaced).is_empty());
    drop(outrider);
}

/// What cannot be known is neither allowed nor refused by a guess.
#[test]
#[ignore = "needs a control plane: make test"]
fn quotas_that_cannot_be_listed_are_said_and_what_they_limit_waits() {
    let (cluster, _outrider) = served_with(&[], &[]);
    let role = cluster.kubectl_ok(&["get", "clusterrole", "outrider", "-o", "json"], None).unwrap();
    let mut role: Value = serde_json::from_str(&role).unwrap();
    role["rules"].as_array_mut().unwrap().retain(|rule| !rule["resources"].to_string().contains("resourcequotas"));
    cluster.kubectl_ok(&["replace", "-f", "-"], Some(&role.to_string())).unwrap();
    apply(&cluster, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "none"}})]);
    let object = |mode: &str| {
        let limited = json!({"limitedResources": limited_resources()});
        plugin("quota", &json!({"plugin": "ResourceQuota", "mode": mode, "resourceQuota": limited}))
    };
    apply(&cluster, &[object("Enforce")]);
    eventually("the entry is there", || webhooks(&cluster) == ["resourcequota.policy.outrider.dev"]);
    let status = || cluster.kubectl_ok(&["get", "admissionplugin/quota", "-o", "jsonpath={.status}"], None).unwrap();
    eventually("it is said", || status().contains("ResourceQuotas have not been read yet"));
    let service = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "none"},
            "spec": {"ports": [{"port": 80}]}})
    };
    eventually("what is limited waits", || {
        let refused = run(&cluster, "create", "", &[service("a")]);
        // The API server tries again until its time is over, and says no more than that.
        refused.iter().any(|line| line.starts_with("failed calling webhook \"resourcequota.policy.outrider.dev\""))
    });
    apply(&cluster, &[object("Warn")]);
    eventually("what only reports keeps nothing waiting", || {
        let said = run(&cluster, "create", "", &[service("b")]);
        said.is_empty() || said[0].contains("already exists")
    });
}
