//! Objects with more labels or annotations than are read of a pod: nothing that a plugin decides by may hide behind a limit.

use admission::Decision;
use serde_json::{Map, Value, json};

use super::{namespace, plugin};
use crate::pod::limits;
use crate::testing::{Cluster, Reply};

/// What is behind the others: `z` sorts last, as the API server has maps.
fn with_many(count: usize, last: &[(&str, &str)]) -> Value {
    let mut map: Map<String, Value> = (0..count).map(|at| (format!("a{at}"), Value::from(""))).collect();
    map.extend(last.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))));
    map.into()
}

fn ask(cluster: &Cluster, path: &str, kind: (&str, &str), operation: &str, object: &Value, old: &Value) -> Reply {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "shop", "namespace": "shop", "operation": operation, "userInfo": {"username": "kim"},
        "kind": {"group": "", "version": "v1", "kind": kind.0}, "resource": {"group": "", "version": "v1", "resource": kind.1},
        "object": object, "oldObject": old, "dryRun": true,
    }});
    cluster.ask(path, &review).unwrap()
}

const CLAIM: (&str, &str) = ("PersistentVolumeClaim", "persistentvolumeclaims");
const PODS: (&str, &str) = ("Pod", "pods");
const NAMESPACE: (&str, &str) = ("Namespace", "namespaces");

#[test]
fn a_claim_names_its_class_behind_any_number_of_annotations() {
    let annotations = with_many(limits::PAIRS + 1, &[("volume.beta.kubernetes.io/storage-class", "gold")]);
    let claim = json!({"metadata": {"name": "c", "annotations": annotations},
        "spec": {"resources": {"requests": {"storage": "1Ti"}}}});
    let limited =
        json!([{"resource": "persistentvolumeclaims", "matchContains": ["gold.storageclass.storage.k8s.io/"]}]);
    let quota = plugin("q", json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}}));
    let default = plugin("d", json!({"plugin": "DefaultStorageClass", "defaultStorageClass": {"class": "silver"}}));
    let cluster = Cluster::from_objects(&[quota, default, namespace(json!({}))]);
    let reply = ask(&cluster, "/validate--v1-pod-resourcequota", CLAIM, "CREATE", &claim, &Value::Null);
    assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(403)), "{}", reply.message);
    let reply =
        ask(&cluster, "/mutate--v1-persistentvolumeclaim-defaultstorageclass", CLAIM, "CREATE", &claim, &Value::Null);
    assert_eq!((reply.decision, reply.patch), (Decision::Allowed, None));
}

#[test]
fn a_claim_with_more_annotations_than_the_api_server_stores_is_refused() {
    let claim = json!({"metadata": {"name": "c", "annotations": {"a": "x".repeat(256 * 1024)}}, "spec": {}});
    let limited =
        json!([{"resource": "persistentvolumeclaims", "matchContains": ["gold.storageclass.storage.k8s.io/"]}]);
    let quota = plugin("q", json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}}));
    let default = plugin("d", json!({"plugin": "DefaultStorageClass", "defaultStorageClass": {"class": "silver"}}));
    let cluster = Cluster::from_objects(&[quota, default, namespace(json!({}))]);
    for path in ["/validate--v1-pod-resourcequota", "/mutate--v1-persistentvolumeclaim-defaultstorageclass"] {
        let reply = ask(&cluster, path, CLAIM, "CREATE", &claim, &Value::Null);
        assert_eq!(reply.code, Some(422), "{path} {}", reply.message);
        assert!(reply.message.contains("metadata.annotations"), "{}", reply.message);
    }
}

fn protected() -> Cluster {
    let lifecycle =
        json!({"protectedNamespaces": ["prod-*"], "protectedLabelSelector": {"matchLabels": {"z": "protected"}}});
    let lifecycle = plugin("l", json!({"plugin": "NamespaceLifecycle", "namespaceLifecycle": lifecycle}));
    let security = plugin(
        "s",
        json!({"plugin": "PodSecurity", "podSecurity": {"defaults": {"enforce": "baseline"}},
            "match": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}}),
    );
    Cluster::from_objects(&[lifecycle, security])
}

#[test]
fn labels_of_a_namespace_are_all_read() {
    const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
    let of = |labels: Value| json!({"metadata": {"name": "shop", "labels": labels}});
    let named = ("kubernetes.io/metadata.name", "shop");
    let many = |more: &[(&str, &str)]| of(with_many(limits::PAIRS + 1, &[&[named], more].concat()));
    let cluster = protected();
    let (mutate, validate) = ("/mutate--v1-namespace-podsecurity", "/validate--v1-namespace-podsecurity");
    let reply = ask(&cluster, mutate, NAMESPACE, "CREATE", &many(&[]), &Value::Null);
    assert_eq!(reply.pod["metadata"]["labels"][ENFORCE], "baseline");
    let reply = ask(&cluster, validate, NAMESPACE, "CREATE", &many(&[]), &Value::Null);
    assert_eq!(reply.decision, Decision::Denied);
    let (baseline, privileged) = (many(&[(ENFORCE, "baseline")]), many(&[(ENFORCE, "privileged")]));
    let reply = ask(&cluster, validate, NAMESPACE, "UPDATE", &privileged, &baseline);
    assert_eq!(reply.decision, Decision::Denied);
    let deletion = "/validate--v1-namespace-namespacelifecycle";
    let reply = ask(&cluster, deletion, NAMESPACE, "DELETE", &Value::Null, &many(&[("z", "protected")]));
    assert_eq!((reply.decision, reply.code), (Decision::Denied, Some(403)), "{}", reply.message);
}

