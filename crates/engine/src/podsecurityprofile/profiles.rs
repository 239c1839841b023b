//! seccomp and AppArmor profiles.
//!
//! `PodSecurityPolicy` read annotations, which Kubernetes has replaced by fields: those decide here. An annotation without its field
//! means nothing to kubelets of today, so that one which is allowed must not let a pod pass.

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path, quote};
use serde_json::Value;

use super::compiled::{Least, bounded};
use super::context::{Context, effective, map, text};
use super::faults::ProfileFaults;

/// The word for any.
const ANY: &str = "*";
const RUNTIME_DEFAULT: &str = "runtime/default";
/// What it was called before.
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";
const LOCALHOST: &str = "localhost/";

/// The beginning of the annotation with the AppArmor profile of a container.
pub const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A profile as a field of a security context.
fn as_field(profile: &str) -> Option<Value> {
    match profile {
        RUNTIME_DEFAULT | DOCKER_DEFAULT => Some(map([("type", "RuntimeDefault".into())])),
        UNCONFINED => Some(map([("type", "Unconfined".into())])),
        _ => {
            let of_node = profile.strip_prefix(LOCALHOST).filter(|name| !name.is_empty())?;
            Some(map([("type", "Localhost".into()), ("localhostProfile", of_node.into())]))
        }
    }
}

/// A field of a security context as policies write it; empty for one that is none.
fn as_written(field: Option<&Value>) -> String {
    match text(field, "type") {
        Some("RuntimeDefault") => RUNTIME_DEFAULT.to_owned(),
        Some("Unconfined") => UNCONFINED.to_owned(),
        Some("Localhost") => format!("{LOCALHOST}{}", text(field, "localhostProfile").unwrap_or_default()),
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}

fn check_format(profile: &str, path: &Path, errors: &mut ErrorList) {
    if as_field(profile).is_none() {
        let detail = "must be runtime/default, unconfined, or localhost/ and the name of a profile";
        errors.push(Error::invalid(path, profile, detail));
    }
}

/// Which seccomp profiles pods and containers may have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seccomp {
    written: String,
    allowed: BTreeSet<String>,
    default: Option<Value>,
}

impl Seccomp {
    /// What a profile says, and what is wrong with it.
    pub fn read(allowed: &[String], default: Option<&str>, path: &Path, errors: &mut ErrorList) -> Self {
        let list = path.child("allowedSeccompProfiles");
        for (index, one) in bounded(allowed, &list, Least::OneCharacter, errors).iter().enumerate() {
            if one != ANY {
                check_format(one, &list.index(index), errors);
            }
        }
        if let Some(default) = default {
            check_format(default, &path.child("defaultSeccompProfile"), errors);
        }
        let runtime = allowed.iter().any(|one| one == DOCKER_DEFAULT).then(|| RUNTIME_DEFAULT.to_owned());
        Self {
            written: allowed.join(","),
            allowed: allowed.iter().cloned().chain(runtime).collect(),
            default: default.and_then(as_field),
        }
    }

    /// Fills in that of a pod.
    pub fn fill(&self, pod: &mut Context<'_>) {
        if let Some(default) = &self.default
            && pod.get("seccompProfile").is_none()
        {
            pod.fill("seccompProfile", default.clone());
        }
    }

    /// Checks that of a pod, or of a container.
    pub fn check(&self, field: Option<&Value>, path: &Path, faults: &mut ProfileFaults) {
        let (found, path) = (as_written(field), || path.child("seccompProfile"));
        if self.allowed.contains(ANY) || self.allowed.contains(&found) {
            return;
        }
        if self.allowed.is_empty() {
            if !found.is_empty() {
                faults.add(|| Error::forbidden(&path(), "seccomp may not be set"));
            }
            return;
        }
        faults.add(|| {
            let detail = format!("{found} is not an allowed seccomp profile. Valid values are {}", self.written);
            Error::forbidden(&path(), detail)
        });
    }
}

/// Which AppArmor profiles containers may have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct AppArmor {
    written: String,
    /// Any, or none, where there is no list.
    allowed: Option<BTreeSet<String>>,
    default: Option<Value>,
}

impl AppArmor {
    /// What a profile says, and what is wrong with it.
    pub fn read(allowed: Option<&[String]>, default: Option<&str>, path: &Path, errors: &mut ErrorList) -> Self {
        let list = path.child("allowedAppArmorProfiles");
        let written = bounded(allowed.unwrap_or_default(), &list, Least::OneCharacter, errors);
        for (index, one) in written.iter().enumerate() {
            check_format(one, &list.index(index), errors);
        }
        if let Some(default) = default {
            check_format(default, &path.child("defaultAppArmorProfile"), errors);
        }
        Self {
            written: written.join(","),
            allowed: allowed.map(|all| all.iter().cloned().collect()),
            default: default.and_then(as_field),
        }
    }

    /// Fills in that of a container: what its annotation says, which API servers write into the field as well, or the default.
    pub fn fill<'a>(
        &self,
        container: &mut Context<'_>,
        pod: &Context<'_>,
        annotation: impl FnOnce() -> Option<&'a str>,
    ) {
        if (self.allowed.is_none() && self.default.is_none()) || container.get("appArmorProfile").is_some() {
            return;
        }
        let annotated = annotation().and_then(as_field);
        let default = || self.default.clone().filter(|_| pod.get("appArmorProfile").is_none());
        if let Some(profile) = annotated.or_else(default) {
            container.fill("appArmorProfile", profile);
        }
    }

    /// Checks that of a container.
    pub fn check(&self, container: &Context<'_>, pod: &Context<'_>, path: &Path, faults: &mut ProfileFaults) {
        let Some(allowed) = &self.allowed else { return };
        let found = as_written(effective(container, pod, "appArmorProfile"));
        if allowed.contains(&found) || (found.is_empty() && allowed.is_empty()) {
            return;
        }
        faults.add(|| {
            let detail = if found.is_empty() {
                "AppArmor profile must be set".to_owned()
            } else {
                format!("{found} is not an allowed profile. Allowed values: {}", quote(&self.written))
            };
            Error::forbidden(&path.child("appArmorProfile"), detail)
        });
    }
}
