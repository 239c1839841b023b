//! One form for what means the same: the basis of the set's hash and of comparing.
//!
//! The algorithm behind the prefix `v1:` never changes, so that an upgrade of Outrider changes no pod's state. What has to
//! change gets a new prefix.

mod strict;
mod volume;

pub use strict::{strict_container, strict_volume, without_unset};
pub use volume::{canonical_volume, print_settled};

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::sidecarset::api::{AppContainers, RawObject, SidecarContainer, SidecarSetSpec};
use crate::sidecarset::defaults::image::pull_policy;
use crate::sidecarset::vocabulary::{ALL_CONTAINERS, RETAIN, SECURITY_COMPLETE};

/// Names of the fields of a spec that are injected.
pub const INJECTED_FIELDS: [&str; 8] = [
    "containers",
    "initContainers",
    "volumes",
    "imagePullSecrets",
    "resourceDefaults",
    "appContainers",
    "podSecurity",
    "patchPodMetadata",
];

/// The fields of a spec that are injected, as they are written: those that the hash is of. What is not set is left out.
pub fn injected_fields(spec: &SidecarSetSpec) -> RawObject {
    let mut fields = into_map(json!(spec));
    INJECTED_FIELDS
        .into_iter()
        .filter_map(|field| fields.remove_entry(field))
        .filter(|(_, value)| !value.is_null())
        .collect()
}

/// `v1:` and 16 hex digits of SHA-256 over the key-sorted JSON of what the set injects, defaults and nulls removed.
pub fn hash(spec: &SidecarSetSpec, volumes: &[&RawObject]) -> String {
    let sum = digest(&SHA256, text(spec, volumes).as_bytes());
    let hex = sum.as_ref().iter().take(8).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("v1:{hex}")
}

/// What the hash is of.
fn text(spec: &SidecarSetSpec, volumes: &[&RawObject]) -> String {
    sorted_json(&without_empty(injected(spec, volumes)))
}

/// [`injected_fields`] in the form that means the same for all.
fn injected(spec: &SidecarSetSpec, volumes: &[&RawObject]) -> Value {
    let containers = |list: &Option<Vec<SidecarContainer>>, side: &str| {
        list.iter()
            .flatten()
            .map(|container| Value::Object(canonical_container(&container.0, side)))
            .collect::<Vec<_>>()
    };
    let secrets: Vec<Value> =
        spec.image_pull_secrets.iter().flatten().map(|secret| json!({"name": secret.name})).collect();
    let volumes: Vec<Value> = volumes.iter().map(|volume| Value::Object(canonical_volume(volume))).collect();
    json!({
        "containers": containers(&spec.containers, "BeforeAppContainer"),
        "initContainers": containers(&spec.init_containers, "AfterAppContainer"),
        "volumes": volumes,
        "imagePullSecrets": secrets,
        "resourceDefaults": spec.resource_defaults,
        "appContainers": app_containers(spec),
        "podSecurity": spec.pod_security.as_ref().filter(|word| *word == SECURITY_COMPLETE),
        "patchPodMetadata": annotations(spec),
    })
}

/// The annotations by policy: into how many entries they are written makes no difference.
fn annotations(spec: &SidecarSetSpec) -> Value {
    let mut by_policy: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for entry in spec.patch_pod_metadata.iter().flatten() {
        let policy = entry.patch_policy.as_deref().filter(|policy| !policy.is_empty()).unwrap_or(RETAIN);
        let pairs = entry.annotations.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
        by_policy.entry(policy).or_default().extend(pairs);
    }
    json!(by_policy)
}

/// JSON with sorted keys.
pub fn sorted_json(value: &Value) -> String {
    let mut text = String::new();
    write_sorted(&mut text, value);
    text
}

/// Additions to the pod's own containers, in the form of containers.
fn app_containers(spec: &SidecarSetSpec) -> Vec<Value> {
    let entries = spec.app_containers.iter().flatten();
    let entry = |entry: &AppContainers| {
        let parts = json!({
            "containerNames": entry.container_names,
            "initContainers": entry.init_containers.filter(|is| *is),
            "env": entry.env,
            "overwriteEnv": entry.overwrite_env.filter(|is| *is),
            "volumeMounts": entry.volume_mounts,
        });
        Value::Object(canonical_container(&into_map(parts), ""))
    };
    entries.map(entry).collect()
}

