//! Objects that nobody would write, and nearly those that somebody would.

use admission::Findings;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{create, update};
use super::{defaulted, named_set, with_container, world};
use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::test_objects::{FIELDS, arbitrary_json, arbitrary_set};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_object_stops_validation(object in arbitrary_set(), old in arbitrary_set()) {
        let world = world(&[named_set("other", &json!({}))]);
        create(&object, &world, &mut Findings::default());
        update(&defaulted(&object), &old, &world, &mut Findings::default());
    }

    #[test]
    fn update_that_changes_nothing_is_never_refused(object in arbitrary_set()) {
        let mut findings = Findings::default();
        update(&object, &object, &world(&[]), &mut findings);
        prop_assert!(findings.errors.is_empty(), "{}", findings.errors);
    }

    /// What is accepted can be decoded by the watch, and compiled.
    #[test]
    fn accepted_objects_compile(object in nearly_valid_set()) {
        let object = defaulted(&object);
        let mut findings = Findings::default();
        create(&object, &world(&[]), &mut findings);
        if findings.errors.is_empty() {
            let set: SidecarSet = serde_json::from_value(object).unwrap();
            CompiledSet::compile(&set).unwrap();
        }
    }
}

/// A valid set with one field, of the spec or of a container or volume, replaced by anything.
fn nearly_valid_set() -> impl Strategy<Value = Value> {
    const PLACES: [&str; 3] = ["/spec", "/spec/containers/0", "/spec/volumes/0"];
    let field = prop_oneof![proptest::sample::select(FIELDS), proptest::sample::select(SPEC_FIELDS)];
    (proptest::sample::select(&PLACES[..]), field, arbitrary_json()).prop_map(|(place, field, value)| {
        let mut object = with_container(&json!({}));
        object.pointer_mut(place).unwrap().as_object_mut().unwrap().insert(field.to_owned(), value);
        object
    })
}

const SPEC_FIELDS: &[&str] = &[
    "selector",
    "namespace",
    "namespaceSelector",
    "updateStrategy",
    "injectionStrategy",
    "imagePullSecrets",
    "revisionHistoryLimit",
    "patchPodMetadata",
    "customVersion",
    "order",
    "clashPolicy",
    "optOut",
];
