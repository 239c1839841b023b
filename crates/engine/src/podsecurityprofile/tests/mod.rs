//! The tables of the API server's own tests of `PodSecurityPolicy` as data, and what is special here.

mod flow;
mod hostile;
mod properties;
mod rows;
mod validation;

use admission::Known;
use admission::question::Question;
use serde_json::{Value, json};

use crate::testing::{Cluster, Reply, review};

/// What a profile says that allows any identity and any volume.
pub fn open() -> Value {
    let any = json!({"rule": "RunAsAny"});
    json!({"seLinux": any, "runAsUser": any, "supplementalGroups": any, "fsGroup": any, "volumes": ["*"]})
}

/// A profile that says more.
pub fn profile(name: &str, more: &Value) -> Value {
    let mut spec = open();
    json_patch::merge(&mut spec, more);
    json!({
        "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "PodSecurityProfile", "metadata": {"name": name}, "spec": spec,
    })
}

/// A pod with one container, and more of a spec.
pub fn pod(spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "runner", "containers": [{"name": "c", "image": "i"}]},
    });
    if spec.is_object() {
        json_patch::merge(&mut pod, &json!({ "spec": spec }));
    }
    pod
}

/// Who asks, in reviews of these tests.
pub fn by_ann(namespace: &str, pod: &Value) -> Value {
    let mut review = review(namespace, pod);
    review["request"]["userInfo"] = json!({"username": "ann", "groups": ["system:authenticated"]});
    review
}

/// The answers of an API server where who may use what is written as `ann:a`, or as `runner:a` for the service account.
pub fn rights(may: &'static [&'static str]) -> impl Fn(&Question) -> Known {
    move |question| {
        let Question::Access(access) = question else { panic!("{question:?}") };
        assert_eq!((access.verb.as_str(), access.group.as_str()), ("use", "policy.outrider.dev"));
        assert_eq!((access.resource.as_str(), access.namespace.as_str()), ("podsecurityprofiles", "shop"));
        let user = access.user.rsplit(':').next().unwrap();
        let groups: &[&str] = match access.user.as_str() {
            "ann" => &["system:authenticated"],
            "system:serviceaccount:shop:runner" => &["system:serviceaccounts", "system:serviceaccounts:shop"],
            other => panic!("{other}"),
        };
        assert_eq!(access.groups, groups);
        let right = format!("{user}:{}", access.name);
        Known::Allowed(may.contains(&right.as_str()) || may.contains(&"*"), String::new())
    }
}

/// What becomes of a new pod.
pub fn mutate(cluster: &Cluster, pod: &Value, may: &'static [&'static str]) -> Reply {
    cluster.ask_with("/mutate--v1-pod", &by_ann("shop", pod), rights(may)).unwrap().0
}

/// What is said of a pod that is about to be stored.
pub fn validate(cluster: &Cluster, pod: &Value, may: &'static [&'static str]) -> Reply {
    cluster.ask_with("/validate--v1-pod", &by_ann("shop", pod), rights(may)).unwrap().0
}

/// The profile in a pod's annotation.
pub fn chosen(pod: &Value) -> &str {
    pod["metadata"]["annotations"]["kubernetes.io/psp"].as_str().unwrap_or_default()
}
