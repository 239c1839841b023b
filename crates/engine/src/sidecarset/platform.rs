//! The operating system of a pod or of a set's containers.

use crate::sidecarset::affinity::Affinity;

/// Labels of nodes that name the operating system, the present one first.
pub(super) const OS_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
/// On Windows nodes alone, where the kubelet puts it.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// The operating system of a pod or of a set's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux, and whatever is not named.
    Linux,
    /// Windows.
    Windows,
}

impl Platform {
    /// That of a pod. A pod counts as one for Windows only when it can run nowhere else: what does not bind it must not keep
    /// a Linux set away.
    ///
    /// `spec.os.name` binds, as the kubelet of another system refuses the pod. So do the node selector and the required node
    /// affinity, which scheduler and kubelet both go by.
    pub fn of_pod<'p>(
        os: Option<&'p str>,
        node_selector: impl Fn(&str) -> Option<&'p str>,
        affinity: Option<&Affinity>,
    ) -> Self {
        let is_windows = match os {
            Some(name) if !name.is_empty() => name == "windows",
            _ => {
                let named = OS_LABELS.into_iter().find_map(&node_selector);
                named.map_or_else(
                    || {
                        node_selector(WINDOWS_BUILD).is_some()
                            || affinity.and_then(Affinity::binds_to) == Some(Self::Windows)
                    },
                    |named| named == "windows",
                )
            }
        };
        if is_windows { Self::Windows } else { Self::Linux }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn platform(os: Option<&str>, selector: Value, terms: Value) -> Platform {
        let affinity = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]},
            ]}}],
        }});
        let affinity = Affinity::read(&affinity.to_string());
        Platform::of_pod(os, |label| selector.get(label)?.as_str(), affinity.as_ref())
    }

    #[test]
    fn a_pod_is_for_windows_only_where_it_can_run_nowhere_else() {
        let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let (os, beta, build) = ("kubernetes.io/os", "beta.kubernetes.io/os", "node.kubernetes.io/windows-build");
        let windows = term(os, "In", &["windows"]);
        for (name, selector, terms, is_windows) in [
            (None, json!({}), json!(null), false),
            (Some("windows"), json!({}), json!([]), true),
            (Some("linux"), json!({os: "windows"}), json!([windows]), false),
            (Some(""), json!({os: "windows"}), json!([]), true),
            (None, json!({beta: "windows"}), json!([]), true),
            (None, json!({os: "linux", build: "10.0"}), json!([]), false),
            (None, json!({build: "10.0.20348"}), json!([]), true),
            (None, json!({"my.example/os": "windows"}), json!([]), false),
            (None, json!({}), json!([windows]), true),
            (None, json!({}), json!([windows, term(build, "Exists", &[])]), true),
            (None, json!({}), json!([windows, term(os, "In", &["linux"])]), false),
            (None, json!({}), json!([windows, {}]), false),
            (None, json!({}), json!([{"matchFields": [{"key": os, "operator": "In", "values": ["windows"]}]}]), false),
            (None, json!({}), json!([term(os, "In", &["windows", "linux"])]), false),
            (None, json!({}), json!([term(os, "In", &[])]), false),
            (None, json!({}), json!([term(os, "NotIn", &["windows"])]), false),
            (None, json!({}), json!([term(os, "NotIn", &["linux"])]), true),
            (None, json!({}), json!([term(os, "Exists", &[])]), false),
            (None, json!({}), json!([term(build, "DoesNotExist", &[])]), false),
            (None, json!({os: "linux"}), json!([windows]), false),
        ] {
            let expected = if is_windows { Platform::Windows } else { Platform::Linux };
            assert_eq!(platform(name, selector.clone(), terms.clone()), expected, "{name:?} {selector} {terms}");
        }
    }

    #[test]
    fn an_affinity_that_cannot_be_read_binds_nothing() {
        assert!(Affinity::read(r#"{"nodeAffinity": "kubernetes.io/os"}"#).is_none());
    }
}
