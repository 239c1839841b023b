//! Volumes that the added containers need, and claims that are made for volumes.

use std::collections::HashSet;

use serde_json::Value;

use crate::pod::view::is_named;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{Piece, VolumePiece};
use crate::sidecarset::injection::legality::Fault;
use crate::sidecarset::injection::{Injection, Missing};

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    for piece in missing.containers() {
        for name in &piece.needs.volumes {
            check_volume(injection, missing, piece, name)?;
        }
    }
    check_made_claims(injection, missing)
}

fn check_volume(injection: &Injection<'_, '_>, missing: &Missing<'_>, piece: &Piece, name: &str) -> Result<(), Fault> {
    let ours = missing.volumes.iter().chain(&injection.added.volumes).find(|volume| volume.name == name);
    let is_variables = piece.needs.variable_volumes.iter().any(|volume| volume == name);
    let suits = match ours {
        Some(volume) => Some(is_empty_dir(&volume.canonical)),
        None => pod_volumes(injection).find(|raw| is_named(raw, name)).map(|raw| {
            !is_variables || serde_json::from_str::<RawObject>(raw.get()).is_ok_and(|volume| is_empty_dir(&volume))
        }),
    };
    match suits {
        None => Err(Fault::new(
            "spec.volumes",
            format!("container {:?} uses volume {name:?}, which neither the pod nor the set has", piece.name),
        )),
        Some(false) if is_variables => Err(Fault::new(
            "spec.volumes",
            format!("container {:?} reads variables from volume {name:?}, which is no emptyDir", piece.name),
        )),
        Some(_) => Ok(()),
    }
}

/// A volume without any source is an `emptyDir` too (`SetDefaults_Volume` in `k8s.io/kubernetes/pkg/apis/core/v1`).
fn is_empty_dir(volume: &RawObject) -> bool {
    volume.iter().all(|(field, value)| matches!(field.as_str(), "name" | "emptyDir") || value.is_null())
}

fn pod_volumes<'p>(injection: &Injection<'p, '_>) -> impl Iterator<Item = &'p serde_json::value::RawValue> {
    injection.pod.spec.volumes.iter().flatten().copied()
}

/// A claim that is made for an `ephemeral` volume is named after the pod and the volume, and no volume of the pod may refer
/// to it by that name (`ValidateVolumes`). Where the API server makes the pod's name up, nobody can.
fn check_made_claims(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    let pod_name = injection.pod.metadata.name.as_str();
    let is_claim = |volume: &RawObject| claim_name(volume).is_some() || is_ephemeral(volume);
    if pod_name.is_empty() || !missing.volumes.iter().any(|volume| is_claim(&volume.canonical)) {
        return Ok(());
    }
    let theirs = pod_volumes(injection).filter_map(|raw| serde_json::from_str::<RawObject>(raw.get()).ok());
    let ours = |volumes: &[&VolumePiece]| volumes.iter().map(|volume| volume.canonical.clone()).collect::<Vec<_>>();
    let all: Vec<RawObject> =
        theirs.chain(ours(&injection.added.volumes)).chain(ours(&missing.volumes)).filter(is_claim).collect();
    let volume_name = |volume: &RawObject| volume.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let made: HashSet<String> = all
        .iter()
        .filter(|volume| is_ephemeral(volume))
        .map(|volume| format!("{pod_name}-{}", volume_name(volume)))
        .collect();
    match all.iter().find(|volume| claim_name(volume).is_some_and(|claim| made.contains(claim))) {
        Some(volume) => Err(Fault::new(
            "spec.volumes",
            format!(
                "volume {:?} refers to claim {:?}, which is made for an ephemeral volume of the pod",
                volume_name(volume),
                claim_name(volume).unwrap_or_default()
            ),
        )),
        None => Ok(()),
    }
}

fn is_ephemeral(volume: &RawObject) -> bool {
    volume.get("ephemeral").is_some_and(Value::is_object)
}

fn claim_name(volume: &RawObject) -> Option<&str> {
    volume.get("persistentVolumeClaim")?.get("claimName")?.as_str()
}
