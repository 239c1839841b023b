//! What a profile fills in of a pod, and what it does not allow of the result (`MutatePod` and `ValidatePod` of
//! k8s.io/kubernetes/pkg/security/podsecuritypolicy).
//!
//! Linear in the pod: what a profile lists has at most [`MAX_ITEMS`](super::compiled::MAX_ITEMS) items a list, and no list of a pod is
//! gone through for each item of another one.

use admission::field::{Error, Path};
use admission::patch::PatchError;
use admission::{Deadline, PatchBuilder, Unserved};
use serde_json::Value;

use super::compiled::CompiledProfile;
use super::context::{Context, effective};
use super::faults::{NIL, ProfileFaults};
use super::pod::{Container, Pod};
use super::profiles::APP_ARMOR_ANNOTATION;
use super::selinux;
use crate::plugins::work;

/// Values that are filled in at most: as many as a whole pod may have.
const MAX_VALUES: usize = 40_000;

/// What is filled in: the place of each value, and the value.
#[derive(Debug, Default)]
pub struct FilledIn {
    values: Vec<(String, Value)>,
    size: usize,
}

impl FilledIn {
    /// Whether nothing is.
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether there is no room for it in a pod.
    pub const fn is_too_large(&self) -> bool {
        self.size > MAX_VALUES
    }

    fn add(&mut self, place: &str, filled: Vec<(&'static str, Value)>) {
        for (key, value) in filled {
            self.size += 1 + count(&value);
            if !self.is_too_large() {
                self.values.push((format!("{place}/{key}"), value));
            }
        }
    }

    /// Writes it into a pod.
    ///
    /// # Errors
    /// When the pod has something else in a place.
    pub fn apply(self, pod: &mut PatchBuilder) -> Result<(), PatchError> {
        self.values.into_iter().try_for_each(|(place, value)| pod.set(&place, value))
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|item| 1 + count(item)).sum(),
        Value::Object(map) => map.values().map(|item| 1 + count(item)).sum(),
        _ => 0,
    }
}

/// What a profile makes of a pod.
#[derive(Debug, Default)]
pub struct Judged {
    /// What it fills in.
    pub change: FilledIn,
    /// What it does not allow.
    pub faults: ProfileFaults,
}

/// Judges a pod by a profile.
///
/// # Errors
/// [`Unserved::OutOfTime`] when the deadline passes.
pub fn judge(profile: &CompiledProfile, pod: &Pod<'_>, deadline: Deadline<'_>) -> Result<Judged, Unserved> {
    let (mut context, mut judged) = (pod.context(), Judged::default());
    let class = fill_pod(profile, pod, &mut context);
    check_pod(profile, pod, &context, class.or_else(|| pod.text("runtimeClassName")), &mut judged.faults);
    for container in pod.containers() {
        deadline.check()?;
        work::done(1);
        let mut own = container.context();
        if !container.is_of_set {
            fill_container(profile, pod, &container, &mut own, &context);
        }
        check_container(profile, &container, &own, &context, &mut judged.faults);
        if judged.faults.is_empty() {
            judged.change.add(&container.pointer(), own.into_filled());
        }
    }
    if judged.faults.is_empty() {
        judged.change.add("/spec/securityContext", context.into_filled());
        let class = class.map(|class| ("runtimeClassName", class.into()));
        judged.change.add("/spec", class.into_iter().collect());
    }
    Ok(judged)
}

/// Fills in what a pod leaves open. Returns the class of runtimes that it is to get.
fn fill_pod<'p>(profile: &'p CompiledProfile, pod: &Pod<'_>, context: &mut Context<'_>) -> Option<&'p str> {
    if context.get("supplementalGroups").is_none()
        && let Some(group) = profile.supplemental_groups.default()
    {
        context.fill("supplementalGroups", vec![group]);
    }
    if context.get("fsGroup").is_none()
        && let Some(group) = profile.fs_group.default()
    {
        context.fill("fsGroup", group);
    }
    if let Some(label) = &profile.se_linux
        && context.get("seLinuxOptions").is_none()
    {
        context.fill("seLinuxOptions", selinux::as_value(label));
    }
    profile.seccomp.fill(context);
    let default = profile.runtime_class.as_ref().and_then(|classes| classes.default.as_deref());
    default.filter(|_| pod.text("runtimeClassName").is_none())
}

