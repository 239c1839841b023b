//! A set as JSON or YAML: what validation accepts compiles, and pods that it selects are as legal as with other sets.

use std::sync::Arc;

use engine::sidecarset::api::SidecarSet;
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use serde_json::{Value, json};

use super::cluster::{
    ALL, Cluster, MUTATE_POD, MUTATE_SET, NAMESPACE, VALIDATE_POD, VALIDATE_SET, pod_review, set_review,
};

/// Checks the set that the text describes.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(documents) = engine::yaml::read(text) else { return };
    for document in documents {
        holds(document.value);
    }
}

fn holds(mut set: Value) {
    if !set.is_object() {
        return;
    }
    set["apiVersion"] = json!("apps.outrider.dev/v1alpha1");
    set["kind"] = json!("SidecarSet");
    if !set["metadata"].is_object() {
        set["metadata"] = json!({});
    }
    // The API server validates names and types of metadata before it calls anybody.
    set["metadata"] = json!({"name": "fuzzed", "annotations": set["metadata"]["annotations"].as_object()});
    let cluster = &ALL[0];
    let Some(defaults) = cluster.ask(MUTATE_SET, &set_review(&set)) else { return };
    let set = defaults.applied(&set);
    let review = set_review(&set);
    let again = cluster.ask(MUTATE_SET, &review).expect("a verdict on defaults");
    assert!(again.patch.is_none(), "defaults on defaults: {:?}: {set}", again.patch);
    let Some(verdict) = cluster.ask(VALIDATE_SET, &review).filter(|verdict| verdict.allowed) else { return };
    assert!(verdict.patch.is_none());
    let decoded: SidecarSet = serde_json::from_value(set.clone()).unwrap_or_else(|error| panic!("{error}: {set}"));
    let compiled = CompiledSet::compile(&decoded).unwrap_or_else(|error| panic!("{error}: {set}"));
    injects(compiled, &set);
}

/// Pods that the set selects, with as little and as much as injection asks for.
fn injects(compiled: CompiledSet, set: &Value) {
    let labels = labels_of(&set["spec"]["selector"]);
    let mut snapshot = ALL[0].snapshot.clone();
    snapshot.sets = Arc::new(SetIndex::build([Arc::new(compiled)]));
    let registry = engine::pod::register(admission::Registry::default(), Vec::new());
    let cluster = Cluster { registry, snapshot };
    for spec in [
        json!({"containers": [{"name": "app", "image": "app:1"}]}),
        json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "init", "image": "init:1", "restartPolicy": "Always"}],
            "containers": [{
                "name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        }),
    ] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": NAMESPACE, "labels": labels}, "spec": spec,
        });
        let Some(first) = cluster.ask(MUTATE_POD, &pod_review(NAMESPACE, &pod)).filter(|reply| reply.allowed) else {
            continue;
        };
        let review = pod_review(NAMESPACE, &first.applied(&pod));
        let second = cluster.ask(MUTATE_POD, &review).expect("a verdict on what was mutated");
        assert!(second.allowed && second.patch.is_none(), "{} {:?}: {set}", second.status, second.patch);
        let twin = cluster.ask(VALIDATE_POD, &review).expect("a verdict on what was mutated");
        assert!(twin.allowed, "{}: {set}", twin.status);
    }
}

/// Labels that the selector asks for.
fn labels_of(selector: &Value) -> Value {
    let mut labels = selector["matchLabels"].as_object().cloned().unwrap_or_default();
    for term in selector["matchExpressions"].as_array().into_iter().flatten() {
        let value = match term["operator"].as_str() {
            Some("In") => term["values"][0].clone(),
            Some("Exists") => json!("any"),
            _ => continue,
        };
        if let Some(key) = term["key"].as_str() {
            labels.entry(key).or_insert(value);
        }
    }
    Value::Object(labels)
}
