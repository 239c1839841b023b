//! The operating system of a pod or of a set's containers.

use serde::Deserialize;

const OS_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
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
                    || node_selector(WINDOWS_BUILD).is_some() || affinity.is_some_and(Affinity::requires_windows),
                    |named| named == "windows",
                )
            }
        };
        if is_windows { Self::Windows } else { Self::Linux }
    }
}

/// `spec.affinity` of a pod, as far as it tells the operating system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: Option<Vec<Term>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

impl Affinity {
    /// Reads the affinity of a pod from JSON. What cannot be read binds nothing.
    pub fn read(json: &str) -> Option<Self> {
        // Most affinities are about other things, and a search is cheaper than reading. Escapes can spell a key in many ways.
        let may_tell = OS_LABELS.iter().any(|key| json.contains(key)) || json.contains(WINDOWS_BUILD);
        if may_tell || json.contains('\\') { serde_json::from_str(json).ok() } else { None }
    }

    /// One of the terms is enough to place the pod, so all of them have to ask for Windows.
    fn requires_windows(&self) -> bool {
        let required = self.node_affinity.as_ref();
        let required =
            required.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        let terms = required.and_then(|selector| selector.node_selector_terms.as_deref()).unwrap_or_default();
        !terms.is_empty() && terms.iter().all(Term::requires_windows)
    }
}

impl Term {
    fn requires_windows(&self) -> bool {
        self.match_expressions.iter().flatten().any(Expression::requires_windows)
    }
}

impl Expression {
    fn requires_windows(&self) -> bool {
        let values = self.values.as_deref().unwrap_or_default();
        match (self.key.as_str(), self.operator.as_str()) {
            (WINDOWS_BUILD, "In" | "Exists" | "Gt" | "Lt") => true,
            (key, "In") if OS_LABELS.contains(&key) => !values.is_empty() && values.iter().all(|it| it == "windows"),
            // Every kubelet puts the label on its node, and there are no other systems.
            (key, "NotIn") if key == OS_LABELS[0] => values.iter().any(|it| it == "linux"),
            _ => false,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests {
    use serde_json::{Value, json};

    use super::{Affinity, Platform};

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