#[test]
fn a_namespace_with_more_labels_than_can_be_stored_is_neither_written_nor_deleted() {
    let cluster = protected();
    let labels = with_many(limits::STORABLE_PAIRS + 1, &[]);
    let many = json!({"metadata": {"name": "shop", "labels": labels}});
    for (path, operation, new, old) in [
        ("/validate--v1-namespace-podsecurity", "CREATE", &many, &Value::Null),
        ("/validate--v1-namespace-podsecurity", "UPDATE", &many, &json!({"metadata": {"name": "shop"}})),
        ("/validate--v1-namespace-namespacelifecycle", "DELETE", &Value::Null, &many),
    ] {
        let reply = ask(&cluster, path, NAMESPACE, operation, new, old);
        assert_eq!(reply.code, Some(422), "{path} {operation} {}", reply.message);
    }
    let reply = ask(&cluster, "/validate--v1-namespace-podsecurity", NAMESPACE, "UPDATE", &many, &many);
    assert_eq!(reply.decision, Decision::Allowed, "its labels are as they were");
}

#[test]
fn what_is_asked_for_as_a_whole_is_limited_where_somebody_limits_it() {
    let names = |count: usize| (0..count).map(|at| (format!("x{at}"), Value::from("1"))).collect::<Map<_, _>>();
    let limited = json!([{"resource": "persistentvolumeclaims", "matchContains": ["storage"]}, {"resource": "pods", "matchContains": ["cpu"]}]);
    let quota = plugin("q", json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}}));
    let range = json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "ClusterLimitRange", "metadata": {"name": "r"},
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, {"type": "Pod", "max": {"cpu": "4"}}]}});
    let cluster = Cluster::from_objects(&[quota, range, namespace(json!({}))]);
    let pod = |more: Value| {
        let mut spec = json!({"containers": [{"name": "app"}]});
        json_patch::merge(&mut spec, &more);
        json!({"metadata": {"name": "p"}, "spec": spec})
    };
    let many = names(limits::RESOURCES + 1);
    let requests = json!({"resources": {"requests": many}});
    let claim = json!({"metadata": {"name": "c"}, "spec": requests});
    for (path, kind, object, field) in [
        ("/validate--v1-pod-resourcequota", CLAIM, &claim, "spec.resources"),
        ("/validate--v1-persistentvolumeclaim-limitranger", CLAIM, &claim, "spec.resources"),
        ("/validate--v1-pod-resourcequota", PODS, &pod(requests.clone()), "spec.resources"),
        ("/validate--v1-pod-resourcequota", PODS, &pod(json!({"overhead": many})), "spec.overhead"),
        ("/validate--v1-pod", PODS, &pod(requests.clone()), "spec.resources"),
    ] {
        let reply = ask(&cluster, path, kind, "CREATE", object, &Value::Null);
        assert_eq!(reply.code, Some(422), "{path} {}", reply.message);
        assert!(reply.message.contains(&format!("{field} holds more than 250 values")), "{}", reply.message);
    }
    // A controller sets the class of a stored claim, where a default appears later.
    let mut classed = claim.clone();
    classed["spec"]["storageClassName"] = "fast".into();
    let mut more = classed.clone();
    more["spec"]["resources"]["requests"]["storage"] = "1Gi".into();
    for path in ["/validate--v1-pod-resourcequota", "/validate--v1-persistentvolumeclaim-limitranger"] {
        let kept = ask(&cluster, path, CLAIM, "UPDATE", &classed, &claim);
        assert_eq!(kept.decision, Decision::Allowed, "{path}: {}", kept.message);
        assert_eq!(ask(&cluster, path, CLAIM, "UPDATE", &more, &claim).code, Some(422), "{path}");
    }
    let class =
        plugin("d", json!({"plugin": "DefaultStorageClass", "defaultStorageClass": {"storageClassName": "fast"}}));
    let cluster = Cluster::from_objects(&[class, namespace(json!({}))]);
    let reply =
        ask(&cluster, "/mutate--v1-persistentvolumeclaim-defaultstorageclass", CLAIM, "CREATE", &claim, &Value::Null);
    assert_eq!(
        reply.pod["spec"]["storageClassName"], "fast",
        "what it asks for is not read for its class: {}",
        reply.message
    );
    let nobody = Cluster::from_objects(&[namespace(json!({}))]);
    let path = "/validate--v1-persistentvolumeclaim-limitranger";
    assert_eq!(ask(&nobody, path, CLAIM, "CREATE", &claim, &Value::Null).decision, Decision::Allowed);
}
