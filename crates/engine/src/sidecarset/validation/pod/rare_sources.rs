//! Volume sources that few people use: what `k8s.io/kubernetes/pkg/apis/core/validation` demands of them.

use admission::field::{Error, ErrorList};
use admission::format::names::dns1123_label;

use super::paths::check_descending;
use super::{Node, iscsi};

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
        check_iscsi(&disk, volume, errors);
    }
    for source in ["cinder", "storageos"] {
        if let Some(secret) = volume.get(source).and_then(|source| source.get("secretRef")) {
            secret.require_text("name", errors);
        }
    }
    if let Some(disk) = volume.get("storageos") {
        disk.check_text("volumeName", dns1123_label, errors);
        disk.check_text("volumeNamespace", dns1123_label, errors);
    }
    if let Some(disk) = volume.get("flocker") {
        check_flocker(&disk, errors);
    }
    if let Some(disk) = volume.get("quobyte") {
        check_quobyte(&disk, errors);
    }
    if let Some(disk) = volume.get("flexVolume") {
        check_options(&disk.child("options"), errors);
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

fn check_iscsi(disk: &Node<'_>, volume: &Node<'_>, errors: &mut ErrorList) {
    const LENGTH_MAX: usize = 64;
    let name = disk.text("iqn");
    if !name.is_empty() {
        errors.extend(iscsi::wrong_name(name).map(|detail| Error::invalid(&disk.path.child("iqn"), name, detail)));
    }
    if (disk.flag("chapAuthDiscovery") || disk.flag("chapAuthSession")) && disk.get("secretRef").is_none() {
        errors.push(Error::required(&disk.path.child("secretRef"), ""));
    }
    let initiator = disk.child("initiatorName");
    let Some(name) = initiator.value.as_str() else { return };
    errors.extend(iscsi::wrong_name(name).map(|detail| Error::invalid(&initiator.path, name, detail)));
    let own = volume.text("name");
    if own.len() + 1 + disk.text("targetPortal").len() > LENGTH_MAX {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                      iscsi.initiatorName is specified.";
        errors.push(Error::invalid(&volume.path.child("name"), own, detail));
    }
}

fn check_flocker(disk: &Node<'_>, errors: &mut ErrorList) {
    let name = disk.text("datasetName");
    match (name.is_empty(), disk.text("datasetUUID").is_empty()) {
        (true, true) => errors.push(Error::required(&disk.path, "one of datasetName and datasetUUID is required")),
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(Error::invalid(&disk.path, "resource", detail));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(Error::invalid(&disk.path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn check_quobyte(disk: &Node<'_>, errors: &mut ErrorList) {
    const TENANT_MAX: usize = 64;
    let registry = disk.text("registry");
    if registry.is_empty() {
        return;
    }
    if disk.text("tenant").len() > TENANT_MAX {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        return errors.push(Error::required(&disk.path.child("tenant"), detail));
    }
    if !registry.split(',').all(is_host_and_port) {
        let detail = "must be a host:port pair or multiple pairs separated by commas";
        errors.push(Error::invalid(&disk.path.child("registry"), registry, detail));
    }
}

/// Whether `net.SplitHostPort` of Go splits it.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((host, "")) => host,
            _ => return false,
        },
        None if host.contains([':', ']']) => return false,
        None => host,
    };
    !host.contains('[') && !port.contains(['[', ']'])
}

/// Options must not have keys of Kubernetes' own domains.
fn check_options(options: &Node<'_>, errors: &mut ErrorList) {
    for (key, option) in options.entries() {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain).to_lowercase();
        let is_in = |reserved: &str| {
            domain.strip_suffix(reserved).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        if is_in("kubernetes.io") || is_in("k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(&option.path, key, detail));
        }
    }
}