fn check_pod(
    profile: &CompiledProfile,
    pod: &Pod<'_>,
    context: &Context<'_>,
    class: Option<&str>,
    faults: &mut ProfileFaults,
) {
    let path = Path::new("spec").child("securityContext");
    let group = context.get("fsGroup").and_then(Value::as_i64);
    profile.fs_group.check_groups(group.as_ref().map(std::slice::from_ref), &path.child("fsGroup"), faults);
    let groups = context.get("supplementalGroups").and_then(Value::as_array);
    let groups: Option<Vec<i64>> = groups.map(|groups| groups.iter().filter_map(Value::as_i64).collect());
    profile.supplemental_groups.check_groups(groups.as_deref(), &path.child("supplementalGroups"), faults);
    profile.seccomp.check(context.get("seccompProfile"), &path, faults);
    if let Some(label) = &profile.se_linux {
        selinux::check(label, context.get("seLinuxOptions"), &path.child("seLinuxOptions"), faults);
    }
    for (field, is_allowed, detail) in [
        ("hostNetwork", profile.host_network, "Host network is not allowed to be used"),
        ("hostPID", profile.host_pid, "Host PID is not allowed to be used"),
        ("hostIPC", profile.host_ipc, "Host IPC is not allowed to be used"),
    ] {
        if !is_allowed && pod.has(field) {
            faults.add(|| Error::invalid(&path.child(field), true, detail));
        }
    }
    profile.sysctls.check(context, faults);
    profile.volumes.check(pod, faults);
    if let Some(classes) = &profile.runtime_class {
        classes.check(class, faults);
    }
}

fn fill_container(
    profile: &CompiledProfile,
    pod: &Pod<'_>,
    container: &Container<'_>,
    own: &mut Context<'_>,
    context: &Context<'_>,
) {
    profile.run_as_user.fill_user(own, context);
    if effective(own, context, "runAsGroup").is_none()
        && let Some(group) = profile.run_as_group.default()
    {
        own.fill("runAsGroup", group);
    }
    if let Some(label) = &profile.se_linux
        && effective(own, context, "seLinuxOptions").is_none()
    {
        own.fill("seLinuxOptions", selinux::as_value(label));
    }
    let annotation = || pod.annotation(&format!("{APP_ARMOR_ANNOTATION}{}", container.name()));
    profile.app_armor.fill(own, context, annotation);
    profile.capabilities.fill(own);
    if profile.read_only_root_filesystem && own.get("readOnlyRootFilesystem").is_none() {
        own.fill("readOnlyRootFilesystem", true);
    }
    let escalation = profile.default_allow_privilege_escalation;
    let escalation = escalation.or_else(|| (!profile.allow_privilege_escalation).then_some(false));
    if let Some(may) = escalation
        && own.get("allowPrivilegeEscalation").is_none()
    {
        own.fill("allowPrivilegeEscalation", may);
    }
}

fn check_container(
    profile: &CompiledProfile,
    container: &Container<'_>,
    own: &Context<'_>,
    context: &Context<'_>,
    faults: &mut ProfileFaults,
) {
    let at = container.path();
    let path = at.child("securityContext");
    let flag = |field: &str| own.get(field).and_then(Value::as_bool);
    profile.run_as_user.check_user(own, context, &path, faults);
    let group = effective(own, context, "runAsGroup").and_then(Value::as_i64);
    profile.run_as_group.check_groups(group.as_ref().map(std::slice::from_ref), &path, faults);
    if let Some(label) = &profile.se_linux {
        let found = effective(own, context, "seLinuxOptions");
        selinux::check(label, found, &path.child("seLinuxOptions"), faults);
    }
    profile.app_armor.check(own, context, &path, faults);
    profile.seccomp.check(effective(own, context, "seccompProfile"), &path, faults);
    if !profile.privileged && flag("privileged") == Some(true) {
        faults.add(|| Error::invalid(&path.child("privileged"), true, "Privileged containers are not allowed"));
    }
    profile.proc_mounts.check(own, &path, faults);
    profile.capabilities.check(own, &path.child("capabilities"), faults);
    for port in container.host_ports().filter(|port| !profile.host_ports.have(*port)) {
        faults.add(|| {
            let allowed = profile.host_ports.as_ports();
            let detail = format!("Host port {port} is not allowed to be used. Allowed ports: [{allowed}]");
            Error::invalid(&at.child("hostPort"), port, detail)
        });
    }
    let unless = |wanted: bool, field: &'static str, nil: &'static str, other: &'static str| match flag(field) {
        None => Some(Error::invalid(&path.child(field), NIL, nil)),
        Some(found) if found != wanted => Some(Error::invalid(&path.child(field), found, other)),
        Some(_) => None,
    };
    if profile.read_only_root_filesystem {
        let nil = "ReadOnlyRootFilesystem may not be nil and must be set to true";
        if let Some(error) = unless(true, "readOnlyRootFilesystem", nil, "ReadOnlyRootFilesystem must be set to true") {
            faults.add(|| error);
        }
    }
    if !profile.allow_privilege_escalation {
        let detail = "Allowing privilege escalation for containers is not allowed";
        if let Some(error) = unless(false, "allowPrivilegeEscalation", detail, detail) {
            faults.add(|| error);
        }
    }
}
