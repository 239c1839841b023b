//! The tables of Kubernetes' own tests, as data: each row is a configuration, objects of the cluster and a request, with what
//! becomes of it. Rows have the numbers of the tables that they are from.

mod accounts;
mod claims;
mod conflicts;
mod events;
mod hazards;
mod hazards_of_requests;
mod images;
mod limits;
mod modes;
mod namespaces;
mod nodes;
mod owner_references;
mod placed;
mod placement;
mod pod_classes;
mod pods;
mod properties;
mod quotas;
mod services;
mod storage;
mod tolerations;
mod updates;
mod validation;
mod work;

use admission::Decision;
use serde_json::{Value, json};

use crate::testing::{Cluster, Reply, review};

/// An `AdmissionPlugin` with this spec.
pub fn plugin(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// The namespace of pods, with annotations.
pub fn namespace(annotations: Value) -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})
}

/// A pod with this spec and no label that a set selects.
pub fn pod(spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "app", "image": "shop:1"}]},
    });
    json_patch::merge(&mut pod, &json!({"spec": spec}));
    pod
}

/// What becomes of a new pod: changed by the mutating webhook, judged by the validating one. Everything holds that holds for every
/// mutator: the second call changes nothing, and the twin accepts the result.
pub fn admitted(cluster: &Cluster, pod: &Value) -> Result<Value, (Option<u64>, String)> {
    let reply = cluster.mutate(pod);
    if reply.decision == Decision::Denied {
        return Err((reply.code, reply.message));
    }
    let again = cluster.mutate(&reply.pod);
    assert_eq!(again.patch, None, "the second call changes nothing");
    let judged = cluster.validate(&reply.pod);
    if judged.decision == Decision::Denied { Err((judged.code, judged.message)) } else { Ok(reply.pod) }
}

/// What a path says to a change of a pod.
pub fn update(cluster: &Cluster, path: &str, sub_resource: &str, old: &Value, new: &Value) -> Reply {
    let mut review = review("shop", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = old.clone();
    review["request"]["subResource"] = sub_resource.into();
    cluster.ask(path, &review).unwrap()
}
