//! Which sets a pod carries, by what was recorded when it was injected.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sidecarset::controller::packed::Packed;
use crate::sidecarset::controller::records::Records;

/// The sets that one pod counts for, at most. The author of a pod's annotations may name any number.
pub const MAX_SETS: usize = 16;

/// The bytes of their names and hashes, at most.
pub const MAX_BYTES: usize = 640;

/// In place of a hash: `OpenKruise` put the set there, and of which form it is says nothing to us.
pub const BY_OPENKRUISE: &str = "openkruise";

/// The longest hash that is kept; ours are shorter, and a longer one says only that the set is outdated.
const MAX_HASH: usize = 32;

/// The longest name that an object can have.
const MAX_NAME: usize = 253;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct OutriderRecord {
    hash: Option<String>,
    containers: Option<Vec<String>>,
    init_containers: Option<Vec<String>>,
}

/// What OpenKruise writes of a set, in old versions the hash alone.
#[derive(Deserialize)]
struct OpenKruiseRecord {
    #[serde(default, rename = "sidecarList")]
    sidecars: Option<Vec<String>>,
}

/// What a pod carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carried {
    /// The sets, each with the hash of what was injected (empty where it was not recorded).
    pub sets: Packed,
    /// Whether there are more than a pod may count for.
    pub some_left_out: bool,
}

type FoundSets = BTreeMap<String, FoundSet>;

/// What a record says of a set.
struct FoundSet {
    hash: String,
    /// A set without containers gives a pod little, or nothing that it did not have.
    has_containers: bool,
}

/// What comes first, where a pod names more sets than it may count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A set that no pod may evade.
    Mandatory,
    /// Another one that exists.
    Existing,
    /// A name without a set.
    Unknown,
}

/// The sets that a pod carries. A set is carried only if every container that was recorded for it is present: an annotation can
/// be copied to a pod that was never injected.
///
/// Annotations that are not what we or OpenKruise write are taken as if they were not there. Of more sets than a pod may count
/// for, mandatory ones come first, then those that exist, and of these the ones with containers: an author of annotations may name sets
/// that the pod does not carry.
pub fn carried(records: &Records, containers: &BTreeSet<&str>, rank: impl Fn(&str) -> Rank) -> Carried {
    let mut found = FoundSets::new();
    openkruise(records, containers, &mut found);
    // Entry by entry, as at injection: one that cannot be read does not hide the others.
    for (set, record) in entries(records.injected.as_deref()) {
        let Ok(record) = serde_json::from_str::<OutriderRecord>(record.get()) else { continue };
        let mut recorded = record.containers.iter().flatten().chain(record.init_containers.iter().flatten()).peekable();
        let has_containers = recorded.peek().is_some();
        if recorded.all(|name| containers.contains(name.as_str())) {
            let hash = record.hash.filter(|hash| hash != BY_OPENKRUISE).unwrap_or_default();
            // As at injection: ours say of what form the set is, or what it put there.
            if hash.is_empty() && !has_containers {
                continue;
            }
            found.insert(set, FoundSet { hash, has_containers });
        }
    }
    chosen(&found, rank)
}

fn entries(text: Option<&str>) -> BTreeMap<String, &RawValue> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn chosen(found: &FoundSets, rank: impl Fn(&str) -> Rank) -> Carried {
    let mut possible: Vec<_> = found.iter().filter(|(set, _)| set.len() <= MAX_NAME).collect();
    possible.sort_by_cached_key(|(set, found)| (rank(set), !found.has_containers));
    let (mut kept, mut room) = (BTreeMap::new(), MAX_BYTES);
    for (set, FoundSet { hash, .. }) in possible {
        let hash = if hash.len() <= MAX_HASH { hash.as_str() } else { "" };
        let Some(left) = room.checked_sub(Packed::cost(set, hash)) else { continue };
        if kept.len() == MAX_SETS {
            break;
        }
        room = left;
        kept.insert(set.as_str(), hash);
    }
    let some_left_out = kept.len() < found.len();
    Carried { sets: Packed::of(kept), some_left_out }
}

fn openkruise(records: &Records, containers: &BTreeSet<&str>, found: &mut FoundSets) {
    let hashes = entries(records.openkruise_hash.as_deref());
    let list = records.openkruise_list.as_deref().unwrap_or_default();
    for set in list.split(',').map(str::trim).filter(|set| !set.is_empty()) {
        let sidecars = hashes.get(set).map(|record| openkruise_sidecars(record.get())).unwrap_or_default();
        if sidecars.iter().all(|name| runs_under_openkruise(name, containers)) {
            let has_containers = !sidecars.is_empty();
            found.insert(set.to_owned(), FoundSet { hash: BY_OPENKRUISE.to_owned(), has_containers });
        }
    }
}

fn openkruise_sidecars(text: &str) -> Vec<String> {
    serde_json::from_str::<OpenKruiseRecord>(text).ok().and_then(|record| record.sidecars).unwrap_or_default()
}

