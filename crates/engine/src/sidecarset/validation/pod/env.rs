//! Environment variables and where their values come from.

use admission::field::{Error, ErrorList};
use admission::format::Quantity;
use admission::format::names::{config_map_key, dns1123_label, dns1123_subdomain, env_var_name, qualified_name};
use serde::Deserialize as _;

use super::paths::check_no_backsteps;
use super::{Node, Volumes};

const FIELD_PATHS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What `ConvertDownwardAPIFieldLabel` of `k8s.io/kubernetes/pkg/apis/core/pods` knows beyond [`FIELD_PATHS`].
const OTHER_POD_FIELDS: [&str; 6] = [
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
    "spec.host",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Checks `env` of a container.
pub fn check_env(list: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    for variable in list.items().filter(|variable| variable.value.is_object()) {
        variable.require_text("name", errors);
        variable.check_text("name", env_var_name, errors);
        let Some(from) = variable.get("valueFrom") else { continue };
        check_sources(&from, volumes, errors);
        let sources = SOURCES.iter().filter(|source| from.get(source).is_some()).count();
        let wrong = match sources {
            0 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            _ if !variable.text("value").is_empty() => "may not be specified when `value` is not empty",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(Error::invalid(&from.path, "", wrong));
    }
}

fn check_sources(from: &Node<'_>, volumes: &Volumes<'_>, errors: &mut ErrorList) {
    if let Some(field) = from.get("fieldRef") {
        check_field_ref(&field, &FIELD_PATHS, errors);
    }
    if let Some(resource) = from.get("resourceFieldRef") {
        check_resource_field_ref(&resource, errors);
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(key) = from.get(source) {
            let name = key.text("name");
            let wrong = dns1123_subdomain(name).into_iter();
            errors.extend(wrong.map(|message| Error::invalid(&key.path.child("name"), name, message)));
            key.require_text("key", errors);
            key.check_text("key", config_map_key, errors);
        }
    }
    if let Some(file) = from.get("fileKeyRef") {
        file.require_text("key", errors);
        file.check_text("key", env_var_name, errors);
        file.require_text("path", errors);
        check_no_backsteps(&file, "path", errors);
        file.check_text("volumeName", dns1123_label, errors);
        if let Some(name) = file.require_text("volumeName", errors) {
            let path = file.path.child("volumeName");
            match volumes.get(name) {
                None => errors.push(Error::not_found(&path, name)),
                Some(volume) if volume.get("emptyDir").is_none_or(serde_json::Value::is_null) => {
                    errors.push(Error::invalid(&path, name, "referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    }
}

/// Checks `envFrom` of a container.
pub fn check_env_from(list: &Node<'_>, errors: &mut ErrorList) {
    for from in list.items().filter(|from| from.value.is_object()) {
        from.check_text("prefix", env_var_name, errors);
        let mut sources = 0;
        for source in ["configMapRef", "secretRef"] {
            if let Some(reference) = from.get(source) {
                sources += 1;
                reference.require_text("name", errors);
                reference.check_text("name", dns1123_subdomain, errors);
            }
        }
        let wrong = match sources {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(Error::invalid(&from.path, "", wrong));
    }
}

/// Checks a reference to a field of the pod, one of `supported`.
pub fn check_field_ref(reference: &Node<'_>, supported: &[&str], errors: &mut ErrorList) {
    let Some(version) = reference.require_text("apiVersion", errors) else { return };
    let Some(field) = reference.require_text("fieldPath", errors) else { return };
    let path = reference.path.child("fieldPath");
    let mut unconvertible = |reason: String| {
        errors.push(Error::invalid(&path, field, format!("error converting fieldPath: {reason}")));
    };
    let subscripted =
        field.strip_suffix("']").and_then(|rest| rest.split_once("['")).filter(|(map, _)| !map.is_empty());
    match subscripted {
        _ if version != "v1" => unconvertible(format!("unsupported pod version: {version}")),
        Some(("metadata.labels", key)) => {
            errors.extend(qualified_name(key).into_iter().map(|message| Error::invalid(&path, key, message)));
        }
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            errors.extend(qualified_name(&key).into_iter().map(|message| Error::invalid(&path, &key, message)));
        }
        Some(_) => unconvertible(format!("field label does not support subscript: {field}")),
        None if field == "spec.host" && supported.contains(&"spec.nodeName") => {}
        None if supported.contains(&field) => {}
        None if FIELD_PATHS.contains(&field) || OTHER_POD_FIELDS.contains(&field) => {
            errors.push(Error::not_supported(&path, field, supported));
        }
        None => unconvertible(format!("field label not supported: {field}")),
    }
}

/// Checks a reference to a resource of a container.
pub fn check_resource_field_ref(reference: &Node<'_>, errors: &mut ErrorList) {
    let Some(resource) = reference.require_text("resource", errors) else { return };
    let huge_pages = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if !huge_pages && !RESOURCES.contains(&resource) {
        errors.push(Error::not_supported(&reference.path.child("resource"), resource, &RESOURCES));
    }
    let Some(divisor) = reference.get("divisor") else { return };
    let quantity = match Quantity::deserialize(divisor.value) {
        Ok(quantity) if quantity.is_zero() => return,
        Ok(quantity) => quantity.to_string(),
        Err(error) => {
            errors.push(Error::invalid(&divisor.path, divisor.value, error.to_string()));
            return;
        }
    };
    let what = resource.split_once('.').map_or("", |(_, what)| what);
    let of = match what {
        "cpu" if matches!(quantity.as_str(), "1m" | "1") => return,
        "cpu" => {
            let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
            return errors.push(Error::invalid(&divisor.path, resource, detail));
        }
        "memory" => "memory",
        "ephemeral-storage" => "local ephemeral storage",
        _ if huge_pages => "hugepages",
        _ => return,
    };
    let units = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    if !units.contains(&quantity.as_str()) {
        let detail = format!("only divisor's values {} are supported with the {of} resource", units.join(", "));
        errors.push(Error::invalid(&divisor.path, resource, detail));
    }
}
