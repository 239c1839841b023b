//! What only Windows pods may have, or may not.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::pod::view::PodView;
use crate::sidecarset::compiled::Piece;
use crate::sidecarset::injection::legality::Fault;
use crate::sidecarset::injection::{Injection, Missing};

/// `supportedStopSignalsWindows` in `k8s.io/kubernetes/pkg/apis/core/validation`.
const STOP_SIGNALS: [&str; 2] = ["SIGKILL", "SIGTERM"];

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    if injection.pod.spec.os.as_ref().is_some_and(|os| os.name.as_str() == "windows") {
        missing.containers().try_for_each(check_container)?;
    }
    check_host_process(injection, missing)
}

fn check_container(piece: &Piece) -> Result<(), Fault> {
    let (needs, name) = (&piece.needs, &piece.name);
    if let Some(field) = needs.linux_field {
        let text = format!("container {name:?} has securityContext.{field}, which a Windows pod may not have");
        return Err(Fault::new("spec.os", text));
    }
    match &needs.stop_signal {
        Some(signal) if !STOP_SIGNALS.contains(&signal.as_str()) => {
            Err(Fault::new("spec.os", format!("container {name:?} has stopSignal {signal}, unknown to Windows")))
        }
        _ => Ok(()),
    }
}

/// `validateWindowsHostProcessPod`, which goes by the containers, not by what the pod says it runs on.
fn check_host_process(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    let pod = injection.pod;
    let of_pod = host_process(pod.spec.security_context);
    let mut theirs = containers(pod);
    let ours_say = missing.containers().any(|piece| piece.needs.host_process.is_some());
    if !ours_say && of_pod.is_none() && !theirs.any(|context| host_process(context).is_some()) {
        return Ok(());
    }
    let piece_that =
        |is: &dyn Fn(Option<bool>) -> bool| missing.containers().find(|piece| is(piece.needs.host_process));
    if let (Some(whole), Some(piece)) = (of_pod, piece_that(&|own| own.is_some_and(|own| Some(own) != of_pod))) {
        let text = format!("container {:?} has another hostProcess than the pod, which says {whole}", piece.name);
        return Err(Fault::new("spec.securityContext.windowsOptions.hostProcess", text));
    }
    let effective = |own: Option<bool>| own.or(of_pod).unwrap_or_default();
    let is_host = |own: Option<bool>| effective(own);
    let added = || injection.added.containers().map(|piece| piece.needs.host_process);
    let others: Vec<bool> = containers(pod).map(host_process).chain(added()).map(is_host).collect();
    let (host, plain) = (piece_that(&is_host), piece_that(&|own| !effective(own)));
    let mixed = match (host, plain) {
        (Some(host), Some(_)) => Some(host),
        (Some(host), None) => others.contains(&false).then_some(host),
        (None, Some(plain)) => others.contains(&true).then_some(plain),
        (None, None) => None,
    };
    if let Some(piece) = mixed {
        let text = format!(
            "with container {:?} some containers are hostProcess containers and some are not; all must be, or none",
            piece.name
        );
        return Err(Fault::new("spec.securityContext.windowsOptions.hostProcess", text));
    }
    match host {
        Some(piece) if !pod.spec.host_network => Err(Fault::new(
            "spec.hostNetwork",
            format!("container {:?} is a hostProcess container, which needs the node's network", piece.name),
        )),
        _ => Ok(()),
    }
}

fn containers<'p>(pod: &'p PodView<'p>) -> impl Iterator<Item = Option<&'p RawValue>> {
    pod.spec.init_containers().iter().chain(pod.spec.containers()).map(|container| container.security_context)
}

fn host_process(context: Option<&RawValue>) -> Option<bool> {
    // Looking for the word first spares reading the security contexts of Linux pods.
    let text = context?.get();
    if !text.contains("hostProcess") {
        return None;
    }
    serde_json::from_str::<Value>(text).ok()?.get("windowsOptions")?.get("hostProcess")?.as_bool()
}
