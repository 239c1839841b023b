//! What a container mounts: volumes as directories, and as devices.

use std::collections::HashSet;

use admission::field::{Error, ErrorList};

use super::paths::check_descending;
use super::{Node, Volumes};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// Checks `volumeMounts` and `volumeDevices` of a container.
pub fn check(container: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    let (mounts, devices) = (container.child("volumeMounts"), container.child("volumeDevices"));
    let privileged = container.child("securityContext").flag("privileged");
    check_mounts(&mounts, &devices, volumes, privileged, errors);
    check_devices(&devices, &mounts, volumes, errors);
}

fn texts<'a>(list: &Node<'a>, field: &'static str) -> HashSet<&'a str> {
    list.items().map(|item| item.text(field)).filter(|text| !text.is_empty()).collect()
}

fn check_mounts(list: &Node<'_>, devices: &Node<'_>, volumes: &Volumes<'_>, privileged: bool, errors: &mut ErrorList) {
    let (device_names, device_paths) = (texts(devices, "name"), texts(devices, "devicePath"));
    let mut seen = HashSet::new();
    for mount in list.items().filter(|mount| mount.value.is_object()) {
        if let Some(name) = mount.require_text("name", errors) {
            let path = mount.path.child("name");
            if !volumes.contains_key(name) {
                errors.push(Error::not_found(&path, name));
            }
            if device_names.contains(name) {
                errors.push(Error::invalid(&path, name, "must not already exist in volumeDevices"));
            }
        }
        if let Some(mount_path) = mount.require_text("mountPath", errors) {
            let path = mount.path.child("mountPath");
            if !seen.insert(mount_path) {
                errors.push(Error::invalid(&path, mount_path, "must be unique"));
            }
            if device_paths.contains(mount_path) {
                errors.push(Error::invalid(&path, mount_path, "must not already exist as a path in volumeDevices"));
            }
        }
        check_descending(&mount, "subPath", errors);
        check_descending(&mount, "subPathExpr", errors);
        let expression = mount.text("subPathExpr");
        if !expression.is_empty() && !mount.text("subPath").is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(Error::invalid(&mount.path.child("subPathExpr"), expression, detail));
        }
        check_mount_options(&mount, privileged, errors);
    }
}

fn check_mount_options(mount: &Node<'_>, privileged: bool, errors: &mut ErrorList) {
    let propagation = mount.text("mountPropagation");
    mount.check_word("mountPropagation", &PROPAGATIONS, errors);
    if propagation == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(Error::forbidden(&mount.path.child("mountPropagation"), detail));
    }
    mount.check_word("recursiveReadOnly", &RECURSIVE_READ_ONLY, errors);
    if matches!(mount.text("recursiveReadOnly"), "Enabled" | "IfPossible") {
        let path = mount.path.child("recursiveReadOnly");
        if !mount.flag("readOnly") {
            errors.push(Error::forbidden(&path, "may only be specified when readOnly is true"));
        }
        if !matches!(propagation, "" | "None") {
            let detail = "may only be specified when mountPropagation is None or not specified";
            errors.push(Error::forbidden(&path, detail));
        }
    }
}

fn check_devices(list: &Node<'_>, mounts: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    let (mount_names, mount_paths) = (texts(mounts, "name"), texts(mounts, "mountPath"));
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in list.items().filter(|device| device.value.is_object()) {
        if let Some(name) = device.require_text("name", errors) {
            let path = device.path.child("name");
            if !names.insert(name) {
                errors.push(Error::invalid(&path, name, "must be unique"));
            }
            match volumes.get(name) {
                None => errors.push(Error::not_found(&path, name)),
                Some(volume) if volume.get("persistentVolumeClaim").or_else(|| volume.get("ephemeral")).is_none() => {
                    let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    errors.push(Error::invalid(&path, name, detail));
                }
                Some(_) => {}
            }
            if mount_names.contains(name) {
                errors.push(Error::invalid(&path, name, "must not already exist in volumeMounts"));
            }
        }
        if let Some(device_path) = device.require_text("devicePath", errors) {
            let path = device.path.child("devicePath");
            if !paths.insert(device_path) {
                errors.push(Error::invalid(&path, device_path, "must be unique"));
            }
            if device_path.split('/').any(|part| part == "..") {
                errors.push(Error::invalid(&path, device_path, "can not contain backsteps ('..')"));
            }
            if mount_paths.contains(device_path) {
                errors.push(Error::invalid(&path, device_path, "must not already exist as a path in volumeMounts"));
            }
        }
    }
}
