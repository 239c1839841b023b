//! Volume sources that few people use: what `k8s.io/kubernetes/pkg/apis/core/validation` demands of them.

use admission::field::{Error, ErrorList};
use admission::format::Quantity;
use serde::Deserialize as _;

use super::Node;
use super::paths::check_descending;

/// Sources and the texts that each must have.
const REQUIRED: [(&str, &[&str]); 16] = [
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("azureFile", &["secretName", "shareName"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("gcePersistentDisk", &["pdName"]),
    ("gitRepo", &["repository"]),
    ("glusterfs", &["endpoints", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("rbd", &["image"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("storageos", &["volumeName"]),
    ("vsphereVolume", &["volumePath"]),
];

/// Checks whichever of them the volume has.
pub fn check(volume: &Node<'_>, errors: &mut ErrorList) {
    for (source, texts) in REQUIRED {
        if let Some(source) = volume.get(source) {
            for text in texts {
                source.require_text(text, errors);
            }
            check_up_to_255(&source, "partition", errors);
            check_up_to_255(&source, "lun", errors);
        }
    }
    for source in ["rbd", "cephfs"] {
        if let Some(source) = volume.get(source)
            && source.child("monitors").items().next().is_none()
        {
            errors.push(Error::required(&source.path.child("monitors"), ""));
        }
    }
    if let Some(repository) = volume.get("gitRepo") {
        check_descending(&repository, "directory", errors);
    }
    if let Some(disk) = volume.get("azureDisk") {
        check_disk_uri(&disk, errors);
    }
    if let Some(disk) = volume.get("fc") {
        check_fibre_channel(&disk, errors);
    }
    if let Some(disk) = volume.get("iscsi") {
        check_iscsi(&disk, errors);
    }
    if let Some(template) = volume.get("ephemeral").and_then(|source| source.get("volumeClaimTemplate")) {
        check_claim_template(&template, errors);
    }
}

fn check_up_to_255(source: &Node<'_>, field: &'static str, errors: &mut ErrorList) {
    if let Some(number) = source.number(field).filter(|number| !(0..=255).contains(number)) {
        errors.push(Error::invalid(&source.path.child(field), number, "must be between 0 and 255, inclusive"));
    }
}

/// `Shared` is the default kind (`SetDefaults_AzureDiskVolumeSource`).
fn check_disk_uri(disk: &Node<'_>, errors: &mut ErrorList) {
    const MANAGED: &str =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    disk.check_word("cachingMode", &["None", "ReadOnly", "ReadWrite"], errors);
    disk.check_word("kind", &["Dedicated", "Managed", "Shared"], errors);
    let (start, form) = if disk.text("kind") == "Managed" { ("/subscriptions/", MANAGED) } else { ("https://", BLOB) };
    let uri = disk.text("diskURI");
    if !uri.is_empty() && !uri.starts_with(start) {
        errors.push(Error::not_supported(&disk.path.child("diskURI"), uri, &[form]));
    }
}

fn check_fibre_channel(disk: &Node<'_>, errors: &mut ErrorList) {
    let has = |field| disk.child(field).items().next().is_some();
    let path = disk.path.child("targetWWNs");
    match (has("targetWWNs"), has("wwids")) {
        (false, false) => {
            errors.push(Error::required(&path, "must specify either targetWWNs or wwids, but not both"));
        }
        (true, true) => {
            let names = disk.child("targetWWNs");
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            errors.push(Error::invalid(&path, names.value, detail));
        }
        (true, false) if disk.number("lun").is_none() => {
            errors.push(Error::required(&disk.path.child("lun"), "lun is required if targetWWNs is specified"));
        }
        (true, false) => check_up_to_255(disk, "lun", errors),
        (false, true) => {}
    }
}

fn check_iscsi(disk: &Node<'_>, errors: &mut ErrorList) {
    let name = disk.text("iqn");
    if !name.is_empty() && !["iqn", "eui", "naa"].iter().any(|start| name.starts_with(start)) {
        let detail = "must be valid format starting with iqn, eui, or naa";
        errors.push(Error::invalid(&disk.path.child("iqn"), name, detail));
    }
    if (disk.flag("chapAuthDiscovery") || disk.flag("chapAuthSession")) && disk.get("secretRef").is_none() {
        errors.push(Error::required(&disk.path.child("secretRef"), ""));
    }
}

fn check_claim_template(template: &Node<'_>, errors: &mut ErrorList) {
    let spec = template.child("spec");
    if spec.child("accessModes").items().next().is_none() {
        errors.push(Error::required(&spec.path.child("accessModes"), "at least 1 access mode is required"));
    }
    let requests = spec.child("resources").child("requests");
    let path = requests.path.key("storage");
    match requests.get("storage").map(|storage| Quantity::deserialize(storage.value)) {
        None => errors.push(Error::required(&path, "")),
        Some(Ok(quantity)) if quantity.is_zero() || quantity.is_negative() => {
            errors.push(Error::invalid(&path, &quantity, "must be greater than zero"));
        }
        Some(Ok(_)) => {}
        Some(Err(error)) => errors.push(Error::invalid(&path, requests.child("storage").value, error.to_string())),
    }
}
