//! Which sets a pod carries, by what was recorded when it was injected.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::sidecarset::controller::packed::Packed;
use engine::sidecarset::injection::INJECTED_ANNOTATION;

/// Sets in a pod injected by OpenKruise, comma-separated.
pub const OPENKRUISE_LIST: &str = "kruise.io/sidecarset-injected-list";
/// What OpenKruise injected, by set: an object with `hash` and `sidecarList`, in old versions the hash alone.
pub const OPENKRUISE_HASH: &str = "kruise.io/sidecarset-hash";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    hash: Option<String>,
    containers: Option<Vec<String>>,
    init_containers: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OpenKruiseRecord {
    Full {
        #[serde(default)]
        hash: String,
        #[serde(default, rename = "sidecarList")]
        sidecars: Option<Vec<String>>,
    },
    HashOnly(String),
}

/// The sets that a pod carries, by name, each with the hash of what was injected (empty where it was not recorded). A set is carried only if every container that was recorded for it is present: an
/// annotation can be copied to a pod that was never injected.
///
/// Annotations that are not what we or OpenKruise write are taken as if they were not there.
pub fn carried(annotations: &BTreeMap<String, String>, containers: &BTreeSet<&str>) -> Packed {
    let mut found = BTreeMap::new();
    openkruise(annotations, containers, &mut found);
    let text = annotations.get(INJECTED_ANNOTATION).map_or("", String::as_str);
    // Entry by entry, as at injection: one that cannot be read does not hide the others.
    for (set, record) in serde_json::from_str::<BTreeMap<String, Value>>(text).unwrap_or_default() {
        let Ok(record) = serde_json::from_value::<Record>(record) else { continue };
        let mut recorded = record.containers.iter().flatten().chain(record.init_containers.iter().flatten());
        if recorded.all(|name| containers.contains(name.as_str())) {
            found.insert(set, record.hash.unwrap_or_default());
        }
    }
    Packed::of(found.iter().map(|(set, hash)| (set.as_str(), hash.as_str())))
}

fn openkruise(
    annotations: &BTreeMap<String, String>,
    containers: &BTreeSet<&str>,
    found: &mut BTreeMap<String, String>,
) {
    let text = annotations.get(OPENKRUISE_HASH).map_or("", String::as_str);
    let mut records = serde_json::from_str::<BTreeMap<String, Value>>(text).unwrap_or_default();
    let list = annotations.get(OPENKRUISE_LIST).map_or("", String::as_str);
    for set in list.split(',').map(str::trim).filter(|set| !set.is_empty()) {
        let record = records.remove(set).and_then(|record| serde_json::from_value(record).ok());
        let (hash, sidecars) = match record {
            Some(OpenKruiseRecord::Full { hash, sidecars }) => (hash, sidecars.unwrap_or_default()),
            Some(OpenKruiseRecord::HashOnly(hash)) => (hash, Vec::new()),
            None => (String::new(), Vec::new()),
        };
        if sidecars.iter().all(|name| runs_under_openkruise(name, containers)) {
            found.insert(set.to_owned(), hash);
        }
    }
}

/// A container of a hot-upgrade set is there twice, as `<name>-1` and `<name>-2`, while the list has the plain name.
fn runs_under_openkruise(name: &str, containers: &BTreeSet<&str>) -> bool {
    containers.contains(name) || ["1", "2"].iter().all(|slot| containers.contains(format!("{name}-{slot}").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];
    /// What it is, annotations, containers, what is carried.
    type Case<'a> = (&'a str, Pairs<'a>, &'a [&'a str], Pairs<'a>);

    #[test]
    fn a_set_is_carried_when_it_is_recorded_and_its_containers_are_present() {
        let cases: [Case<'_>; 12] = [
            ("nothing recorded", &[], &["app"], &[]),
            (
                "recorded and present",
                &[(INJECTED_ANNOTATION, r#"{"a":{"hash":"v1:0","containers":["c"]}}"#)],
                &["c"],
                &[("a", "v1:0")],
            ),
            (
                "recorded, absent",
                &[(INJECTED_ANNOTATION, r#"{"a":{"hash":"v1:0","containers":["c"]}}"#)],
                &["app"],
                &[],
            ),
            (
                "init container absent",
                &[(INJECTED_ANNOTATION, r#"{"a":{"hash":"v1:0","containers":["c"],"initContainers":["i"]}}"#)],
                &["c"],
                &[],
            ),
            ("not JSON", &[(INJECTED_ANNOTATION, "{")], &["c"], &[]),
            ("another shape", &[(INJECTED_ANNOTATION, r#"["a"]"#)], &["c"], &[]),
            (
                "one entry of another shape",
                &[(INJECTED_ANNOTATION, r#"{"a":3,"b":{"hash":"v1:0"}}"#)],
                &["c"],
                &[("b", "v1:0")],
            ),
            ("null fields", &[(INJECTED_ANNOTATION, r#"{"a":{"hash":null,"containers":null}}"#)], &["c"], &[("a", "")]),
            (
                "OpenKruise",
                &[
                    (OPENKRUISE_LIST, "a,b"),
                    (OPENKRUISE_HASH, r#"{"a":{"hash":"x","sidecarList":["c"]},"b":{"hash":"y","sidecarList":["d"]}}"#),
                ],
                &["c"],
                &[("a", "x")],
            ),
            (
                "OpenKruise, old form",
                &[(OPENKRUISE_LIST, "a"), (OPENKRUISE_HASH, r#"{"a":"x"}"#)],
                &["c"],
                &[("a", "x")],
            ),
            (
                "OpenKruise, hot upgrade",
                &[(OPENKRUISE_LIST, "a"), (OPENKRUISE_HASH, r#"{"a":{"hash":"x","sidecarList":["c"]}}"#)],
                &["c-1", "c-2"],
                &[("a", "x")],
            ),
            (
                "our record wins",
                &[(OPENKRUISE_LIST, "a"), (INJECTED_ANNOTATION, r#"{"a":{"hash":"v1:0","containers":["c"]}}"#)],
                &["c"],
                &[("a", "v1:0")],
            ),
        ];
        for (case, annotations, containers, expected) in cases {
            let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let found = carried(&annotations, &containers.iter().copied().collect());
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{case}");
        }
    }
}
