//! Name, labels and annotations.

use admission::field::{Error, Path};
use serde_json::{Map, Value};

use super::{Findings, Version};
use crate::sidecarset::api::GROUP;

/// Fields that only the API server writes.
const OF_THE_SERVER: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Annotations that kubectl and OpenKruise write themselves.
const OF_PROGRAMS: [&str; 3] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "kruise.io/sidecarset-hash",
    "kruise.io/sidecarset-hash-without-image",
];

const CANARY: &str = "apps.kruise.io/sidecarset-canary";
const BASE: &str = "apps.kruise.io/sidecarset-base";
const CUSTOM_VERSION: &str = "apps.kruise.io/sidecarset-custom-version";

/// The custom version that a label or an annotation of a set of v1alpha1 gives it, with its path.
pub(super) type Label = Option<(Path, String)>;

/// The metadata of our set, and the custom version that it gives.
pub(super) fn convert(
    metadata: Option<&Value>,
    version: Version,
    findings: &mut Findings,
) -> (Map<String, Value>, Label) {
    let path = Path::new("metadata");
    let mut converted = Map::new();
    let empty = Map::new();
    let fields = metadata.and_then(Value::as_object).unwrap_or(&empty);
    // A label is before an annotation, as where Outrider reads both of a set.
    let custom_version =
        ["labels", "annotations"].into_iter().filter(|_| version == Version::V1alpha1).find_map(|map| {
            let text = fields.get(map)?.get(CUSTOM_VERSION)?.as_str().filter(|text| !text.is_empty())?;
            Some((path.child(map).key(CUSTOM_VERSION), text.to_owned()))
        });
    if fields.get("name").and_then(Value::as_str).is_none_or(str::is_empty) {
        let detail =
            "the name is how Outrider recognises pods that OpenKruise injected; use the set's name in the cluster";
        findings.errors.push(Error::required(&path.child("name"), detail));
    }
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let path = path.child(name.clone());
        match name.as_str() {
            "name" => drop(converted.insert(name.clone(), value.clone())),
            "labels" => {
                converted.extend(labels(value, &path, version, findings).map(|labels| (name.clone(), labels)));
            }
            "annotations" => {
                let kept = annotations(value, &path, version, findings);
                converted.extend(kept.map(|annotations| (name.clone(), annotations)));
            }
            "finalizers" | "ownerReferences" => findings.note(&path, "left out: it is about OpenKruise's object"),
            "namespace" => findings.note(&path, "left out: sets are cluster-scoped"),
            "deletionTimestamp" => {
                findings
                    .warn(&path, "OpenKruise's set is being deleted; apply the printed one only if it should go on");
            }
            // Of no effect beside a name, which is required here, and without a deletion.
            "generateName" | "deletionGracePeriodSeconds" => {}
            known if OF_THE_SERVER.contains(&known) => {}
            _ => findings.errors.push(Error::forbidden(&path, "no object has such a field; correct or remove it")),
        }
    }
    (converted, custom_version)
}

/// A map of texts, without the entries that are not carried over; `None` where nothing is left. What is no map is left to the
/// validation of our set.
fn kept(value: &Value, mut take: impl FnMut(&str, &Value) -> Option<String>) -> Option<Value> {
    let Value::Object(entries) = value else { return Some(value.clone()) };
    let kept: Map<String, Value> =
        entries.iter().filter_map(|(key, value)| Some((take(key, value)?, value.clone()))).collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

/// Whether a key of a label or an annotation is of one of OpenKruise's domains.
fn is_of_openkruise(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain == "kruise.io" || domain.ends_with(".kruise.io")
}

/// Notes that a key of `OpenKruise` is left out, but for the custom version where that becomes a field.
fn leave_out(key: &str, path: &Path, version: Version, findings: &mut Findings) {
    match (key, version) {
        (CUSTOM_VERSION, Version::V1alpha1) => {}
        (CUSTOM_VERSION, _) => findings.note(path, "left out: in v1beta1 the field spec.customVersion counts"),
        _ => findings.note(path, "left out: it is OpenKruise's, and Outrider does not read it"),
    }
}

fn labels(value: &Value, path: &Path, version: Version, findings: &mut Findings) -> Option<Value> {
    kept(value, |key, _| {
        if is_of_openkruise(key) {
            leave_out(key, &path.key(key), version, findings);
            return None;
        }
        Some(key.to_owned())
    })
}

fn annotations(value: &Value, path: &Path, version: Version, findings: &mut Findings) -> Option<Value> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_canary = text(CANARY) == "true" && !text(BASE).is_empty();
    kept(value, |key, _| {
        if OF_PROGRAMS.contains(&key) {
            return None;
        }
        let path = path.key(key);
        match key {
            CANARY | BASE if is_canary => {
                let ours = key.replacen(super::GROUP, GROUP, 1);
                findings.note(&path, format!("written as {ours}"));
                Some(ours)
            }
            CANARY | BASE => {
                let text =
                    "left out: a set is a canary only with \"true\" and with the name of its base, in OpenKruise too";
                findings.note(&path, text);
                None
            }
            _ if is_of_openkruise(key) => {
                leave_out(key, &path, version, findings);
                None
            }
            _ => Some(key.to_owned()),
        }
    })
}
