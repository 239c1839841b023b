//! `patchPodMetadata`: annotations that the set gives to pods.

use std::collections::{BTreeMap, HashMap, HashSet};

use admission::field::{Error, ErrorList, Path};
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::format::names::qualified_name;
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::allow_list::AllowList;
use crate::sidecarset::api::SidecarSetSpec;
use crate::sidecarset::vocabulary::{MERGE_PATCH_JSON, OVERWRITE, RETAIN};
use crate::snapshot::configuration::{ALLOW_LIST_KEY, CONFIG_MAP, Configuration};

/// Checks the annotations of a set.
pub fn check(metadata: &Node<'_>, spec: &Node<'_>, configuration: &Configuration, errors: &mut ErrorList) {
    let labels = metadata.child("labels");
    let texts = labels.entries().filter_map(|(key, label)| Some((key.to_owned(), label.value.as_str()?.to_owned())));
    let labels: BTreeMap<String, String> = texts.collect();
    let mut seen = HashSet::new();
    let mut bytes = 0;
    let list = spec.child("patchPodMetadata");
    for entry in list.items().filter(|entry| entry.value.is_object()) {
        let annotations = entry.child("annotations");
        if annotations.entries().next().is_none() && matches!(annotations.value, Value::Null | Value::Object(_)) {
            errors.push(Error::required(&annotations.path, "an entry needs annotations"));
        }
        let is_merge = entry.text("patchPolicy") == MERGE_PATCH_JSON;
        for (key, annotation) in annotations.entries() {
            bytes += key.len() + annotation.value.as_str().map_or(0, str::len);
            check_key(key, &annotation.path, errors);
            if !seen.insert(key) {
                errors.push(Error::duplicate(&annotation.path, key));
            }
            if let (true, Some(text)) = (is_merge, annotation.value.as_str())
                && let Err(error) = serde_json::from_str::<Value>(text)
            {
                let detail = format!("{MERGE_PATCH_JSON} takes JSON: {error}");
                errors.push(Error::invalid(&annotation.path, text, detail));
            }
            if !configuration.allow_list.allows(&labels, key) {
                errors.push(Error::forbidden(&annotation.path, not_allowed(&configuration.allow_list)));
            }
        }
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(&list.path, ANNOTATIONS_MAX_BYTES));
    }
}

fn check_key(key: &str, path: &Path, errors: &mut ErrorList) {
    let wrong = qualified_name(&key.to_lowercase());
    errors.extend(wrong.into_iter().map(|message| Error::invalid(path, key, message)));
    // Outrider keeps its record of the sets there, and reads what pods opt out of.
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_own = domain.strip_suffix(api_domain!()).is_some_and(|below| below.is_empty() || below.ends_with('.'));
    if is_own {
        errors.push(Error::forbidden(path, "annotations of this domain are Outrider's own"));
    }
}

fn not_allowed(list: &AllowList) -> String {
    let place = format!("key {ALLOW_LIST_KEY} of ConfigMap {CONFIG_MAP} in Outrider's namespace");
    match list {
        AllowList::Absent => format!("no annotation is allowed, as there is no {place}"),
        AllowList::Unreadable(error) => format!("no annotation is allowed, as {place} cannot be read: {error}"),
        AllowList::Rules(_) => format!("no rule allows this annotation for the set; they are in {place}"),
    }
}

/// The keys of all annotations of a set.
pub fn keys<'a>(spec: &Node<'a>) -> Vec<&'a str> {
    let entries = spec.child("patchPodMetadata");
    let all =
        entries.items().flat_map(|entry| entry.child("annotations").entries().map(|(key, _)| key).collect::<Vec<_>>());
    all.collect()
}

/// Checks the annotations against those of a set that can meet this one in a pod: what one overwrites the other may not change.
pub fn check_against(spec: &Node<'_>, other_name: &str, other: &SidecarSetSpec, errors: &mut ErrorList) {
    let theirs = other.patch_pod_metadata.iter().flatten();
    let theirs: HashMap<&str, &str> = theirs
        .flat_map(|entry| {
            let policy = entry.patch_policy.as_deref().unwrap_or(RETAIN);
            entry.annotations.iter().flatten().map(move |(key, _)| (key.as_str(), policy))
        })
        .collect();
    if theirs.is_empty() {
        return;
    }
    for entry in spec.child("patchPodMetadata").items() {
        let own = entry.text("patchPolicy");
        for (key, annotation) in entry.child("annotations").entries() {
            let Some(their) = theirs.get(key).copied() else { continue };
            let changes = |policy: &str| matches!(policy, OVERWRITE | MERGE_PATCH_JSON);
            if changes(own) && changes(their) && (own == OVERWRITE || their == OVERWRITE) {
                let detail = format!(
                    "SidecarSet {other_name:?} changes this annotation too ({their}) in pods that both sets select, and one of the \
                     two overwrites it"
                );
                errors.push(Error::invalid(&annotation.path, key, detail));
            }
        }
    }
}
