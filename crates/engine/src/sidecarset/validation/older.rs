//! Values that are legal and that the API server at hand is too old for: it would refuse the pods that carry the set.
//!
//! By the feature gate that is on from a version, in `pkg/features/kube_features.go` of Kubernetes. `docs/support-matrix.md` has the
//! list for people, and `tests/legality/versions.rs` holds it against older API servers.

use admission::field::Path;

use super::node::Node;

/// Warnings that are listed one by one.
const TOLD: usize = 20;

/// Warns of what an API server of this minor version refuses.
pub fn warn(spec: &Node<'_>, minor: u32, warnings: &mut Vec<String>) {
    let mut refused = RefusedFields { minor, warnings: Vec::new(), left_out: 0 };
    for (list, is_init) in [("initContainers", true), ("containers", false)] {
        for container in spec.child(list).items() {
            look_at_variables(&container, &mut refused);
            check_hooks(&container, &mut refused);
            look_at_restarts(&container, is_init, &mut refused);
        }
    }
    for entry in spec.child("appContainers").items() {
        look_at_variables(&entry, &mut refused);
    }
    warnings.append(&mut refused.warnings);
    if refused.left_out > 0 {
        warnings.push(format!("{} more values that Kubernetes 1.{minor} refuses are not listed", refused.left_out));
    }
}

struct RefusedFields {
    minor: u32,
    warnings: Vec<String>,
    left_out: usize,
}

impl RefusedFields {
    /// Notes what API servers before the version refuse.
    fn before(&mut self, since: u32, path: &Path, what: &str) {
        let minor = self.minor;
        self.warn(since, || {
            format!(
                "{path}: the API server refuses pods with {what}: it is Kubernetes 1.{minor}, and 1.{since} is the first that takes them"
            )
        });
    }

    /// Warns where the API server is older than the version.
    fn warn(&mut self, since: u32, text: impl FnOnce() -> String) {
        if self.minor >= since {
            return;
        }
        if self.warnings.len() == TOLD {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        self.warnings.push(text());
    }
}

fn look_at_variables(container: &Node<'_>, refused: &mut RefusedFields) {
    for variable in container.child("env").items() {
        if !is_strict_name(variable.text("name")) {
            // RelaxedEnvironmentVariableValidation
            refused.before(32, &variable.path.child("name"), "variables of such a name");
        }
        if let Some(file) = variable.child("valueFrom").get("fileKeyRef") {
            // EnvFiles: the field is dropped before, and then the variable has no source.
            refused.before(35, &file.path, "variables from a file");
        }
    }
    for source in container.child("envFrom").items() {
        if !is_strict_name(source.text("prefix")) {
            refused.before(32, &source.path.child("prefix"), "such a prefix of variables");
        }
    }
}

/// `IsEnvVarName` in `k8s.io/apimachinery/pkg/util/validation`, as far as it is stricter than what came after it. What is empty is
/// checked elsewhere.
fn is_strict_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'.' | b'_');
    let mut bytes = name.bytes();
    bytes.next().is_none_or(is_letter) && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn check_hooks(container: &Node<'_>, refused: &mut RefusedFields) {
    for hook in ["postStart", "preStop"] {
        if let Some(sleep) = container.child("lifecycle").child(hook).get("sleep")
            && sleep.number("seconds").unwrap_or_default() == 0
        {
            // PodLifecycleSleepActionAllowZero
            refused.before(33, &sleep.path.child("seconds"), "a sleep of 0 seconds");
        }
    }
}

fn look_at_restarts(container: &Node<'_>, is_init: bool, refused: &mut RefusedFields) {
    let path = container.path.child("restartPolicy");
    // ContainerRestartRules. 1.34 does not refuse the field but drops it.
    match container.text("restartPolicy") {
        _ if refused.minor == 34 => {}
        "" => {}
        "Always" if is_init => {
            // SidecarContainers
            let minor = refused.minor;
            refused.warn(29, || {
                format!(
                    "{path}: the API server drops the field: it is Kubernetes 1.{minor}, and 1.29 is the first that has native sidecars \
                     by default; without it the pod waits until the container ends"
                )
            });
        }
        _ if is_init => refused.before(35, &path, "another restartPolicy of an init container than Always"),
        _ => refused.before(35, &path, "a restartPolicy of a container that is no init container"),
    }
    for rule in container.child("restartPolicyRules").items() {
        // RestartAllContainersOnContainerExits. API servers before 1.35 drop the rules as a whole.
        if rule.text("action") == "RestartAllContainers" && refused.minor >= 35 {
            refused.before(36, &rule.path.child("action"), "the action RestartAllContainers");
        }
    }
}
