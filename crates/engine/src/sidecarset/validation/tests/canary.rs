//! Canaries and their bases.

use admission::Findings;
use serde_json::{Value, json};

use super::{cluster, defaulted, errors, judged, named_set, set};
use crate::sidecarset::validation::{FieldValidation, update};

fn canary_of(base: &str, fields: &Value) -> Value {
    let mut spec = json!({"updateStrategy": {"type": "NotUpdate"}});
    super::overlay(&mut spec, fields);
    let mut object = named_set("canary", &spec);
    object["metadata"]["annotations"] =
        json!({"apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base});
    object
}

fn second_level() -> Value {
    let mut object = canary_of("base", &json!({}));
    object["metadata"]["name"] = json!("second");
    object["spec"]["selector"] = json!({"matchLabels": {"other": "pods"}});
    object["spec"]["selector"]["matchLabels"]["app"] = json!("elsewhere");
    object
}

#[test]
fn case_58_only_the_exact_annotations_make_a_canary_under_both_prefixes() {
    for prefix in ["apps.kruise.io", "apps.outrider.dev"] {
        let errors = |canary: &str, base: &str| {
            let mut object = set(&json!({}));
            object["metadata"]["annotations"] =
                json!({format!("{prefix}/sidecarset-canary"): canary, format!("{prefix}/sidecarset-base"): base});
            errors(&object)
        };
        assert!(errors("true", "base").contains(&format!("{prefix}/sidecarset-base]: Not found: \"base\"")));
        for (canary, base) in [("TRUE", "base"), ("1", "base"), ("true", ""), ("", "base")] {
            assert_eq!(errors(canary, base), "", "{canary} {base}");
        }
    }
}

#[test]
fn case_59_a_canary_has_another_set_as_base_which_is_none_itself_and_is_not_rolled_out() {
    let cluster = cluster(&[named_set("base", &json!({})), second_level()]);
    for (base, fields, expected) in [
        ("base", json!({}), ""),
        ("canary", json!({}), "a set cannot be its own canary"),
        ("missing", json!({}), "Not found: \"missing\""),
        ("second", json!({}), "is a canary itself"),
        ("base", json!({"updateStrategy": {"type": "RollingUpdate"}}), "it needs NotUpdate"),
        ("base", json!({"updateStrategy": {}}), "it needs NotUpdate"),
    ] {
        let (errors, _) = judged(&canary_of(base, &fields), &cluster);
        assert_eq!(errors.is_empty(), expected.is_empty(), "{base} {fields}: {errors}");
        assert!(errors.contains(expected), "{base} {fields}: {errors}");
    }
}

#[test]
fn case_59_the_base_of_a_canary_does_not_change() {
    let cluster = cluster(&[named_set("base", &json!({})), named_set("other", &json!({}))]);
    for (base, is_refused) in [("base", false), ("other", true)] {
        let (old, new) = (defaulted(&canary_of("base", &json!({}))), defaulted(&canary_of(base, &json!({}))));
        let mut findings = Findings::default();
        update(&new, &old, FieldValidation::Warn, &cluster, &mut findings);
        let errors = findings.errors.to_string();
        assert_eq!(errors.contains("the base of a canary may not change"), is_refused, "{errors}");
    }
}

#[test]
fn a_must_has_only_canaries_that_are_musts() {
    let cluster = cluster(&[named_set("base", &json!({"optOut": "Denied"}))]);
    let must = json!({"optOut": "Denied"});
    assert_eq!(judged(&canary_of("base", &must), &cluster).0, "");
    for fields in [json!({}), json!({"optOut": "Denied", "clashPolicy": "Skip"})] {
        let (errors, _) = judged(&canary_of("base", &fields), &cluster);
        assert!(errors.contains("spec.optOut") && errors.contains("none may go without its canary"), "{errors}");
    }
}

#[test]
fn a_canary_of_a_must_leaves_out_pods_that_end_only_where_its_base_does() {
    let must = |jobs: &str| json!({"optOut": "Denied", "jobPods": jobs});
    for (base, of_canary, is_refused) in [
        (must("Inject"), "Skip", true),
        (must("NativeSidecar"), "Skip", true),
        (must("Inject"), "NativeSidecar", false),
        (must("Skip"), "Skip", false),
        (json!({"jobPods": "Inject"}), "Skip", false),
    ] {
        let cluster = cluster(&[named_set("base", &base)]);
        let (errors, _) = judged(&canary_of("base", &must(of_canary)), &cluster);
        assert_eq!(errors.contains("spec.jobPods"), is_refused, "{base} {of_canary}: {errors}");
        assert_eq!(errors.is_empty(), !is_refused, "{base} {of_canary}: {errors}");
    }
}
