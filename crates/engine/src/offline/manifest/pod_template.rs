//! Where the kinds that make pods keep their pod template.

use super::group;

const OUR_BATCH: &str = concat!("batch.", api_domain!());

/// The JSON pointer of what holds `metadata` and `spec` of the pods that an object makes: the object itself (an empty
/// pointer) for a Pod. `None` for kinds that make no pods, and for those that are not known here.
///
/// `api_version` may be a whole apiVersion (`apps/v1`, any version); see [`group`] for its group.
pub fn pod_template(api_version: &str, kind: &str) -> Option<&'static str> {
    match (group(api_version), kind) {
        ("", "Pod") => Some(""),
        ("", "PodTemplate") => Some("/template"),
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        // Removed from Kubernetes in 1.16, and still in old charts.
        | ("extensions", "Deployment" | "ReplicaSet" | "DaemonSet")
        | ("batch", "Job")
        // OpenKruise's workloads, and the Rollout of Argo, have the shape of their models in `apps`.
        | ("apps.kruise.io", "CloneSet" | "StatefulSet" | "DaemonSet")
        | ("argoproj.io", "Rollout") => Some("/spec/template"),
        ("batch" | OUR_BATCH, "CronJob") => Some("/spec/jobTemplate/spec/template"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_kind_has_its_template() {
        let table = [
            ("v1", "Pod", Some("")),
            ("v1", "PodTemplate", Some("/template")),
            ("v1", "ReplicationController", Some("/spec/template")),
            ("apps/v1", "Deployment", Some("/spec/template")),
            ("apps/v1", "ReplicaSet", Some("/spec/template")),
            ("apps/v1", "StatefulSet", Some("/spec/template")),
            ("apps/v1", "DaemonSet", Some("/spec/template")),
            ("extensions/v1beta1", "Deployment", Some("/spec/template")),
            ("batch/v1", "Job", Some("/spec/template")),
            ("batch/v1beta1", "CronJob", Some("/spec/jobTemplate/spec/template")),
            ("batch/v1", "CronJob", Some("/spec/jobTemplate/spec/template")),
            ("batch.outrider.dev/v2", "CronJob", Some("/spec/jobTemplate/spec/template")),
            ("apps.kruise.io/v1alpha1", "CloneSet", Some("/spec/template")),
            ("apps.kruise.io/v1beta1", "StatefulSet", Some("/spec/template")),
            ("apps.kruise.io/v1alpha1", "DaemonSet", Some("/spec/template")),
            ("argoproj.io/v1alpha1", "Rollout", Some("/spec/template")),
            ("v1", "ConfigMap", None),
            ("v1", "Deployment", None),
            ("example.com/v1", "Pod", None),
            ("apps.outrider.dev/v1alpha1", "SidecarSet", None),
        ];
        for (api_version, kind, expected) in table {
            assert_eq!(pod_template(api_version, kind), expected, "{api_version} {kind}");
        }
    }
}
