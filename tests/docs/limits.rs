//! The numbers of docs/security.md are those of the code.

use std::fs;

use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::review::{IDENTITY_MAX_BYTES, IDENTITY_MAX_VALUES};
use admission::{ObjectLimit, Review};
use engine::pod::limits;
use engine::sidecarset::size::{LISTS, MAX_VALUES};
use outrider::server::Limits;
use serde_json::Value;

/// As people write it: `160,000`.
fn words(number: usize) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", words(thousands), number % 1000),
    }
}

/// The page on security, in one line.
fn page() -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md")).unwrap();
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a review is read whose object is nested so deep.
fn is_read(levels: usize) -> bool {
    let object = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"CREATE","object":{object}}}}}"#
    );
    Review::<Value>::parse(body.as_bytes()).is_ok()
}

#[test]
fn what_a_large_or_deep_body_meets_is_documented() {
    let (page, limits) = (page(), Limits::default());
    let levels = (1..200).take_while(|levels| is_read(*levels)).count();
    assert_eq!(limits.large_at_once, 2);
    assert_eq!(Limits::within(Some(256 << 20)).body_memory, (256 << 20) / 4);
    for claim in [
        format!(
            "bodies above {} KiB, and above {} KiB where the object is decoded as a whole (all kinds but pods), are decided in separate \
             threads, two at one time;",
            limits.large >> 10,
            limits.large_object >> 10
        ),
        "with a small memory limit, bodies take a quarter of it;".to_owned(),
        format!("an object that is decoded as a whole is refused if it is nested deeper than {levels} levels;"),
    ] {
        assert!(page.contains(&claim), "docs/security.md does not say: {claim}");
    }
}

#[test]
fn every_limit_of_an_object_is_documented() {
    let page = page();
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
        ("variables; mounts; devices of a container, where a set takes or adds some", limits::ELEMENTS, " each"),
        (
            "sets in the record `outrider.dev/injected` that do not select the pod",
            limits::OTHER_SETS,
            "; a record of more counts as none",
        ),
        ("names of containers in that record", limits::RECORDED_NAMES, "; further ones are not read"),
    ];
    for (what, limit, unit) in rows {
        let row = format!("| {what} | {}{unit} |", words(limit));
        assert!(page.contains(&row), "docs/security.md has no row {row}");
    }
    let taken = (limits::TAKEN_BYTES >> 20, words(limits::TAKEN_VALUES));
    let claims = [
        format!("`shareVolumeDevicePolicy`) | {} MiB and {} values, of all containers", taken.0, taken.1),
        format!("where it has more than {} labels, for any label", words(limits::PAIRS)),
        format!("ephemeral containers behind the first {} are a refusal", words(limits::CONTAINERS)),
        format!("A claim is refused if its requests or limits hold more than {} values", words(limits::RESOURCES)),
        format!("exceed {} KiB or {} values", IDENTITY_MAX_BYTES >> 10, words(IDENTITY_MAX_VALUES)),
    ];
    for claim in claims {
        assert!(page.contains(&claim), "docs/security.md does not say: {claim}");
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