/// A container of a hot-upgrade set is there twice, as `<name>-1` and `<name>-2`, while the list has the plain name.
fn runs_under_openkruise(name: &str, containers: &BTreeSet<&str>) -> bool {
    containers.contains(name) || ["1", "2"].iter().all(|slot| containers.contains(format!("{name}-{slot}").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecarset::controller::records::tests::records;
    use crate::sidecarset::controller::records::{OPENKRUISE_HASH, OPENKRUISE_LIST};
    use engine::sidecarset::injection::INJECTED_ANNOTATION;

    type Pairs<'a> = &'a [(&'a str, &'a str)];
    /// What it is, annotations, containers, what is carried.
    type Case<'a> = (&'a str, Pairs<'a>, &'a [&'a str], Pairs<'a>);

    #[test]
    fn a_set_is_carried_when_it_is_recorded_and_its_containers_are_present() {
        let cases: [Case<'_>; 14] = [
            ("nothing recorded", &[], &["app"], &[]),
            (
                "recorded although it adds nothing",
                &[(INJECTED_ANNOTATION, r#"{"a":{"containers":[],"hash":"v1:0","initContainers":[]}}"#)],
                &["app"],
                &[("a", "v1:0")],
            ),
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
            (
                "null fields",
                &[(INJECTED_ANNOTATION, r#"{"a":{"hash":null,"containers":["c"]}}"#)],
                &["c"],
                &[("a", "")],
            ),
            (
                "nothing of the set",
                &[(INJECTED_ANNOTATION, r#"{"a":{"hash":null},"b":{},"c":{"hash":""}}"#)],
                &["c"],
                &[],
            ),
            (
                "OpenKruise",
                &[
                    (OPENKRUISE_LIST, "a,b"),
                    (OPENKRUISE_HASH, r#"{"a":{"hash":"x","sidecarList":["c"]},"b":{"hash":"y","sidecarList":["d"]}}"#),
                ],
                &["c"],
                &[("a", BY_OPENKRUISE)],
            ),
            (
                "OpenKruise, old form",
                &[(OPENKRUISE_LIST, "a"), (OPENKRUISE_HASH, r#"{"a":"x"}"#)],
                &["c"],
                &[("a", BY_OPENKRUISE)],
            ),
            (
                "OpenKruise, hot upgrade",
                &[(OPENKRUISE_LIST, "a"), (OPENKRUISE_HASH, r#"{"a":{"hash":"x","sidecarList":["c"]}}"#)],
                &["c-1", "c-2"],
                &[("a", BY_OPENKRUISE)],
            ),
            (
                "our record wins",
                &[(OPENKRUISE_LIST, "a"), (INJECTED_ANNOTATION, r#"{"a":{"hash":"v1:0","containers":["c"]}}"#)],
                &["c"],
                &[("a", "v1:0")],
            ),
        ];
        for (case, annotations, containers, expected) in cases {
            let found = carried(&records(annotations), &containers.iter().copied().collect(), |_| Rank::Existing);
            assert_eq!(found.sets.iter().collect::<Vec<_>>(), expected, "{case}");
            assert!(!found.some_left_out, "{case}");
        }
    }

    #[test]
    fn of_too_many_sets_those_that_exist_are_carried_and_it_is_said() {
        let names: Vec<String> = (0..2_000).map(|n| format!("s{n}")).collect();
        let cases = [(OPENKRUISE_LIST, names.join(",")), (INJECTED_ANNOTATION, injected(&["s7", "s1999"], 300))];
        let rank = |set: &str| if matches!(set, "s7" | "s1999") { Rank::Existing } else { Rank::Unknown };
        for (key, value) in cases {
            let found = carried(&records(&[(key, &value)]), &BTreeSet::new(), rank);
            let sets: Vec<&str> = found.sets.iter().map(|(set, _)| set).collect();
            assert!(sets.contains(&"s7") && sets.contains(&"s1999"), "{key}: {sets:?}");
            assert!(sets.len() <= MAX_SETS && found.sets.bytes() <= MAX_BYTES && found.some_left_out, "{key}");
        }
    }

    #[test]
    fn a_mandatory_set_is_carried_however_many_others_the_pod_names() {
        let others = (0..MAX_SETS).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",");
        let rank = |set: &str| if set == "z-must" { Rank::Mandatory } else { Rank::Existing };
        let record = injected(&["z-must"], 0);
        let found =
            carried(&records(&[(OPENKRUISE_LIST, &others), (INJECTED_ANNOTATION, &record)]), &BTreeSet::new(), rank);
        assert!(found.sets.iter().any(|(set, _)| set == "z-must") && found.some_left_out, "{:?}", found.sets);
    }

    #[test]
    fn of_too_many_sets_those_that_gave_the_pod_containers_are_carried() {
        let mut record: serde_json::Map<_, _> =
            (0..20).map(|n| (format!("a{n}"), serde_json::json!({"hash": "v1:0", "containers": []}))).collect();
        record.insert("z".to_owned(), serde_json::json!({"hash": "v1:0", "containers": ["proxy"]}));
        let record = serde_json::json!(record).to_string();
        let found = carried(&records(&[(INJECTED_ANNOTATION, &record)]), &["proxy"].into(), |_| Rank::Existing);
        assert!(found.sets.iter().any(|(set, _)| set == "z") && found.some_left_out, "{:?}", found.sets);
    }

    fn injected(last: &[&str], others: usize) -> String {
        let others = (0..others).map(|n| format!("r{n}"));
        let sets = others.chain(last.iter().map(|name| (*name).to_owned()));
        let record: serde_json::Map<_, _> = sets.map(|name| (name, serde_json::json!({"hash": "v1:0"}))).collect();
        serde_json::json!(record).to_string()
    }

    #[test]
    fn names_and_hashes_that_none_of_ours_can_be_take_no_room() {
        let long = "a".repeat(254);
        let list = format!("{long},b");
        let found = carried(&records(&[(OPENKRUISE_LIST, &list)]), &BTreeSet::new(), |_| Rank::Existing);
        assert_eq!(found.sets.iter().collect::<Vec<_>>(), [("b", BY_OPENKRUISE)]);
        let record = serde_json::json!({"b": {"hash": "x".repeat(10_000)}}).to_string();
        let found = carried(&records(&[(INJECTED_ANNOTATION, &record)]), &BTreeSet::new(), |_| Rank::Existing);
        assert_eq!(found.sets.iter().collect::<Vec<_>>(), [("b", "")]);
    }
}
