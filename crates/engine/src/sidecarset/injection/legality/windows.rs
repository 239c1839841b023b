//! What only Windows pods may have, or may not.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::pod::view::PodView;
use crate::sidecarset::compiled::Piece;
use crate::sidecarset::injection::legality::IllegalResult;
use crate::sidecarset::injection::{Injection, Missing};

/// `supportedStopSignalsWindows` in `k8s.io/kubernetes/pkg/apis/core/validation`.
const STOP_SIGNALS: [&str; 2] = ["SIGKILL", "SIGTERM"];

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    if injection.pod.spec.os.as_ref().is_some_and(|os| os.name.as_str() == "windows") {
        missing.containers().try_for_each(check_container)?;
    }
    check_host_process(injection, missing)
}

fn check_container(piece: &Piece) -> Result<(), IllegalResult> {
    let (needs, name) = (&piece.needs, &piece.name);
    if let Some(field) = needs.linux_field {
        let text = format!("container {name:?} has securityContext.{field}, which a Windows pod may not have");
        return Err(IllegalResult::new("spec.os", text));
    }
    match &needs.stop_signal {
        Some(signal) if !STOP_SIGNALS.contains(&&**signal) => Err(IllegalResult::new(
            "spec.os",
            format!("container {name:?} has stopSignal {signal}, unknown to Windows"),
        )),
        _ => Ok(()),
    }
}

/// `validateWindowsHostProcessPod`, which reads the containers, not the operating system of the pod. That host processes need
/// the node's network is no question here: a pod without it has none, so one of ours would be the odd one.
fn check_host_process(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    const FIELD: &str = "spec.securityContext.windowsOptions.hostProcess";
    let pod = injection.pod;
    let of_pod = host_process(pod.spec.security_context);
    let theirs = injection.theirs.host_processes.get_or_init(|| HostProcesses::of(containers(pod).map(host_process)));
    let new = HostProcesses::of(missing.containers().map(|piece| piece.needs.host_process));
    if let Some(whole) = of_pod
        && let Some(piece) = missing.containers().find(|piece| piece.needs.host_process == Some(!whole))
    {
        let text = format!("container {:?} has another hostProcess than the pod, which says {whole}", piece.name);
        return Err(IllegalResult::new(FIELD, text));
    }
    let whole = of_pod.unwrap_or_default();
    let all = [theirs, &injection.ours.host_processes, &new];
    let is_odd = |piece: &&Piece| {
        let own = piece.needs.host_process.unwrap_or(whole);
        all.iter().any(|some| some.has(!own, whole))
    };
    match missing.containers().find(is_odd) {
        Some(piece) => Err(IllegalResult::new(
            FIELD,
            format!(
                "with container {:?} some containers are hostProcess containers and some are not; all must be, or none",
                piece.name
            ),
        )),
        None => Ok(()),
    }
}

/// What containers say about being host processes.
#[derive(Debug, Default)]
pub(in crate::sidecarset::injection) struct HostProcesses {
    yes: bool,
    no: bool,
    unsaid: bool,
}

impl HostProcesses {
    fn of(containers: impl Iterator<Item = Option<bool>>) -> Self {
        let mut all = Self::default();
        containers.for_each(|own| all.add(own));
        all
    }

    /// Takes note of a container.
    pub(in crate::sidecarset::injection) const fn add(&mut self, own: Option<bool>) {
        match own {
            Some(true) => self.yes = true,
            Some(false) => self.no = true,
            None => self.unsaid = true,
        }
    }

    /// Whether one of them is, or is not, where those that do not say are what the pod as a whole is.
    const fn has(&self, is: bool, whole: bool) -> bool {
        (if is { self.yes } else { self.no }) || (self.unsaid && is == whole)
    }
}

fn containers<'p>(pod: &'p PodView<'p>) -> impl Iterator<Item = Option<&'p RawValue>> {
    pod.spec.init_containers().iter().chain(pod.spec.containers()).map(|container| container.security_context)
}

fn host_process(context: Option<&RawValue>) -> Option<bool> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Context<'a> {
        #[serde(borrow, default)]
        windows_options: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Options {
        #[serde(default)]
        host_process: Option<bool>,
    }
    // Looking for the word first spares reading the security contexts of Linux pods.
    let text = context?.get();
    if !text.contains("hostProcess") {
        return None;
    }
    let context: Context<'_> = serde_json::from_str(text).ok()?;
    serde_json::from_str::<Options>(context.windows_options?.get()).ok()?.host_process
}