/// A container without nulls, empty parts and default values.
pub fn canonical_container(container: &RawObject, default_side: &str) -> RawObject {
    into_map(without_empty(Value::Object(container_without_defaults(container.clone(), default_side))))
}

fn container_without_defaults(mut container: RawObject, default_side: &str) -> RawObject {
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or_default());
    for (field, default) in [
        ("imagePullPolicy", policy),
        ("terminationMessagePath", "/dev/termination-log"),
        ("terminationMessagePolicy", "File"),
        ("podInjectPolicy", default_side),
    ] {
        drop_default(&mut container, field, default);
    }
    for field in ["stdin", "stdinOnce", "tty", "shareServiceAccountToken"] {
        drop_default(&mut container, field, &false);
    }
    for (outer, field, default) in [
        ("upgradeStrategy", "upgradeType", "ColdUpgrade"),
        ("shareVolumePolicy", "type", "disabled"),
        ("shareVolumeDevicePolicy", "type", "disabled"),
        ("resourcesPolicy", "targetContainersNameRegex", ALL_CONTAINERS),
    ] {
        if let Some(Value::Object(map)) = container.get_mut(outer) {
            drop_default(map, field, default);
        }
    }
    for_each(&mut container, "transferEnv", |entry| {
        if let Some(field_ref) = entry.get_mut("sourceContainerNameFrom").and_then(|from| from.get_mut("fieldRef")) {
            drop_api_version(field_ref);
        }
    });
    for_each(&mut container, "ports", |port| drop_default(port, "protocol", "TCP"));
    for_each(&mut container, "volumeMounts", |mount| drop_default(mount, "readOnly", &false));
    for_each(&mut container, "env", |env| {
        drop_default(env, "value", "");
        if let Some(field_ref) = env.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")) {
            drop_api_version(field_ref);
        }
        if let Some(Value::Object(from)) = env.get_mut("valueFrom") {
            volume::strip_divisor(from);
            if let Some(Value::Object(file)) = from.get_mut("fileKeyRef") {
                drop_default(file, "optional", &false);
            }
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(probe) {
            strip_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(handler) = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)) {
            strip_http_get(handler);
        }
    }
    container
}

fn strip_probe(probe: &mut RawObject) {
    for (field, default) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        drop_default(probe, field, &default);
    }
    if let Some(Value::Object(grpc)) = probe.get_mut("grpc") {
        drop_default(grpc, "service", "");
    }
    if let Some(Value::Object(get)) = probe.get_mut("httpGet") {
        strip_get(get);
    }
}

fn strip_http_get(handler: &mut Value) {
    if let Some(Value::Object(get)) = handler.get_mut("httpGet") {
        strip_get(get);
    }
}

fn strip_get(get: &mut RawObject) {
    drop_default(get, "path", "/");
    drop_default(get, "scheme", "HTTP");
}

fn drop_api_version(field_ref: &mut Value) {
    if let Value::Object(field_ref) = field_ref {
        drop_default(field_ref, "apiVersion", "v1");
    }
}

fn drop_default<T: ?Sized>(map: &mut RawObject, field: &str, default: &T)
where
    Value: PartialEq<T>,
{
    if map.get(field).is_some_and(|value| value == default) {
        map.remove(field);
    }
}

fn for_each(map: &mut RawObject, list: &str, mut each: impl FnMut(&mut RawObject)) {
    if let Some(Value::Array(items)) = map.get_mut(list) {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(&mut each);
    }
}

/// Without nulls, and without lists and maps that hold nothing once nulls are gone.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, without_empty(value)))
                .filter(|(_, value)| !is_empty(value))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_empty).collect()),
        other => other,
    }
}

/// Whether the value says nothing.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn into_map(value: Value) -> RawObject {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// JSON with sorted keys, whatever order `serde_json`'s features give its maps.
fn write_sorted(out: &mut String, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&admission::patch::quoted(key));
                out.push(':');
                write_sorted(out, map.get(key).unwrap_or(&Value::Null));
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(out, item);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
