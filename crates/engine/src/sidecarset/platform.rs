//! The operating system of a pod or of a set's containers.

use serde_json::Value;

use crate::sidecarset::affinity::Affinity;
use crate::sidecarset::api::RawObject;

/// Labels of nodes that name the operating system, the present one first.
pub(super) const OS_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
/// Labels of nodes by which a pod is bound to an operating system.
pub const PLATFORM_LABELS: [&str; 3] = [OS_LABELS[0], OS_LABELS[1], WINDOWS_BUILD];
/// On Windows nodes alone, where the kubelet puts it.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// The operating system of a pod or of a set's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux, and whatever is not named.
    Linux,
    /// Windows: a pod names it, a container has `windowsOptions`.
    Windows,
}

impl Platform {
    /// The one on which a pod can run, as far as it says so: nothing for a pod that names none, which may run on either.
    ///
    /// `spec.os.name` binds, as the kubelet of another system refuses the pod. So do the node selector and the required node
    /// affinity, which scheduler and kubelet both apply. `node_selector` has the labels of the node too, where that is known.
    pub fn of_pod<'p>(
        os: Option<&'p str>,
        node_selector: impl Fn(&str) -> Option<&'p str>,
        affinity: impl FnOnce() -> Option<Affinity>,
    ) -> Option<Self> {
        let of = |name: &str| if name == "windows" { Self::Windows } else { Self::Linux };
        let os = os.filter(|name| !name.is_empty()).or_else(|| OS_LABELS.into_iter().find_map(&node_selector));
        match os {
            Some(name) => Some(of(name)),
            None if node_selector(WINDOWS_BUILD).is_some() => Some(Self::Windows),
            None => affinity().and_then(Affinity::binds_to),
        }
    }
}

/// Whether a container runs on Windows, as far as it says so: there is no field for it but options that Linux has not.
pub fn is_for_windows(container: &RawObject) -> bool {
    let context = container.get("securityContext");
    context.and_then(|context| context.get("windowsOptions")).is_some_and(Value::is_object)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests {
    use serde_json::json;

    use super::*;

    fn platform(os: Option<&str>, selector: Value, terms: Value) -> Option<Platform> {
        let affinity = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]},
            ]}}],
        }});
        let affinity = Affinity::read(&affinity.to_string());
        Platform::of_pod(os, |label| selector.get(label)?.as_str(), || affinity)
    }

    #[test]
    fn a_pod_is_bound_to_an_operating_system_only_where_it_can_run_nowhere_else() {
        let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let (os, beta, build) = ("kubernetes.io/os", "beta.kubernetes.io/os", "node.kubernetes.io/windows-build");
        let windows = term(os, "In", &["windows"]);
        for (name, selector, terms, expected) in [
            (None, json!({}), json!(null), None),
            (Some("windows"), json!({}), json!([]), Some(Platform::Windows)),
            (Some("linux"), json!({os: "windows"}), json!([windows]), Some(Platform::Linux)),
            (Some(""), json!({os: "windows"}), json!([]), Some(Platform::Windows)),
            (None, json!({beta: "windows"}), json!([]), Some(Platform::Windows)),
            (None, json!({os: "linux", build: "10.0"}), json!([]), Some(Platform::Linux)),
            (None, json!({build: "10.0.20348"}), json!([]), Some(Platform::Windows)),
            (None, json!({"my.example/os": "windows"}), json!([]), None),
            (None, json!({}), json!([windows]), Some(Platform::Windows)),
            (None, json!({}), json!([windows, term(build, "Exists", &[])]), Some(Platform::Windows)),
            (None, json!({}), json!([windows, term(os, "In", &["linux"])]), None),
            (None, json!({}), json!([windows, {}]), None),
            (None, json!({}), json!([{"matchFields": [{"key": os, "operator": "In", "values": ["windows"]}]}]), None),
            (None, json!({}), json!([term(os, "In", &["windows", "linux"])]), None),
            (None, json!({}), json!([term(os, "In", &[])]), None),
            (None, json!({}), json!([term(os, "NotIn", &["windows"])]), Some(Platform::Linux)),
            (None, json!({}), json!([term(os, "NotIn", &["linux"])]), Some(Platform::Windows)),
            (None, json!({}), json!([term(os, "Exists", &[])]), None),
            (None, json!({}), json!([term(build, "DoesNotExist", &[])]), None),
            (
                None,
                json!({}),
                json!([term(os, "In", &["linux"]), term(os, "NotIn", &["windows"])]),
                Some(Platform::Linux),
            ),
            (None, json!({}), json!([term(os, "In", &["linux"]), {}]), None),
            (None, json!({}), json!([term(beta, "NotIn", &["windows"])]), None),
            (None, json!({os: "linux"}), json!([windows]), Some(Platform::Linux)),
        ] {
            assert_eq!(platform(name, selector.clone(), terms.clone()), expected, "{name:?} {selector} {terms}");
        }
    }

    #[test]
    fn an_affinity_that_cannot_be_read_binds_nothing() {
        assert!(Affinity::read(r#"{"nodeAffinity": "kubernetes.io/os"}"#).is_none());
    }
}
