//! Whether the pod would still be legal with the set in it: the rules of the API server for a pod as a whole.
//!
//! The closed list, with the source of each rule in Kubernetes' own validation, is `docs/legality.md`. What depends on
//! the set alone is refused when the set is written, and not checked again here.

mod resources;
mod volumes;
mod windows;

pub(super) use resources::{AddedResources, PodResources, amounts};
pub(super) use volumes::{VolumeClaims, is_empty_dir};
pub(super) use windows::HostProcesses;

use admission::format::metadata::ANNOTATIONS_MAX_BYTES;

use crate::pod::view::PodView;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::annotations::growth;
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::theirs::Theirs;
use crate::sidecarset::injection::{Clash, Injection, Missing};

/// The API server's default of `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// What a pod of older days says about the seccomp profile of the container whose name follows.
const SECCOMP_ANNOTATION_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// What of a pod does not go with what a set adds.
struct IllegalResult {
    field: String,
    text: String,
}

impl IllegalResult {
    fn new(field: impl Into<String>, text: String) -> Self {
        Self { field: field.into(), text }
    }
}

/// Checks the pod with what is missing of the set added to it.
pub(super) fn check<'s>(
    injection: &Injection<'_, 's>,
    set: &'s CompiledSet,
    missing: &Missing<'_>,
) -> Result<(), Clash> {
    // A record may have to be written all the same.
    let found =
        if missing.is_empty() { check_annotations(injection, set, missing) } else { find(injection, set, missing) };
    found.map_err(|fault| Clash::illegal(set, &fault.field, &fault.text))
}

fn find<'s>(injection: &Injection<'_, 's>, set: &'s CompiledSet, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    for piece in missing.containers() {
        check_lifecycle(injection.pod, piece)?;
        check_users(injection.pod, piece)?;
        check_seccomp(injection.pod, piece)?;
        check_claims(&injection.theirs, piece)?;
    }
    if injection.pod.spec.host_network {
        missing.before.iter().chain(&missing.after).try_for_each(|piece| check_port_mapping(piece))?;
    }
    volumes::check(injection, missing)?;
    windows::check(injection, missing)?;
    check_annotations(injection, set, missing)?;
    resources::check(injection, missing)
}

/// `validatePodHostNetworkDeps`, which checks no init containers.
fn check_port_mapping(piece: &Piece) -> Result<(), IllegalResult> {
    match piece.needs.ports.iter().find(|port| port.host_port != 0 && port.host_port != port.container_port) {
        Some(port) => Err(IllegalResult::new(
            "spec.hostNetwork",
            format!(
                "container {:?} maps host port {} to port {}, and with the node's network both must be equal",
                piece.name, port.host_port, port.container_port
            ),
        )),
        None => Ok(()),
    }
}

fn check_lifecycle(pod: &PodView<'_>, piece: &Piece) -> Result<(), IllegalResult> {
    let (spec, needs, name) = (&pod.spec, &piece.needs, &piece.name);
    let grace = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
    if let Some(sleep) = needs.longest_sleep.filter(|sleep| *sleep > grace) {
        return Err(IllegalResult::new(
            "spec.terminationGracePeriodSeconds",
            format!("container {name:?} sleeps {sleep} s in a hook, the pod grants {grace} s"),
        ));
    }
    if needs.restarts_on_resize && spec.restart_policy.as_str() == "Never" {
        return Err(IllegalResult::new(
            "spec.restartPolicy",
            format!("container {name:?} restarts on resize, and the pod never restarts"),
        ));
    }
    if needs.stop_signal.is_some() && spec.os.is_none() {
        return Err(IllegalResult::new(
            "spec.os",
            format!("container {name:?} has a stopSignal, which needs spec.os.name"),
        ));
    }
    Ok(())
}

fn check_users(pod: &PodView<'_>, piece: &Piece) -> Result<(), IllegalResult> {
    let (needs, name, own_users) = (&piece.needs, &piece.name, pod.spec.host_users == Some(false));
    if needs.unmasked_proc && !own_users {
        let text = format!("container {name:?} has procMount Unmasked, which needs hostUsers: false");
        return Err(IllegalResult::new("spec.hostUsers", text));
    }
    if needs.has_devices && own_users {
        let text = format!("container {name:?} has volumeDevices, which need the host's users");
        return Err(IllegalResult::new("spec.hostUsers", text));
    }
    Ok(())
}

fn check_seccomp(pod: &PodView<'_>, piece: &Piece) -> Result<(), IllegalResult> {
    let Some(profile) = &piece.needs.seccomp else { return Ok(()) };
    let key = format!("{SECCOMP_ANNOTATION_PREFIX}{}", piece.name);
    match pod.metadata.annotation(&key) {
        Some(value) if !profile.agrees_with(value) => Err(IllegalResult::new(
            format!("metadata.annotations[{key}]"),
            format!(
                "container {:?} has the seccomp profile {}, and an annotation of the pod says {:?}",
                piece.name,
                profile.kind,
                shortened(value)
            ),
        )),
        _ => Ok(()),
    }
}

fn check_claims(theirs: &Theirs<'_, '_>, piece: &Piece) -> Result<(), IllegalResult> {
    match piece.needs.claims.iter().find(|claim| !theirs.has_claim(claim)) {
        Some(claim) => Err(IllegalResult::new(
            "spec.resourceClaims",
            format!("container {:?} uses resource claim {claim:?}, which the pod does not have", piece.name),
        )),
        None => Ok(()),
    }
}

/// All annotations of an object together are limited; the record of the sets counts too.
fn check_annotations<'s>(
    injection: &Injection<'_, 's>,
    set: &'s CompiledSet,
    missing: &Missing<'_>,
) -> Result<(), IllegalResult> {
    let new = injection.new_entry(set, missing);
    let growth = growth(&missing.annotations);
    if new.is_none() && growth == 0 {
        return Ok(());
    }
    let record = new.map_or(injection.record_bytes + 1, |new| injection.record_bytes_with(&set.name, &new));
    if injection.annotation_bytes_with(record) + growth > ANNOTATIONS_MAX_BYTES {
        let text = format!(
            "with the record of the set, and with what it gives, its annotations exceed {ANNOTATIONS_MAX_BYTES} bytes"
        );
        return Err(IllegalResult::new("metadata.annotations", text));
    }
    Ok(())
}
