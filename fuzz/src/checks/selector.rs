//! Label selectors: three lines of JSON, of which the third is a map of labels.

use std::collections::BTreeMap;

use admission::field::{ErrorList, Path};
use admission::format::selector::{LabelSelector, Requirement};

/// Checks that what validation accepts compiles, that terms decide one by one, and that selectors which select one object overlap.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let mut selector = || serde_json::from_str::<LabelSelector>(lines.next().unwrap_or_default()).ok();
    let (Some(one), other) = (selector(), selector()) else { return };
    let mut errors = ErrorList::new();
    one.validate(&Path::new("selector"), &mut errors);
    let compiled = one.compile();
    assert_eq!(errors.is_empty(), compiled.is_ok(), "{text}");
    let Ok(compiled) = compiled else { return };
    assert_eq!(one.is_empty(), compiled.is_everything(), "{text}");
    let labels: BTreeMap<String, String> =
        lines.next().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    let each = compiled.requirements().iter().all(|term| holds(term, &labels));
    assert_eq!(compiled.matches(&labels), each, "{text}");
    let Some(Ok(other)) = other.map(|other| other.compile()) else { return };
    let overlap = compiled.overlaps(&other);
    assert_eq!(overlap, other.overlaps(&compiled), "{text}");
    assert!(overlap || !(compiled.matches(&labels) && other.matches(&labels)), "{text}");
}

/// What Kubernetes' documentation says of a term.
fn holds(term: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    match term {
        Requirement::In(key, values) => labels.get(key).is_some_and(|label| values.iter().any(|value| value == label)),
        Requirement::NotIn(key, values) => {
            !labels.get(key).is_some_and(|label| values.iter().any(|value| value == label))
        }
        Requirement::Exists(key) => labels.contains_key(key),
        Requirement::DoesNotExist(key) => !labels.contains_key(key),
    }
}
