//! What annotations of a namespace say about where its pods run.

use std::collections::BTreeMap;

use admission::format::names::{label_value, qualified_name};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::shortened;
use super::toleration::{AllowedTolerations, Toleration, TolerationSpec};

/// The node selector of a namespace.
pub const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// The tolerations that pods of a namespace get.
pub const DEFAULT_TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
/// What pods of a namespace may tolerate.
pub const TOLERATIONS_WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
/// All that is read.
pub const ANNOTATIONS: [&str; 3] = [NODE_SELECTOR, DEFAULT_TOLERATIONS, TOLERATIONS_WHITELIST];

/// The most tolerations of one list of allowed ones, be it an annotation or a field.
pub const MAX_TOLERATIONS: u16 = 1000;
/// The most tolerations of one list that pods get: with their own they are to keep the limit of a pod.
pub const MAX_DEFAULT_TOLERATIONS: u16 = 100;
/// The most labels of one selector.
const MAX_LABELS: usize = 256;
/// Bytes of an annotation that are read: the API server allows all annotations of an object 256 KiB together.
const MAX_BYTES: usize = 256 * 1024;

/// An annotation that is there: what it says, or why it cannot be read.
pub type Read<T> = Option<Result<T, String>>;

/// What the annotations of a namespace say. An annotation that is empty says that there is nothing, one that is absent says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// [`NODE_SELECTOR`]: labels that nodes of pods in this namespace must have.
    pub node_selector: Read<BTreeMap<String, String>>,
    /// [`DEFAULT_TOLERATIONS`]: what pods get in addition to their own.
    pub default_tolerations: Read<Vec<Toleration<'static>>>,
    /// [`TOLERATIONS_WHITELIST`]: what pods may have at most.
    pub allowed_tolerations: Read<AllowedTolerations>,
}

impl Placement {
    /// Reads the annotations, of which others are passed over.
    pub fn of(annotations: &BTreeMap<String, String>) -> Self {
        let read = |key: &str| annotations.get(key).map(String::as_str);
        let bounded = |text: &str| {
            (text.len() > MAX_BYTES)
                .then(|| format!("it has {} bytes, more than the {MAX_BYTES} that are read", text.len()))
        };
        let list = |text: &str, most: u16| bounded(text).map_or_else(|| tolerations(text, most.into()), Err);
        Self {
            node_selector: read(NODE_SELECTOR).map(|text| bounded(text).map_or_else(|| labels(text), Err)),
            default_tolerations: read(DEFAULT_TOLERATIONS).map(|text| list(text, MAX_DEFAULT_TOLERATIONS)),
            allowed_tolerations: read(TOLERATIONS_WHITELIST)
                .map(|text| list(text, MAX_TOLERATIONS).map(AllowedTolerations::of)),
        }
    }

    /// Key and fault of each annotation that cannot be read.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, &str)> {
        fn fault<'r, T>(key: &'static str, read: Option<&'r Result<T, String>>) -> Option<(&'static str, &'r str)> {
            read.and_then(|read| read.as_ref().err()).map(|error| (key, error.as_str()))
        }
        [
            fault(NODE_SELECTOR, self.node_selector.as_ref()),
            fault(DEFAULT_TOLERATIONS, self.default_tolerations.as_ref()),
            fault(TOLERATIONS_WHITELIST, self.allowed_tolerations.as_ref()),
        ]
        .into_iter()
        .flatten()
    }
}

/// Reads `key=value,…`, as `ConvertSelectorToLabelsMap` of k8s.io/apimachinery/pkg/labels does: blanks around keys and values do not
/// count, and a later value of a key replaces an earlier one.
///
/// # Errors
/// What is wrong with it, and where.
pub fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    if text.is_empty() {
        return Ok(labels);
    }
    if text.bytes().filter(|byte| *byte == b',').count() >= MAX_LABELS {
        return Err(format!("it holds more than {MAX_LABELS} labels"));
    }
    for term in text.split(',') {
        let said = || format!("{:?}", shortened(term.trim()));
        let Some((key, value)) = term.split_once('=').filter(|(_, value)| !value.contains('=')) else {
            return Err(format!("invalid selector: {}: expected key=value, with one =", said()));
        };
        let (key, value) = (key.trim(), value.trim());
        if let Some(fault) = qualified_name(key).first() {
            return Err(format!("invalid selector: {}: the key is no label key: {fault}", said()));
        }
        if let Some(fault) = label_value(value).first() {
            return Err(format!("invalid selector: {}: the value is no label value: {fault}", said()));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

/// Reads a JSON list of tolerations.
fn tolerations(text: &str, most: usize) -> Result<Vec<Toleration<'static>>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // Counted by what opens each, before anything is built.
    if text.bytes().filter(|byte| *byte == b'{').count() > most {
        return Err(format!("it holds more than {most} tolerations"));
    }
    let list = serde_json::from_str::<Option<Vec<Option<Map<String, Value>>>>>(text);
    let list = list.map_err(|error| format!("it is no JSON list of tolerations: {error}"))?;
    list.unwrap_or_default().into_iter().map(|fields| toleration(fields.unwrap_or_default())).collect()
}

/// Reads a toleration as Go does: letters of keys are large or small, and what is unknown is passed over. A key that is missed would
/// make a toleration of everything of it.
fn toleration(fields: Map<String, Value>) -> Result<Toleration<'static>, String> {
    const KEYS: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let known = fields.into_iter().filter_map(|(key, value)| {
        let known = KEYS.into_iter().find(|known| known.eq_ignore_ascii_case(&key))?;
        Some((known.to_owned(), value))
    });
    let spec = TolerationSpec::deserialize(Value::Object(known.collect()));
    spec.map(TolerationSpec::compile).map_err(|error| format!("it holds what is no toleration: {error}"))
}
