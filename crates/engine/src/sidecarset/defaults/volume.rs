//! What the API server fills into a volume of a pod: `SetObjectDefaults_Pod` of `k8s.io/kubernetes/pkg/apis/core/v1` (1.36).

use admission::patch::PatchError;
use serde_json::{Map, Value};

use super::container::{field_ref, resources};
use super::filler::Absent::{self, Missing, Zero};
use super::filler::Filler;
use super::image::pull_policy;

/// `0644`
const DEFAULT_MODE: i32 = 420;

/// Sources whose defaults are plain values: source, field, what counts as absent, value.
const PLAIN: [(&str, &str, Absent, &str); 11] = [
    ("hostPath", "type", Missing, ""),
    ("iscsi", "iscsiInterface", Zero, "default"),
    ("rbd", "pool", Zero, "rbd"),
    ("rbd", "user", Zero, "admin"),
    ("rbd", "keyring", Zero, "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", Missing, "ReadWrite"),
    ("azureDisk", "fsType", Missing, "ext4"),
    ("azureDisk", "kind", Missing, "Shared"),
    ("scaleIO", "storageMode", Zero, "ThinProvisioned"),
    ("scaleIO", "fsType", Zero, "xfs"),
    ("ephemeral/volumeClaimTemplate/spec", "volumeMode", Missing, "Filesystem"),
];

/// The sources in which something is filled.
const SOURCES: [&str; 11] = [
    "hostPath",
    "iscsi",
    "rbd",
    "azureDisk",
    "scaleIO",
    "ephemeral",
    "secret",
    "configMap",
    "downwardAPI",
    "projected",
    "image",
];

/// Fills the volume at `at`.
pub fn fill(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    if is_without_source(filler.get(at)) {
        return filler.fill(at, "emptyDir", Missing, Map::new());
    }
    // Most volumes have none of them, or one.
    if filler.present(at, SOURCES).is_empty() {
        return Ok(());
    }
    for (source, field, absent, value) in PLAIN {
        let pointer = format!("{at}/{source}");
        if filler.is_map(&pointer) {
            filler.fill(&pointer, field, absent, value)?;
        }
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        let pointer = format!("{at}/{source}");
        if filler.is_map(&pointer) {
            filler.fill(&pointer, "defaultMode", Missing, DEFAULT_MODE)?;
        }
    }
    let azure_disk = format!("{at}/azureDisk");
    if filler.is_map(&azure_disk) {
        filler.fill(&azure_disk, "readOnly", Missing, false)?;
    }
    let image = format!("{at}/image");
    if filler.is_map(&image) {
        let policy = pull_policy(filler.text(&format!("{image}/reference")));
        filler.fill(&image, "pullPolicy", Zero, policy)?;
    }
    downward_items(filler, &format!("{at}/downwardAPI"))?;
    for source in filler.maps_in(&format!("{at}/projected/sources")) {
        downward_items(filler, &format!("{source}/downwardAPI"))?;
        let token = format!("{source}/serviceAccountToken");
        if filler.is_map(&token) {
            filler.fill(&token, "expirationSeconds", Missing, 3600)?;
        }
    }
    resources(filler, &format!("{at}/ephemeral/volumeClaimTemplate/spec/resources"))
}

/// A field that this build does not know is taken for a source of a newer API, not for the lack of one.
fn is_without_source(volume: Option<&Value>) -> bool {
    let Some(Value::Object(fields)) = volume else { return false };
    fields.iter().all(|(field, value)| field == "name" || value.is_null())
}

fn downward_items(filler: &mut Filler<'_>, at: &str) -> Result<(), PatchError> {
    for item in filler.maps_in(&format!("{at}/items")) {
        field_ref(filler, &item)?;
    }
    Ok(())
}
