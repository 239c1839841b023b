//! Volumes that the added containers need, and claims that are made for volumes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use admission::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{Piece, VolumePiece};
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::legality::IllegalResult;
use crate::sidecarset::injection::{Injection, Missing};

/// The longest text of an `emptyDir` volume that is read: its three fields take far less.
const EMPTY_DIR_MAX: usize = 4096;

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    let ours: BTreeMap<&str, &VolumePiece> =
        missing.volumes.iter().rev().map(|volume| (volume.name.as_str(), *volume)).collect();
    for piece in missing.containers() {
        let variables: BTreeSet<&str> = piece.needs.variable_volumes.iter().map(|name| &**name).collect();
        for name in &piece.needs.volumes {
            let ours = ours.get(&**name).copied();
            let ours = ours.or_else(|| injection.ours.volumes.get(&**name).map(|(volume, _)| *volume));
            check_volume(injection, ours, piece, name, variables.contains(&**name))?;
        }
    }
    check_made_claims(injection, missing)
}

fn check_volume(
    injection: &Injection<'_, '_>,
    ours: Option<&VolumePiece>,
    piece: &Piece,
    name: &str,
    is_variables: bool,
) -> Result<(), IllegalResult> {
    let suits = match ours {
        Some(volume) => Some(volume.is_empty_dir),
        None => injection.theirs.volume(name).map(|(_, raw)| !is_variables || is_empty_dir(raw)),
    };
    match suits {
        None => Err(IllegalResult::new(
            "spec.volumes",
            format!("container {:?} uses volume {name:?}, which neither the pod nor the set has", piece.name),
        )),
        Some(false) if is_variables => Err(IllegalResult::new(
            "spec.volumes",
            format!("container {:?} reads variables from volume {name:?}, which is no emptyDir", piece.name),
        )),
        Some(_) => Ok(()),
    }
}

/// A volume without any source is an `emptyDir` too (`SetDefaults_Volume` in `k8s.io/kubernetes/pkg/apis/core/v1`).
pub(in crate::sidecarset::injection) fn is_empty_dir(volume: &RawValue) -> bool {
    let has_no_other = |volume: RawObject| {
        volume.iter().all(|(field, value)| matches!(field.as_str(), "name" | "emptyDir") || value.is_null())
    };
    volume.get().len() <= EMPTY_DIR_MAX && serde_json::from_str(volume.get()).is_ok_and(has_no_other)
}

/// A claim that is made for an `ephemeral` volume is named after the pod and the volume, and no volume of the pod may refer
/// to it by that name (`ValidateVolumes`). Where the API server generates the pod's name, none can.
fn check_made_claims(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    let pod = &injection.pod;
    let pod_name = pod.metadata.name.as_str();
    let mut new = VolumeClaims::default();
    missing.volumes.iter().for_each(|volume| new.add_piece(volume));
    if pod_name.is_empty() || new.is_empty() {
        return Ok(());
    }
    let theirs = injection.theirs.volume_claims.get_or_init(|| VolumeClaims::of_pod(injection));
    let prefix = format!("{pod_name}-");
    let all: [&VolumeClaims<'_>; 3] = [theirs, &injection.ours.volume_claims, &new];
    let has_made = |claim: &str| {
        claim.strip_prefix(&prefix).is_some_and(|volume| all.iter().any(|claims| claims.ephemeral.contains(volume)))
    };
    let referred = new.referred.iter().map(|(claim, volume)| (claim.as_ref(), volume.as_ref()));
    // Of the pod's own and the added ones only what the new volumes make can be at fault.
    let made = new.ephemeral.iter().filter_map(|volume| {
        let claim = format!("{prefix}{volume}");
        all.iter().find_map(|claims| claims.referred.get_key_value(claim.as_str()))
    });
    let made = made.map(|(claim, volume)| (claim.as_ref(), volume.as_ref()));
    match referred.filter(|(claim, _)| has_made(claim)).chain(made).next() {
        Some((claim, volume)) => Err(IllegalResult::new(
            "spec.volumes",
            format!(
                "volume {:?} refers to claim {:?}, which is made for an ephemeral volume of the pod",
                shortened(volume),
                shortened(claim)
            ),
        )),
        None => Ok(()),
    }
}

/// The claims that volumes refer to, and the volumes that claims are made for.
#[derive(Debug, Default)]
pub(in crate::sidecarset::injection) struct VolumeClaims<'a> {
    // Claim, and the first volume that refers to it.
    referred: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    ephemeral: BTreeSet<Cow<'a, str>>,
}

impl<'a> VolumeClaims<'a> {
    /// Takes note of a set's volume.
    pub(in crate::sidecarset::injection) fn add_piece(&mut self, volume: &'a VolumePiece) {
        self.add(volume.name.as_str().into(), volume.claim.as_deref().map(Cow::Borrowed), volume.is_ephemeral);
    }

    fn add(&mut self, volume: Cow<'a, str>, claim: Option<Cow<'a, str>>, is_ephemeral: bool) {
        if let Some(claim) = claim {
            self.referred.entry(claim).or_insert_with(|| volume.clone());
        }
        if is_ephemeral {
            self.ephemeral.insert(volume);
        }
    }

    fn is_empty(&self) -> bool {
        self.referred.is_empty() && self.ephemeral.is_empty()
    }
}

impl<'p> VolumeClaims<'p> {
    fn of_pod(injection: &Injection<'p, '_>) -> Self {
        #[derive(Deserialize)]
        struct Volume<'a> {
            #[serde(borrow, default)]
            name: Text<'a>,
            #[serde(borrow, default, rename = "persistentVolumeClaim")]
            claim: Option<Claim<'a>>,
            #[serde(borrow, default)]
            ephemeral: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Claim<'a> {
            #[serde(borrow, default)]
            claim_name: Text<'a>,
        }
        let mut claims = Self::default();
        for raw in injection.pod.spec.volumes.iter().flatten() {
            let Ok(volume) = serde_json::from_str::<Volume<'p>>(raw.get()) else { continue };
            let is_ephemeral = volume.ephemeral.is_some_and(|raw| raw.get().starts_with('{'));
            claims.add(volume.name.0, volume.claim.map(|claim| claim.claim_name.0), is_ephemeral);
        }
        claims
    }
}
