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

/// `validateWindowsHostProcessPod`, which goes by the containers, not by what the pod says it runs on. That host processes need
/// the node's network is no question here: a pod without it has none, so one of ours would be the odd one.
fn check_host_process(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    const FIELD: &str = "spec.securityContext.windowsOptions.hostProcess";
    let pod = injection.pod;
    let of_pod = host_process(pod.spec.security_context);
    let added = injection.added.containers().map(|piece| piece.needs.host_process);
    let others: Vec<Option<bool>> = containers(pod).map(host_process).chain(added).collect();
    if let Some(whole) = of_pod
        && let Some(piece) = missing.containers().find(|piece| piece.needs.host_process == Some(!whole))
    {
        let text = format!("container {:?} has another hostProcess than the pod, which says {whole}", piece.name);
        return Err(Fault::new(FIELD, text));
    }
    let effective = |own: Option<bool>| own.or(of_pod).unwrap_or_default();
    let is_odd = |piece: &&Piece| {
        let own = effective(piece.needs.host_process);
        others.iter().any(|other| effective(*other) != own)
            || missing.containers().any(|other| effective(other.needs.host_process) != own)
    };
    match missing.containers().find(is_odd) {
        Some(piece) => Err(Fault::new(
            FIELD,
            format!(
                "with container {:?} some containers are hostProcess containers and some are not; all must be, or none",
                piece.name
            ),
        )),
        None => Ok(()),
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
