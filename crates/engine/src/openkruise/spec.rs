//! The spec: its own fields, and the defaults that are not OpenKruise's.

use std::collections::BTreeSet;

use admission::field::{Error, Path};
use serde_json::{Map, Value, json};

use super::metadata::Label;
use super::{Findings, Version, containers, strategy};
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::sidecarset::platform::is_for_windows;
use crate::sidecarset::vocabulary::{
    CLASH_REFUSE, JOB_INJECT, JOB_NATIVE_SIDECAR, OPT_OUT_ALLOWED, PLATFORM_LINUX, PLATFORM_WINDOWS,
};

/// Fields of both versions.
const COMMON: [&str; 10] = [
    "selector",
    "namespaceSelector",
    "initContainers",
    "containers",
    "volumes",
    "updateStrategy",
    "injectionStrategy",
    "imagePullSecrets",
    "revisionHistoryLimit",
    "patchPodMetadata",
];

/// A label of namespaces that OpenKruise's webhook for pods leaves out.
const CONTROL_PLANE: &str = "control-plane";

/// The spec of our set.
pub(super) fn convert(
    spec: Option<&Value>,
    label: Label,
    version: Version,
    findings: &mut Findings,
) -> Map<String, Value> {
    let path = Path::new("spec");
    let Some(Value::Object(fields)) = spec else {
        findings.errors.push(Error::required(&path, "a set without a spec injects nothing"));
        return Map::new();
    };
    let mut spec = fields.clone();
    spec.retain(|_, value| !value.is_null());
    let more = if version == Version::V1alpha1 { "namespace" } else { "customVersion" };
    findings.refuse_unknown(&spec, &[&COMMON[..], &[more]].concat(), Some(&path));
    if let Some((label, custom_version)) = label {
        findings.note(&label, "written as spec.customVersion");
        spec.insert("customVersion".to_owned(), custom_version.into());
    }
    for list in ["initContainers", "containers"] {
        if let Some(value) = spec.get_mut(list) {
            containers::convert(value, &path.child(list), findings);
        }
    }
    if let Some(list) = spec.get_mut("initContainers") {
        containers::sort(list, &path.child("initContainers"), findings);
    }
    let injection = spec.get("injectionStrategy").cloned();
    if let Some(value) = spec.get_mut("updateStrategy") {
        strategy::update(value, injection.as_ref(), &path.child("updateStrategy"), findings);
    }
    let update = spec.get("updateStrategy").cloned().unwrap_or_default();
    if let Some(value) = spec.get_mut("injectionStrategy") {
        strategy::injection(value, &update, &path.child("injectionStrategy"), findings);
    }
    secrets(&mut spec, &path.child("imagePullSecrets"), findings);
    // Empty as they came, or by what was left out of them.
    for field in ["updateStrategy", "injectionStrategy", "imagePullSecrets"] {
        remove_empty(&mut spec, field);
    }
    namespaces(&mut spec, &path, findings);
    write_out_defaults(&mut spec, &path, findings);
    spec
}

