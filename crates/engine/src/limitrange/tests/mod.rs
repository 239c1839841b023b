//! The tables of the API server's own tests of `LimitRanger`, as data: each row is a limit and an object, with what becomes of it.

mod claims;
mod defaults;
mod flow;
mod hostile;
mod pods;
mod resize;
mod validation;

use admission::Decision;
use serde_json::{Value, json};

use crate::testing::{Cluster, Reply};

/// A `ClusterLimitRange` for all namespaces.
pub fn range(name: &str, limits: Value) -> Value {
    json!({
        "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "ClusterLimitRange",
        "metadata": {"name": name}, "spec": {"limits": limits},
    })
}

/// A cluster with one range of one limit.
pub fn bounded(limit: Value) -> Cluster {
    Cluster::from_objects(&[range("r", json!([limit]))])
}

/// A pod with this spec.
pub fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

/// Requests and limits of one resource, from `100m/1`; `-` is none.
pub fn resources(resource: &str, written: &str) -> Value {
    let (request, limit) = written.split_once('/').unwrap();
    let list = |amount: &str| if amount == "-" { json!({}) } else { json!({resource: amount}) };
    json!({"requests": list(request), "limits": list(limit)})
}

/// A review of an object that is not a new pod.
pub fn review(kind: &str, resource: &str, sub_resource: &str, old: Option<&Value>, new: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "p", "namespace": "shop", "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": resource}, "subResource": sub_resource,
        "object": new, "oldObject": old,
    }})
}

/// Why a pod is refused; empty if it is not.
pub fn said(reply: &Reply) -> String {
    if reply.decision == Decision::Allowed {
        assert_eq!(reply.message, "");
        return String::new();
    }
    assert_eq!(reply.code, Some(403), "{}", reply.message);
    let (_, why) = reply.message.split_once(" \"p\" is forbidden: ").unwrap();
    why.to_owned()
}
