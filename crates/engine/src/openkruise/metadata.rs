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
    let (mut converted, mut custom_version) = (Map::new(), None);
    let empty = Map::new();
    let fields = metadata.and_then(Value::as_object).unwrap_or(&empty);
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
                let kept = labels(value, &path, version, &mut custom_version, findings);
                converted.extend(kept.map(|labels| (name.clone(), labels)));
            }
            "annotations" => {
                let kept = annotations(value, &path, version, &mut custom_version, findings);
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

fn labels(
    value: &Value,
    path: &Path,
    version: Version,
    custom_version: &mut Label,
    findings: &mut Findings,
) -> Option<Value> {
    kept(value, |key, value| {
        let path = path.key(key);
        if key == CUSTOM_VERSION && version == Version::V1alpha1 {
            if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
                *custom_version = Some((path, text.to_owned()));
            }
            return None;
        }
        if is_of_openkruise(key) {
            findings.note(&path, if key == CUSTOM_VERSION { OF_V1BETA1 } else { LEFT });
            return None;
        }
        Some(key.to_owned())
    })
}

const OF_V1BETA1: &str = "left out: in v1beta1 the field spec.customVersion counts";
const LEFT: &str = "left out: it is OpenKruise's, and Outrider does not read it";

fn annotations(
    value: &Value,
    path: &Path,
    version: Version,
    custom_version: &mut Label,
    findings: &mut Findings,
) -> Option<Value> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let is_canary = text(CANARY) == "true" && !text(BASE).is_empty();
    kept(value, |key, value| {
        if OF_PROGRAMS.contains(&key) {
            return None;
        }
        let path = path.key(key);
        match key {
            CUSTOM_VERSION if version == Version::V1alpha1 => {
                // A label is before it, as where Outrider reads both of a set.
                let text = value.as_str().filter(|text| !text.is_empty() && custom_version.is_none());
                *custom_version = text.map(|text| (path, text.to_owned())).or_else(|| custom_version.take());
                None
            }
            CUSTOM_VERSION => {
                findings.note(&path, OF_V1BETA1);
                None
            }
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
                findings.note(&path, LEFT);
                None
            }
            _ => Some(key.to_owned()),
        }
    })
}