/// Takes away a field that holds nothing.
pub(super) fn remove_empty(fields: &mut Map<String, Value>, field: &str) {
    let is_empty = match fields.get(field) {
        Some(Value::Object(inner)) => inner.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    if is_empty {
        fields.remove(field);
    }
}

/// OpenKruise adds a name once, and an empty one nowhere.
fn secrets(spec: &mut Map<String, Value>, path: &Path, findings: &mut Findings) {
    let Some(Value::Array(secrets)) = spec.get_mut("imagePullSecrets") else { return };
    let before = secrets.len();
    let mut seen = BTreeSet::new();
    secrets.retain(|secret| match secret.get("name").and_then(Value::as_str) {
        Some(name) => !name.is_empty() && seen.insert(name.to_owned()),
        // What is of the wrong type is left to the validation of our set.
        None => !secret.is_object() || secret.get("name").is_some_and(|name| !name.is_null()),
    });
    if secrets.len() < before {
        findings.note(path, "names that are empty, or there already, left out");
    }
}

/// Where the set injects. OpenKruise's webhook is not called for namespaces of one label, whatever a set selects.
fn namespaces(spec: &mut Map<String, Value>, path: &Path, findings: &mut Findings) {
    let path = path.child("namespaceSelector");
    match spec.get("namespace") {
        Some(Value::String(name)) if name.is_empty() => drop(spec.remove("namespace")),
        Some(Value::String(_)) => {
            if spec.remove("namespaceSelector").is_some() {
                findings.note(&path, "left out: in OpenKruise namespace takes its place");
            }
            return;
        }
        _ => {}
    }
    let selector = spec.entry("namespaceSelector").or_insert_with(|| json!({"matchExpressions": []}));
    let Value::Object(selector) = selector else { return };
    // An empty one is refused on both sides.
    if selector.is_empty() || has_term(selector, CONTROL_PLANE, "DoesNotExist") {
        return;
    }
    if lists_names(selector) {
        let text = format!(
            "no term is added, as the set lists namespaces by name; OpenKruise's webhook leaves out those among them with the label \
             {CONTROL_PLANE}"
        );
        findings.note(&path, text);
        return;
    }
    let terms = selector.entry("matchExpressions").or_insert_with(|| json!([]));
    if let Value::Array(terms) = terms {
        terms.push(json!({"key": CONTROL_PLANE, "operator": "DoesNotExist"}));
        let text = format!(
            "leaves out namespaces with the label {CONTROL_PLANE}, as OpenKruise's webhook does for every set; remove the term if none is to be left out"
        );
        findings.note(&path, text);
    }
}

/// Whether a selector of namespaces says which ones by name, and not only which ones it leaves out.
fn lists_names(selector: &Map<String, Value>) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    labels.is_some_and(|labels| labels.contains_key(NAMESPACE_NAME_LABEL))
        || has_term(selector, NAMESPACE_NAME_LABEL, "In")
}

fn has_term(selector: &Map<String, Value>, key: &str, operator: &str) -> bool {
    let terms = selector.get("matchExpressions").and_then(Value::as_array);
    let is = |term: &Value, field: &str, text: &str| term.get(field).is_some_and(|found| found == text);
    terms.into_iter().flatten().any(|term| is(term, "key", key) && is(term, "operator", operator))
}

/// Fields that OpenKruise does not have, with what comes closest to what it does.
fn write_out_defaults(spec: &mut Map<String, Value>, path: &Path, findings: &mut Findings) {
    let any = |is: fn(&RawObject) -> bool| {
        ["initContainers", "containers"].into_iter().any(|list| {
            let containers = spec.get(list).and_then(Value::as_array).into_iter().flatten();
            containers.filter_map(Value::as_object).any(is)
        })
    };
    let platform = if any(is_for_windows) { PLATFORM_WINDOWS } else { PLATFORM_LINUX };
    let (job_pods, of_jobs) = if any(containers::is_terminated) {
        (JOB_NATIVE_SIDECAR, "in place of OpenKruise's job sidecar terminator, which the set asks for by a variable")
    } else {
        (
            JOB_INJECT,
            "pods of Jobs get the containers as other pods do; NativeSidecar, Outrider's default, lets such pods end",
        )
    };
    let of_clashes =
        "a pod that cannot have the set is refused; OpenKruise would replace its container, or use its volume";
    let of_opt_out = "a pod may opt out by the annotation outrider.dev/skip, which OpenKruise does not have; with Denied, pods that OpenKruise \
                      injected are not recognised";
    let of_platform = "pods of the other operating system go without the set; OpenKruise does not distinguish them";
    for (field, value, text) in [
        ("jobPods", job_pods, of_jobs),
        ("clashPolicy", CLASH_REFUSE, of_clashes),
        ("optOut", OPT_OUT_ALLOWED, of_opt_out),
        ("platform", platform, of_platform),
    ] {
        // A field of that name in OpenKruise's manifest has been refused.
        spec.entry(field).or_insert_with(|| value.into());
        findings.note(&path.child(field), format!("{value}: {text}"));
    }
}
