//! Random objects, and some that are nearly valid.

use admission::Findings;
use admission::field::ErrorList;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::super::{FieldValidation, compiles, create, named_faults, update};
use super::{cluster, defaulted, named_set, with_container};
use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::test_objects::{FIELDS, arbitrary_json, arbitrary_set};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_object_stops_validation(object in arbitrary_set(), old in arbitrary_set()) {
        let cluster = cluster(&[named_set("other", &json!({}))]);
        create(&object, FieldValidation::Warn, &cluster, &mut Findings::default());
        update(&defaulted(&object), &old, FieldValidation::Warn, &cluster, &mut Findings::default());
    }

    #[test]
    fn update_that_changes_nothing_is_never_refused(object in arbitrary_set()) {
        let mut findings = Findings::default();
        update(&object, &object, FieldValidation::Warn, &cluster(&[]), &mut findings);
        prop_assert!(findings.errors.is_empty(), "{}", findings.errors);
    }

    /// What is accepted can be decoded by the watch, and compiled.
    #[test]
    fn accepted_objects_compile(object in prop_oneof![nearly_valid_set(), combined_set()]) {
        let object = defaulted(&object);
        let mut findings = Findings::default();
        create(&object, FieldValidation::Warn, &cluster(&[]), &mut findings);
        if findings.errors.is_empty() {
            let mut set: SidecarSet = serde_json::from_value(object).unwrap();
            // As the API server does with generateName.
            set.metadata.name.get_or_insert_with(|| "generated".to_owned());
            CompiledSet::compile(&set).unwrap();
        }
    }

    /// The other checks name every fault by its field: the compiler, which has the last word, finds none of its own.
    #[test]
    fn compiler_finds_no_fault_that_validation_has_not_named(object in prop_oneof![nearly_valid_set(), combined_set()]) {
        let object = defaulted(&object);
        let named = named_faults(&object, FieldValidation::Warn, &cluster(&[]), &mut Vec::new());
        if named.is_empty() {
            let mut found = ErrorList::new();
            compiles::check(&object, &mut found);
            prop_assert!(found.is_empty(), "{found}: {object}");
        }
    }
}

/// The sets that the properties are about are not all refused.
#[test]
fn combined_sets_are_accepted_and_refused() {
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut everywhere_in_a_namespace) = (0, 0);
    for _ in 0..400 {
        let object = defaulted(&combined_set().new_tree(&mut runner).unwrap().current());
        if named_faults(&object, FieldValidation::Warn, &cluster(&[]), &mut Vec::new()).is_empty() {
            accepted += 1;
            let spec = &object["spec"];
            everywhere_in_a_namespace += usize::from(spec["selector"] == json!({}) && spec["namespace"] == "shop");
        }
    }
    assert!((40..360).contains(&accepted) && everywhere_in_a_namespace > 0, "{accepted} {everywhere_in_a_namespace}");
}

fn optional(values: &'static [&'static str]) -> impl Strategy<Value = Option<Value>> {
    let parsed = |text: &'static str| (!text.is_empty()).then(|| serde_json::from_str(text).unwrap());
    proptest::sample::select(values).prop_map(parsed)
}

/// Sets of parts that are right each for itself, and not always beside each other.
fn combined_set() -> impl Strategy<Value = Value> {
    const SELECTORS: &[&str] = &[
        "",
        "{}",
        r#"{"matchLabels": {}}"#,
        r#"{"matchLabels": {"app": "web"}}"#,
        r#"{"matchExpressions": [{"key": "app", "operator": "Exists"}]}"#,
        r#"{"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}"#,
    ];
    const CONTAINERS: &[&str] = &[
        "",
        "[]",
        r#"[{"name": "a", "image": "a:1"}]"#,
        r#"[{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]"#,
        r#"[{"name": "c", "image": "c:1", "podInjectPolicy": "AfterAppContainer", "ports": [{"containerPort": 80}]}]"#,
    ];
    let fields = (
        (optional(SELECTORS), optional(&["", r#""""#, r#""shop""#, r#""Shop""#]), optional(SELECTORS)),
        (optional(CONTAINERS), optional(CONTAINERS), optional(&["", r#"[{"name": "v", "emptyDir": {}}]"#])),
        (optional(&["", "-1", "5"]), optional(&["", r#"[{"name": "s"}]"#]), optional(&["", r#""set""#])),
    );
    fields.prop_map(|((selector, namespace, namespaces), (containers, inits, volumes), (order, secrets, name))| {
        let spec = [
            ("selector", selector),
            ("namespace", namespace),
            ("namespaceSelector", namespaces),
            ("containers", containers),
            ("initContainers", inits),
            ("volumes", volumes),
            ("order", order),
            ("imagePullSecrets", secrets),
        ];
        let spec: Map<String, Value> =
            spec.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))).collect();
        let metadata = name.map_or_else(|| json!({"generateName": "set-"}), |name| json!({"name": name}));
        json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": metadata, "spec": spec})
    })
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
