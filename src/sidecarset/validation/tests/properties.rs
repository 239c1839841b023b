use admission::Findings;
use proptest::prelude::*;

use super::super::{create, update};
use super::{defaulted, world};
use crate::sidecarset::test_objects::arbitrary_set;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_object_stops_validation(object in arbitrary_set(), old in arbitrary_set()) {
        let world = world(&[super::named_set("other", &serde_json::json!({}))]);
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
    fn accepted_objects_compile(object in arbitrary_set()) {
        let object = defaulted(&object);
        let mut findings = Findings::default();
        create(&object, &world(&[]), &mut findings);
        if findings.errors.is_empty() && object.is_object() {
            let set: crate::sidecarset::api::SidecarSet = serde_json::from_value(object).unwrap();
            crate::sidecarset::compiled::CompiledSet::compile(&set).unwrap();
        }
    }
}
