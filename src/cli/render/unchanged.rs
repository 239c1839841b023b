//! Why pods stay as they are: an empty difference does not say.

use std::collections::BTreeMap;

use admission::Reason;
use engine::reasons;
use serde_json::Value;

use engine::pod::select::SKIP_ANNOTATION;
use engine::sidecarset::compiled::{CompiledSet, NamespaceScope};
use engine::snapshot::Snapshot;

/// Sets whose selectors are listed.
const SETS_TOLD: usize = 3;

/// The end of a sentence about a pod that nothing is added to.
pub fn why(reason: Reason, pod: &Value, namespace: &str, snapshot: &Snapshot) -> String {
    match reason {
        reasons::NO_MATCH => no_match(&labels(pod), namespace, snapshot),
        reasons::NAMESPACE_EXCLUDED => format!("pods of namespace {namespace:?} are left alone"),
        reasons::OPTED_OUT => format!("it opts out by its annotation {SKIP_ANNOTATION}"),
        reasons::INVALID => "spec.containers is empty, and the API server refuses such a pod".to_owned(),
        reasons::ALREADY_INJECTED | reasons::INJECTED_BY_OPENKRUISE => "it has what its sets add already".to_owned(),
        other => format!("{other}: {}", reasons::meaning(other)),
    }
}

fn no_match(labels: &BTreeMap<&str, &str>, namespace: &str, snapshot: &Snapshot) -> String {
    if snapshot.sets.is_empty() {
        return "there is no set, and no admission plugin changes it".to_owned();
    }
    let (elsewhere, others): (Vec<&CompiledSet>, Vec<&CompiledSet>) =
        snapshot.sets.iter().map(AsRef::as_ref).partition(|set| set.selector.matches(labels));
    if !elsewhere.is_empty() {
        let sets = listed(&elsewhere, |set| format!("{:?} is for {}", set.name, namespaces(&set.scope)));
        return format!("no set that selects its labels is for namespace {namespace:?}: {sets}");
    }
    // Who mistyped a value wants to know of that key.
    let (near, far): (Vec<&CompiledSet>, Vec<&CompiledSet>) = others
        .into_iter()
        .partition(|set| set.selector.requirements().iter().any(|term| labels.contains_key(term.key())));
    let sets =
        listed(if near.is_empty() { &far } else { &near }, |set| format!("{:?} selects {}", set.name, set.selector));
    if labels.is_empty() {
        return format!("no set selects a pod without labels: {sets}");
    }
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("no set selects its labels ({}): {sets}", labels.join(","))
}

fn listed(sets: &[&CompiledSet], word: impl Fn(&CompiledSet) -> String) -> String {
    let mut words: Vec<String> = sets.iter().take(SETS_TOLD).map(|set| word(set)).collect();
    if let Some(left_out @ 1..) = sets.len().checked_sub(SETS_TOLD) {
        words.push(format!("and {left_out} more"));
    }
    words.join(", ")
}

fn namespaces(scope: &NamespaceScope) -> String {
    match scope {
        NamespaceScope::All => "every namespace".to_owned(),
        NamespaceScope::Named(name) => format!("namespace {name:?}"),
        NamespaceScope::Selected { selector, .. } => format!("namespaces with {selector}"),
    }
}

fn labels(pod: &Value) -> BTreeMap<&str, &str> {
    let labels = pod.pointer("/metadata/labels").and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}
