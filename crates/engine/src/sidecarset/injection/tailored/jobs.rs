//! `spec.jobPods`: sets in pods that end.
//!
//! A container that never ends keeps such a pod from ending. A native sidecar is ended when the pod's own containers have.

use admission::Reason;
use serde_json::{Value, json};

use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{CompiledSet, JobPods, Pieces};
use crate::sidecarset::injection::Clash;

/// The first minor version of Kubernetes in which native sidecars are on (feature gate `SidecarContainers`).
const NATIVE_SIDECARS_SINCE: u32 = 29;

/// What becomes of a set in a pod that ends.
pub(super) enum OfJob {
    /// What it is in others.
    AsElsewhere,
    /// Its containers become native sidecars.
    Native,
    /// The pod goes without it.
    Skipped(Reason, String),
}

/// Whether the pod is to end.
pub(crate) fn ends(pod: &PodView<'_>) -> bool {
    matches!(pod.spec.restart_policy.as_str(), "Never" | "OnFailure") || pod.metadata.owners.has_job
}

/// What becomes of the set in a pod that ends, on a server of this minor version; the newest where it is not known.
///
/// # Errors
/// [`Clash`] where the set is a must and the server has no native sidecars.
pub(super) fn of_job(set: &CompiledSet, minor: Option<u32>) -> Result<OfJob, Clash> {
    let skipped = |why: String| Ok(OfJob::Skipped(reasons::JOB_SKIPPED, why));
    match set.job_pods {
        JobPods::Inject => Ok(OfJob::AsElsewhere),
        JobPods::Skip => {
            skipped(format!("SidecarSet {:?} leaves out pods that are to end (spec.jobPods: Skip)", set.name))
        }
        JobPods::NativeSidecar if set.containers.iter().next().is_none() => Ok(OfJob::AsElsewhere),
        JobPods::NativeSidecar => match minor.filter(|minor| *minor < NATIVE_SIDECARS_SINCE) {
            None => Ok(OfJob::Native),
            Some(minor) => {
                let why = format!(
                    "the pod is to end, and Kubernetes 1.{minor} has no native sidecars, which the containers of SidecarSet {:?} would \
                     have to be",
                    set.name
                );
                if set.is_must() { Err(Clash::of_job(why)) } else { skipped(why) }
            }
        },
    }
}

/// Moves the set's containers, each of which is one of [`to_native`] by now, among its init containers: those in front go before all
/// of these, the others behind them.
pub(super) fn move_to_native(set: &mut CompiledSet) {
    let Pieces { mut before, after } = std::mem::take(&mut set.containers);
    before.append(&mut set.init_containers.before);
    set.init_containers.before = before;
    set.init_containers.after.extend(after);
}

/// Turns a container of the set into a native sidecar of the pod. Returns a sentence about what it goes without, if there is something.
pub(super) fn to_native(set: &CompiledSet, name: &str, object: &mut RawObject, pod: &PodView<'_>) -> Option<String> {
    let never_restarts = pod.spec.restart_policy.as_str() == "Never";
    let mut dropped = Vec::new();
    if object.remove("restartPolicyRules").is_some_and(|rules| rules.as_array().is_some_and(|rules| !rules.is_empty()))
    {
        dropped.push("restartPolicyRules");
    }
    if object
        .insert("restartPolicy".to_owned(), json!("Always"))
        .is_some_and(|policy| !policy.is_null() && policy != "Always")
    {
        dropped.push("restartPolicy");
    }
    if let Some(Value::Array(policies)) = object.get_mut("resizePolicy").filter(|_| never_restarts) {
        let before = policies.len();
        policies.retain(|policy| policy.get("restartPolicy").is_none_or(|word| word != "RestartContainer"));
        if policies.len() < before {
            dropped.push("resizePolicy");
        }
    }
    (!dropped.is_empty()).then(|| {
        format!(
            "container {name:?} of SidecarSet {:?} goes without its {}: in a pod that is to end it is a native sidecar, which may not have it",
            set.name,
            dropped.join(" and ")
        )
    })
}
