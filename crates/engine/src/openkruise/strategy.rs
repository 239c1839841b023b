//! How running pods follow a set, and which form new pods get.

use admission::field::{Error, Path};
use serde_json::{Map, Value, json};

use super::Findings;
use crate::sidecarset::vocabulary::{NOT_UPDATE, REVISION_PARTIAL, ROLLING_UPDATE, UPDATE_TYPES};

const UPDATE: [&str; 7] =
    ["type", "paused", "selector", "partition", "maxUnavailable", "priorityStrategy", "scatterStrategy"];
const INJECTION: [&str; 2] = ["paused", "revision"];
const REVISION: [&str; 3] = ["customVersion", "revisionName", "policy"];

/// Converts `spec.updateStrategy` in its place. `injection` is `spec.injectionStrategy`.
pub(super) fn update(strategy: &mut Value, injection: Option<&Value>, path: &Path, findings: &mut Findings) {
    let Value::Object(strategy) = strategy else { return };
    findings.refuse_unknown(strategy, &UPDATE, Some(path));
    let type_ = text(strategy, "type");
    if !type_.is_empty() && !UPDATE_TYPES.contains(&type_) {
        let note = format!("{type_:?} is no type: written as {ROLLING_UPDATE}, as OpenKruise takes it");
        findings.note(&path.child("type"), note);
        strategy.insert("type".to_owned(), ROLLING_UPDATE.into());
    }
    let is_rolling = text(strategy, "type") != NOT_UPDATE;
    for field in ["partition", "maxUnavailable"] {
        at_most_all(strategy, field, path, findings);
    }
    max_unavailable(strategy, is_rolling, &path.child("maxUnavailable"), findings);
    if is_rolling {
        let policy = injection.and_then(|injection| injection.pointer("/revision/policy"));
        let is_share = strategy.get("partition").is_some_and(Value::is_string);
        // It is one of workloads then, as the note about the policy says.
        let is_of_workloads = is_share && policy.is_some_and(|policy| policy == REVISION_PARTIAL);
        if !is_of_workloads && amount(strategy, "partition").is_some_and(|amount| amount > 0) {
            let note = "counts all pods that carry the set; in OpenKruise those that wait and can be changed in place";
            findings.note(&path.child("partition"), note);
        }
        priority(strategy, &path.child("priorityStrategy"), findings);
    }
}

fn text<'f>(fields: &'f Map<String, Value>, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The number of `5` or `5%`.
fn amount(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    match fields.get(name)? {
        Value::String(text) => text.strip_suffix('%').and_then(|digits| digits.parse().ok()),
        number => number.as_u64(),
    }
}

/// OpenKruise takes a share above 100 percent as all pods.
fn at_most_all(strategy: &mut Map<String, Value>, field: &'static str, path: &Path, findings: &mut Findings) {
    let is_share = strategy.get(field).is_some_and(Value::is_string);
    if is_share && amount(strategy, field).is_some_and(|amount| amount > 100) {
        findings.note(&path.child(field), "written as 100%, which is what more than all pods means");
        strategy.insert(field.to_owned(), "100%".into());
    }
}

fn max_unavailable(strategy: &mut Map<String, Value>, is_rolling: bool, path: &Path, findings: &mut Findings) {
    match amount(strategy, "maxUnavailable") {
        Some(0) if is_rolling => {
            let detail = "with 0 a rollout changes no pod that is ready: write paused: true, or at least 1";
            findings.errors.push(Error::forbidden(path, detail));
        }
        Some(0) => {
            findings.note(path, "left out: it has no effect with NotUpdate, and Outrider refuses 0");
            strategy.remove("maxUnavailable");
        }
        Some(_) if is_rolling && strategy.get("maxUnavailable").is_some_and(Value::is_string) => {
            let note = "a share of the pods that are ready, or would be but for a rollout; in OpenKruise of all that carry the set";
            findings.note(path, note);
        }
        _ => {}
    }
}

fn priority(strategy: &mut Map<String, Value>, path: &Path, findings: &mut Findings) {
    let Some(Value::Object(priority)) = strategy.get_mut("priorityStrategy") else { return };
    if priority.get("orderPriority").and_then(Value::as_array).is_some_and(|order| !order.is_empty()) {
        findings.note(&path.child("orderPriority"), "pods without any of the keys go last; in OpenKruise first");
    }
    if let Some(Value::Array(weights)) = priority.get_mut("weightPriority") {
        let before = weights.len();
        weights.retain(|term| term.get("weight") != Some(&json!(0)));
        if weights.len() < before {
            findings.note(&path.child("weightPriority"), "terms of weight 0 left out: they have no effect");
        }
    }
}

/// Converts `spec.injectionStrategy` in its place.
pub(super) fn injection(strategy: &mut Value, update: &Value, path: &Path, findings: &mut Findings) {
    let Value::Object(strategy) = strategy else { return };
    findings.refuse_unknown(strategy, &INJECTION, Some(path));
    let path = path.child("revision");
    let Some(Value::Object(revision)) = strategy.get_mut("revision") else { return };
    findings.refuse_unknown(revision, &REVISION, Some(&path));
    if !text(revision, "revisionName").is_empty() {
        let detail = "names a ControllerRevision of OpenKruise, which Outrider does not read: give that form a customVersion here, and \
                      name it by customVersion (docs/migration.md)";
        return findings.errors.push(Error::forbidden(&path.child("revisionName"), detail));
    }
    if text(revision, "customVersion").is_empty() {
        // OpenKruise refuses it; what is stored is older than that rule.
        strategy.remove("revision");
        return findings.note(&path, "left out: it names no revision");
    }
    let warning = "the set needs a revision of that version here before new pods can get it: apply the form with that customVersion first \
                   (docs/migration.md)";
    findings.warn(&path.child("customVersion"), warning);
    note_policy(text(revision, "policy"), update, &path.child("policy"), findings);
}

fn note_policy(policy: &str, update: &Value, path: &Path, findings: &mut Findings) {
    let is_share = update.get("partition").is_some_and(Value::is_string);
    let has_selector = update.get("selector").is_some_and(Value::is_object);
    if policy == REVISION_PARTIAL {
        if is_share {
            findings.note(
                path,
                "updateStrategy.partition is a share of workloads, always the same ones, for new pods and for rollouts; in OpenKruise it \
                 is random for each new pod, and rollouts count the pods that wait",
            );
        }
    } else if has_selector {
        findings
            .note(path, "pods that updateStrategy.selector matches get the current form; in OpenKruise the pinned one");
    }
}
