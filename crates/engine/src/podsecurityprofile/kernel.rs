//! Sysctls, kinds of `/proc`, and classes of runtimes.

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

use super::api::ProfileSpec;
use super::compiled::{Least, bounded};
use super::context::{Context, text};
use super::faults::ProfileFaults;

/// Sysctls that touch nothing but the pod, as in 1.24.
const SAFE: [&str; 5] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_syncookies",
];
/// The longest name of a sysctl.
const SYSCTL_MAX_BYTES: usize = 253;
const DEFAULT_PROC: &str = "Default";
/// The word for any.
const ANY: &str = "*";

/// A name, or the beginning of some and a star.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(String);

impl Pattern {
    fn is_pattern(&self) -> bool {
        self.0.ends_with('*')
    }

    /// What names begin with, or are.
    fn beginning(&self) -> &str {
        self.0.strip_suffix('*').unwrap_or(&self.0)
    }

    fn matches(&self, name: &str) -> bool {
        if self.is_pattern() { name.starts_with(self.beginning()) } else { name == self.0 }
    }
}

/// Which sysctls pods may set.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Sysctls {
    unsafe_ones: Vec<Pattern>,
    forbidden: Vec<Pattern>,
}

impl Sysctls {
    /// What a profile says, and what is wrong with it.
    pub fn read(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let (of_unsafe, of_forbidden) = (path.child("allowedUnsafeSysctls"), path.child("forbiddenSysctls"));
        let unsafe_ones = patterns(&spec.allowed_unsafe_sysctls, &of_unsafe, errors);
        let forbidden = patterns(&spec.forbidden_sysctls, &of_forbidden, errors);
        for (index, one) in unsafe_ones.iter().enumerate() {
            for (other_index, other) in forbidden.iter().enumerate() {
                if (other.is_pattern() || !one.is_pattern()) && other.matches(one.beginning()) {
                    let detail = format!("sysctl overlaps with {}", other.0);
                    errors.push(Error::invalid(&of_unsafe.index(index), &one.0, detail));
                } else if one.is_pattern() && one.matches(other.beginning()) {
                    let detail = format!("sysctl overlaps with {}", one.0);
                    errors.push(Error::invalid(&of_forbidden.index(other_index), &other.0, detail));
                }
            }
        }
        Self { unsafe_ones, forbidden }
    }

    /// Checks the sysctls of a pod.
    pub fn check(&self, pod: &Context<'_>, faults: &mut ProfileFaults) {
        let list = pod.get("sysctls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, sysctl) in list.iter().enumerate() {
            let name = text(Some(sysctl), "name").unwrap_or_default();
            let is_one_of = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
            let why = if is_one_of(&self.forbidden) {
                "sysctl"
            } else if SAFE.contains(&name) || is_one_of(&self.unsafe_ones) {
                continue;
            } else {
                "unsafe sysctl"
            };
            faults.add(|| {
                let path = Path::new("pod").child("spec").child("securityContext").child("sysctls").index(index);
                Error::forbidden(&path, format!("{why} {} is not allowed", quote(name)))
            });
        }
    }
}

fn patterns(list: &[String], path: &Path, errors: &mut ErrorList) -> Vec<Pattern> {
    let list = bounded(list, path, Least::None, errors);
    for (index, one) in list.iter().enumerate() {
        if one.is_empty() {
            errors.push(Error::invalid(&path.index(index), one, "empty sysctl not allowed"));
        } else if !is_pattern(one) {
            let detail = format!(
                "must have at most {SYSCTL_MAX_BYTES} characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
            );
            errors.push(Error::invalid(&path.index(index), one, detail));
        }
    }
    if list.len() > 1 && list.iter().any(|one| one.starts_with('*')) {
        let detail = "if '*' is present, must not specify other sysctls";
        errors.push(Error::forbidden(&path.child("items"), detail));
    }
    list.iter().cloned().map(Pattern).collect()
}

/// Segments between dots or slashes, of which the last may end with a star.
fn is_pattern(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_segment = |segment: &str| {
        segment.starts_with(is_inner)
            && segment.ends_with(is_inner)
            && segment.chars().all(|c| is_inner(c) || matches!(c, '-' | '_'))
    };
    let mut segments = text.split(['.', '/']);
    let last = segments.next_back().unwrap_or_default();
    let is_last = match last.strip_suffix('*') {
        Some("") => true,
        Some(rest) => rest.starts_with(is_inner) && rest.chars().all(|c| is_inner(c) || matches!(c, '-' | '_')),
        None => is_segment(last),
    };
    text.len() <= SYSCTL_MAX_BYTES && is_last && segments.all(is_segment)
}

/// Which kinds of `/proc` containers may have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcMounts(BTreeSet<String>);

impl ProcMounts {
    /// What a profile says, and what is wrong with it.
    pub fn read(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let (list, words) = (&spec.allowed_proc_mount_types, [DEFAULT_PROC, "Unmasked"]);
        for one in bounded(list, path, Least::None, errors).iter().filter(|one| !words.contains(&one.as_str())) {
            errors.push(Error::not_supported(path, one, &words));
        }
        let default = list.is_empty().then(|| DEFAULT_PROC.to_owned());
        Self(list.iter().cloned().chain(default).collect())
    }

    /// Checks that of a container.
    pub fn check(&self, container: &Context<'_>, path: &Path, faults: &mut ProfileFaults) {
        let found = container.get("procMount").and_then(Value::as_str).unwrap_or(DEFAULT_PROC);
        if !self.0.contains(found) {
            faults.add(|| Error::invalid(&path.child("procMount"), found, "ProcMountType is not allowed"));
        }
    }
}

/// Which classes of runtimes pods may have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RuntimeClasses {
    allowed: BTreeSet<String>,
    /// The class of pods that name none.
    pub default: Option<String>,
}

impl RuntimeClasses {
    /// What a profile says, and what is wrong with it; none where it says nothing.
    pub fn read(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Option<Self> {
        let strategy = spec.runtime_class.as_ref()?;
        let (names, default) = (&strategy.allowed_runtime_class_names, &strategy.default_runtime_class_name);
        let of_names = path.child("allowedRuntimeClassNames");
        bounded(names, &of_names, Least::OneCharacter, errors);
        let allowed: BTreeSet<String> = names.iter().cloned().collect();
        if allowed.contains(ANY) && names.len() > 1 {
            let detail = "if '*' is present, must not specify other RuntimeClass names";
            errors.push(Error::invalid(&of_names, Value::from(names.clone()), detail));
        }
        if let Some(default) = default
            && !allowed.contains(ANY)
            && !allowed.contains(default)
        {
            let detail = "default must be included in allowedRuntimeClassNames";
            errors.push(Error::required(&of_names, detail));
        }
        Some(Self { allowed, default: default.clone() })
    }

    /// Checks that of a pod.
    pub fn check(&self, found: Option<&str>, faults: &mut ProfileFaults) {
        if let Some(found) = found
            && !self.allowed.contains(ANY)
            && !self.allowed.contains(found)
        {
            faults.add(|| Error::invalid(&Path::new("spec").child("runtimeClassName"), found, ""));
        }
    }
}
