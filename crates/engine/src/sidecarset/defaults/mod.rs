//! What is filled into a `SidecarSet` when it is written.
//!
//! Only missing fields are added, one by one, to the object as it was sent: nothing that this build does not know is lost. Containers
//! and volumes get what the API server would fill into a pod, so that `kubectl get -o yaml` shows what will be injected and a
//! probe is validated as it will be in the pod.

mod container;
mod filler;
pub mod image;
mod nulls;
#[cfg(test)]
mod tests;
mod volume;

use admission::patch::{PatchBuilder, PatchError};
use admission::{Defaulting, ObjectLimit, Request};
use serde_json::{Value, json};

use self::filler::Absent::{Missing, Zero};
use self::filler::{Filler, present};
use self::image::pull_policy;
use super::canonical::is_empty;
use super::platform;
use super::size::{LIMIT, MAX_VALUES, count_values};
use super::vocabulary as words;
use crate::snapshot::Snapshot;

/// Fills in what a `SidecarSet` leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub struct SidecarSetDefaults;

impl Defaulting<Snapshot> for SidecarSetDefaults {
    const LIMIT: ObjectLimit = LIMIT;

    fn default(&self, request: &Request<'_, Value>, patch: &mut PatchBuilder, _: &Snapshot) -> Result<(), PatchError> {
        // An object that is being deleted is left alone, so that nothing blocks the removal of its finalizers.
        if request.is_of_leaving(patch.document()) { Ok(()) } else { fill(patch) }
    }
}

/// Fills in what the document of `patch` leaves out. A fixed point: on its own result it adds nothing.
///
/// # Errors
/// Never in practice: where the shape is wrong nothing is filled, and validation says what is wrong.
pub fn fill(patch: &mut PatchBuilder) -> Result<(), PatchError> {
    let filler = &mut Filler(patch);
    // Validation refuses what is too large.
    let too_large = filler.get("/spec").is_some_and(|spec| count_values(spec) > MAX_VALUES);
    if too_large || !filler.0.document().is_object() {
        return Ok(());
    }
    for (list, policy) in [("containers", words::BEFORE_APP_CONTAINER), ("initContainers", words::AFTER_APP_CONTAINER)]
    {
        for at in filler.maps_in(&format!("/spec/{list}")) {
            nulls::fill_container(filler, &at)?;
            fill_container(filler, &at, policy)?;
        }
    }
    for at in filler.maps_in("/spec/appContainers") {
        container::variables(filler, &at)?;
    }
    for at in filler.maps_in("/spec/volumes") {
        nulls::fill_volume(filler, &at)?;
        volume::fill(filler, &at)?;
    }
    for at in filler.maps_in("/spec/patchPodMetadata") {
        filler.fill(&at, "patchPolicy", Zero, words::RETAIN)?;
    }
    if filler.is_map("/spec/injectionStrategy/revision") {
        filler.fill("/spec/injectionStrategy/revision", "policy", Zero, words::REVISION_ALWAYS)?;
    }
    container::resources(filler, "/spec/resourceDefaults")?;
    update_strategy(filler)?;
    filler.fill("/spec", "revisionHistoryLimit", Missing, words::REVISION_HISTORY_LIMIT)?;
    filler.fill("/spec", "order", Missing, 0)?;
    filler.fill("/spec", "clashPolicy", Zero, words::CLASH_REFUSE)?;
    filler.fill("/spec", "optOut", Zero, words::OPT_OUT_ALLOWED)?;
    filler.fill("/spec", "jobPods", Zero, words::JOB_NATIVE_SIDECAR)?;
    filler.fill("/spec", "podSecurity", Zero, words::SECURITY_AS_WRITTEN)?;
    platform(filler)
}

/// Options for Windows alone say that a container is for Windows: sets had no other way to say so.
fn platform(filler: &mut Filler<'_>) -> Result<(), PatchError> {
    let lists = ["/spec/containers", "/spec/initContainers"].into_iter();
    let mut containers = lists.filter_map(|list| filler.get(list)?.as_array()).flatten();
    let is_windows = containers.any(|container| container.as_object().is_some_and(platform::is_for_windows));
    let platform = if is_windows { words::PLATFORM_WINDOWS } else { words::PLATFORM_LINUX };
    filler.fill("/spec", "platform", Zero, platform)
}

/// Fields of a container that are maps with fields of their own to fill in.
const POLICIES: [&str; 5] =
    ["upgradeStrategy", "shareVolumePolicy", "shareVolumeDevicePolicy", "resourcesPolicy", "transferEnv"];

/// Fills a container, which is looked up as seldom as can be.
fn fill_container(filler: &mut Filler<'_>, at: &str, policy: &'static str) -> Result<(), PatchError> {
    let Some(Value::Object(map)) = filler.get(at) else { return Ok(()) };
    let image = map.get("image").and_then(Value::as_str).unwrap_or_default();
    let fields = [
        ("podInjectPolicy", policy.into()),
        ("upgradeStrategy", json!({"upgradeType": words::COLD_UPGRADE})),
        ("shareVolumePolicy", json!({"type": words::SHARE_DISABLED})),
        ("imagePullPolicy", pull_policy(image).into()),
        ("terminationMessagePath", "/dev/termination-log".into()),
        ("terminationMessagePolicy", "File".into()),
    ];
    // Most containers have few of them.
    let (policies, parts) = (present(map, POLICIES), present(map, container::FIELDS));
    filler.fill_zeros(at, fields);
    control_fields(filler, at, policies)?;
    container::fill(filler, at, parts)
}

fn control_fields(filler: &mut Filler<'_>, at: &str, present: Vec<&'static str>) -> Result<(), PatchError> {
    for field in present {
        let place = format!("{at}/{field}");
        match field {
            "upgradeStrategy" => filler.fill(&place, "upgradeType", Zero, words::COLD_UPGRADE)?,
            "shareVolumePolicy" => filler.fill(&place, "type", Zero, words::SHARE_DISABLED)?,
            "shareVolumeDevicePolicy" if filler.is_map(&place) => {
                filler.fill(&place, "type", Zero, words::SHARE_DISABLED)?;
            }
            "resourcesPolicy" if filler.get(&place).is_some_and(|policy| policy.is_object() && !is_empty(policy)) => {
                filler.fill(&place, "targetContainersNameRegex", Missing, words::ALL_CONTAINERS)?;
            }
            "transferEnv" => {
                for entry in filler.maps_in(&place) {
                    container::field_ref(filler, &format!("{entry}/sourceContainerNameFrom"))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn update_strategy(filler: &mut Filler<'_>) -> Result<(), PatchError> {
    filler.fill("/spec/updateStrategy", "type", Zero, words::ROLLING_UPDATE)?;
    filler.fill("/spec/updateStrategy", "partition", Missing, 0)?;
    filler.fill("/spec/updateStrategy", "maxUnavailable", Missing, 1)
}
