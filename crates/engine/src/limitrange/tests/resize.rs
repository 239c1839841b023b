//! Pods that are resized (4.8).

use serde_json::{Value, json};

use super::{bounded, pod, review, said};
use crate::testing::{Cluster, Reply};

fn asked(cluster: &Cluster, path: &str, old: &Value, new: &Value) -> Reply {
    cluster.ask(path, &review("Pod", "pods", "resize", Some(old), new)).unwrap()
}

fn of_limit(limit: &str) -> Value {
    pod(json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": limit}}}]}))
}

#[test]
fn a_resize_is_judged() {
    let cluster = bounded(json!({"type": "Pod", "max": {"cpu": "2"}}));
    let judged = |old: &Value, new: &Value| said(&asked(&cluster, "/validate--v1-pod-resize-limitranger", old, new));
    let refused = "maximum cpu usage per Pod is 2, but limit is 3";
    assert_eq!(judged(&of_limit("1"), &of_limit("2")), "");
    assert_eq!(judged(&of_limit("1"), &of_limit("3")), refused);
    let mut leaving = of_limit("1");
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(judged(&leaving, &of_limit("3")), "");
}

#[test]
fn a_resize_fills_in_what_can_be_resized_and_writes_no_annotation() {
    let cluster = bounded(json!({
        "type": "Container", "default": {"cpu": "2", "ephemeral-storage": "1Gi"},
        "defaultRequest": {"cpu": "1", "ephemeral-storage": "1Gi"},
    }));
    let spec = json!({
        "containers": [{"name": "c", "resources": {"requests": {"memory": "1Mi"}}}],
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
    });
    let old = pod(spec);
    let reply = asked(&cluster, "/mutate--v1-pod-resize-limitranger", &old, &old);
    assert_eq!(
        reply.pod["spec"]["containers"][0]["resources"],
        json!({"requests": {"memory": "1Mi", "cpu": "1"}, "limits": {"cpu": "2"}})
    );
    assert_eq!(reply.pod["spec"]["initContainers"][0], json!({"name": "i"}));
    assert_eq!(
        reply.pod["spec"]["initContainers"][1]["resources"],
        json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    );
    assert_eq!(reply.pod["metadata"], old["metadata"]);
    assert_eq!(reply.audit["limits"], "r=PluginChanged");
    let again = asked(&cluster, "/mutate--v1-pod-resize-limitranger", &old, &reply.pod);
    assert_eq!(again.patch, None, "the second call changes nothing");
}
