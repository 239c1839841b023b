//! The numbers of docs/security.md are those of the code.

use std::fs;

use admission::ObjectLimit;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use engine::pod::limits;
use engine::sidecarset::size::{LISTS, MAX_VALUES};

/// As people write it: `160,000`.
fn words(number: usize) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", words(thousands), number % 1000),
    }
}

#[test]
fn every_limit_of_an_object_is_documented() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = [
        ("annotations, keys and values of all together", ANNOTATIONS_MAX_BYTES, " bytes"),
        ("containers; init containers; ephemeral containers", limits::CONTAINERS, " each"),
        ("volumes", limits::VOLUMES, ""),
        ("pull secrets; resource claims", limits::NAMES, " each"),
        ("labels; entries of the node selector", limits::PAIRS, " each"),
        ("tolerations, with those that plugins add", limits::TOLERATIONS, ""),
        (
            "values in the resources of a container, of the pod as a whole, and in its overhead: names in requests and limits, claims",
            limits::RESOURCES,
            " each",
        ),
        ("ports of a container", limits::PORTS, ""),
    ];
    for (what, limit, unit) in rows {
        let row = format!("| {what} | {}{unit} |", words(limit));
        assert!(page.contains(&row), "docs/security.md has no row {row}");
    }
    let namespace = format!("Of a namespace, {} labels are read", words(limits::STORABLE_PAIRS));
    assert!(page.contains(&namespace), "docs/security.md does not say: {namespace}");
    let lists = LISTS.iter().map(|(name, most)| {
        let name = match *name {
            "initContainers" => "init containers",
            "imagePullSecrets" => "pull secrets",
            other => other,
        };
        format!("{most} {name}")
    });
    let set = format!("{} and {} values", lists.collect::<Vec<_>>().join(", "), words(MAX_VALUES));
    assert!(page.contains(&set), "docs/security.md does not say: {set}");
    let object = format!("Of any other object 1.5 MiB and {} values are read", words(ObjectLimit::STORABLE.values));
    assert!(page.contains(&object), "docs/security.md does not say: {object}");
    assert_eq!(ObjectLimit::STORABLE.bytes, 3 << 19);
}
