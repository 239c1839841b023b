//! Volumes and the sources that people use most.

use std::collections::hash_map::Entry;

use admission::field::{Error, ErrorList, Path};
use admission::format::Quantity;
use admission::format::names::{LABEL_MAX_BYTES, dns1123_label, dns1123_subdomain};
use serde::Deserialize as _;

use super::env::{check_field_ref, check_resource_field_ref};
use super::paths::{check_no_backsteps, check_not_reserved};
use super::{Node, Volumes, claim_template, projections, rare_sources, shape};

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const FIELD_PATHS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// Checks the list; the result has every volume with a name, right or wrong, so that one fault is reported once.
pub fn check<'a>(list: &Node<'a>, errors: &mut ErrorList) -> Volumes<'a> {
    let mut volumes = Volumes::new();
    for volume in list.items() {
        if !volume.value.is_object() {
            continue;
        }
        check_source(&volume, errors);
        volume.check_text("name", dns1123_label, errors);
        if let Some(name) = volume.require_text("name", errors) {
            match volumes.entry(name) {
                Entry::Occupied(_) => errors.push(Error::duplicate(&volume.path.child("name"), name)),
                Entry::Vacant(place) => drop(place.insert(volume.value)),
            }
        }
    }
    volumes
}

/// An unknown field may be a source of a newer API, so it counts where one is needed, and not where one is too many.
fn check_source(volume: &Node<'_>, errors: &mut ErrorList) {
    let fields = volume.value.as_object().into_iter().flatten();
    let sources = fields.filter(|(field, value)| *field != "name" && !value.is_null()).map(|(field, _)| field);
    let (known, unknown): (Vec<_>, Vec<_>) = sources.partition(|field| shape::is_volume_field(field));
    if known.is_empty() && unknown.is_empty() {
        errors.push(Error::required(&volume.path, "must specify a volume type"));
    }
    for source in known.into_iter().skip(1) {
        errors.push(Error::forbidden(&volume.path.child(source.clone()), "may not specify more than 1 volume type"));
    }
    if let Some(source) = volume.get("emptyDir") {
        check_size_limit(&source, errors);
    }
    if let Some(source) = volume.get("hostPath")
        && source.require_text("path", errors).is_some()
    {
        check_no_backsteps(&source, "path", errors);
        source.check_word("type", &HOST_PATH_TYPES, errors);
    }
    if let Some(source) = volume.get("secret") {
        source.require_text("secretName", errors);
        check_mode(&source, "defaultMode", errors);
        check_items(&source, errors);
    }
    if let Some(source) = volume.get("configMap") {
        source.require_text("name", errors);
        check_mode(&source, "defaultMode", errors);
        check_items(&source, errors);
    }
    if let Some(source) = volume.get("downwardAPI") {
        check_mode(&source, "defaultMode", errors);
        source.child("items").items().for_each(|file| check_downward_file(&file, errors));
    }
    if let Some(source) = volume.get("projected") {
        projections::check(&source, errors);
    }
    check_other_sources(volume, errors);
    rare_sources::check(volume, errors);
}

fn check_other_sources(volume: &Node<'_>, errors: &mut ErrorList) {
    if let Some(source) = volume.get("persistentVolumeClaim") {
        source.require_text("claimName", errors);
    }
    if let Some(source) = volume.get("nfs") {
        source.require_text("server", errors);
        if source.require_text("path", errors).is_some_and(|path| !path.starts_with('/')) {
            errors.push(Error::invalid(&source.path.child("path"), source.text("path"), "must be an absolute path"));
        }
    }
    if let Some(source) = volume.get("csi") {
        if let Some(driver) = source.require_text("driver", errors) {
            check_driver(driver, &source.path.child("driver"), errors);
        }
        if let Some(secret) = source.get("nodePublishSecretRef") {
            secret.require_text("name", errors);
            secret.check_text("name", dns1123_subdomain, errors);
        }
    }
    if let Some(source) = volume.get("ephemeral") {
        match source.get("volumeClaimTemplate") {
            None => errors.push(Error::required(&source.path.child("volumeClaimTemplate"), "")),
            Some(template) => claim_template::check(&template, errors),
        }
    }
    if let Some(source) = volume.get("image") {
        source.require_text("reference", errors);
        source.check_word("pullPolicy", &PULL_POLICIES, errors);
    }
}

/// `ValidateCSIDriverName`: a subdomain but for its case, and short enough for a socket's path.
fn check_driver(driver: &str, path: &Path, errors: &mut ErrorList) {
    if driver.len() > LABEL_MAX_BYTES {
        errors.push(Error::too_long(path, LABEL_MAX_BYTES));
    }
    let wrong = dns1123_subdomain(&driver.to_lowercase()).into_iter();
    errors.extend(wrong.map(|message| Error::invalid(path, driver, message)));
}

fn check_size_limit(source: &Node<'_>, errors: &mut ErrorList) {
    let Some(limit) = source.get("sizeLimit") else { return };
    match Quantity::deserialize(limit.value) {
        Ok(quantity) if quantity.is_negative() => {
            errors.push(Error::forbidden(&limit.path, "SizeLimit field must be a valid resource quantity"));
        }
        Ok(_) => {}
        Err(error) => errors.push(Error::invalid(&limit.path, limit.value, error.to_string())),
    }
}

/// Checks `items` of a Secret or a `ConfigMap`.
pub fn check_items(source: &Node<'_>, errors: &mut ErrorList) {
    for item in source.child("items").items() {
        item.require_text("key", errors);
        item.require_text("path", errors);
        check_not_reserved(&item, "path", errors);
        check_mode(&item, "mode", errors);
    }
}

/// Checks a file of the downward API.
pub fn check_downward_file(file: &Node<'_>, errors: &mut ErrorList) {
    file.require_text("path", errors);
    check_not_reserved(file, "path", errors);
    match (file.get("fieldRef"), file.get("resourceFieldRef")) {
        (Some(field), other) => {
            check_field_ref(&field, &FIELD_PATHS, errors);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(Error::invalid(&file.path, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            if resource.require_text("containerName", errors).is_some() {
                check_resource_field_ref(&resource, errors);
            }
        }
        (None, None) => errors.push(Error::required(&file.path, "one of fieldRef and resourceFieldRef is required")),
    }
    check_mode(file, "mode", errors);
}

/// Checks the permissions at field `name`.
pub fn check_mode(node: &Node<'_>, name: &'static str, errors: &mut ErrorList) {
    if let Some(mode @ (..0 | 0o1000..)) = node.number(name) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(Error::invalid(&node.path.child(name), mode, detail));
    }
}
