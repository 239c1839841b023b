//! What makes a `ClusterLimitRange` wrong.

use serde_json::{Value, json};

use super::range;
use crate::limitrange::validation::{compile, unknown_fields};

fn faults(limits: &Value) -> String {
    compile(&range("r", limits.clone())).map_or_else(|errors| errors.to_string(), |_| String::new())
}

fn of(type_: &str, fields: Value) -> Value {
    let mut limit = fields;
    limit["type"] = type_.into();
    json!([limit])
}

#[test]
fn every_fault_of_a_limit_range_is_one_here() {
    let cpu = |amount: &str| json!({"cpu": amount});
    for (limits, expected) in [
        (
            json!([{"type": "Pot"}]),
            "spec.limits[0].type: Unsupported value: \"Pot\": supported values: \"Container\", \"Pod\"",
        ),
        (json!([{"type": "Pod"}, {"type": "Pod"}]), "spec.limits[1].type: Duplicate value: \"Pod\""),
        (
            of("Pod", json!({"default": cpu("1")})),
            "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        ),
        (
            of("Pod", json!({"defaultRequest": cpu("1")})),
            "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
        ),
        (
            of("PersistentVolumeClaim", json!({})),
            "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
        ),
        (of("PersistentVolumeClaim", json!({"max": cpu("1")})), "spec.limits[0].max[cpu]: Unsupported value: \"cpu\""),
        (
            of("Container", json!({"max": {"storage": "1"}})),
            "spec.limits[0].max[storage]: Invalid value: \"storage\": must be a standard resource for containers",
        ),
        (
            of("Container", json!({"max": cpu("1 core")})),
            "spec.limits[0].max[cpu]: Invalid value: \"1 core\": quantities must match",
        ),
        (
            of("Container", json!({"max": cpu("-1")})),
            "spec.limits[0].max[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            of("Pod", json!({"min": cpu("3"), "max": cpu("2")})),
            "spec.limits[0].min[cpu]: Invalid value: \"3\": min value 3 is greater than max value 2",
        ),
        (
            of("Container", json!({"min": cpu("2"), "defaultRequest": cpu("1")})),
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request value 1",
        ),
        (
            of("Container", json!({"max": cpu("2"), "defaultRequest": cpu("3")})),
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than max value 2",
        ),
        (
            of("Container", json!({"default": cpu("2"), "defaultRequest": cpu("3")})),
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than default limit value 2",
        ),
        (
            of("Container", json!({"min": cpu("2"), "default": cpu("1")})),
            "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1",
        ),
        (
            of("Container", json!({"default": cpu("3"), "max": cpu("2")})),
            "spec.limits[0].default[cpu]: Invalid value: \"2\": default value 3 is greater than max value 2",
        ),
        (
            of("Pod", json!({"maxLimitRequestRatio": cpu("0.9")})),
            "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"900m\": ratio 900m is less than 1",
        ),
        (
            of("Pod", json!({"maxLimitRequestRatio": cpu("10"), "min": cpu("1"), "max": cpu("2")})),
            "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"10\": ratio 10 is greater than max/min = 2.000000",
        ),
        (
            of("Container", json!({"default": {"a.com/b": "2"}, "defaultRequest": {"a.com/b": "1"}})),
            "default value 2 must equal to defaultRequest value 1 in a.com/b",
        ),
        // The limit is the maximum here.
        (
            of("Container", json!({"max": {"a.com/b": "2"}, "defaultRequest": {"a.com/b": "1"}})),
            "default value 2 must equal to defaultRequest value 1 in a.com/b",
        ),
    ] {
        let found = faults(&limits);
        assert!(found.contains(expected), "{limits}: {found}");
    }
}

/// Defaults that are filled in from an amount are not at fault beside it.
#[test]
fn an_amount_at_fault_is_reported_once() {
    let cpu = |amount: &str| json!({"cpu": amount});
    for limits in [
        json!({"min": cpu("3"), "max": cpu("2")}),
        json!({"default": cpu("3"), "max": cpu("2")}),
        json!({"min": cpu("2"), "default": cpu("1")}),
        json!({"max": cpu("2"), "defaultRequest": cpu("3")}),
    ] {
        let found = faults(&of("Container", limits.clone()));
        assert_eq!(found.matches("is greater than").count(), 1, "{limits}: {found}");
    }
}

#[test]
fn a_range_as_the_api_server_stores_it_has_no_fault() {
    for limits in [
        json!([]),
        of(
            "Container",
            json!({"min": {"cpu": "50m"}, "max": {"cpu": "2"}, "default": {"cpu": "500m"},
            "defaultRequest": {"cpu": "50m"}, "maxLimitRequestRatio": {"cpu": "10"}}),
        ),
        of("Container", json!({"default": {"a.com/b": 1, "hugepages-2Mi": "4Mi"}})),
        of("Container", json!({"min": {"cpu": "0"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "10"}})),
        of("PersistentVolumeClaim", json!({"min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}})),
        json!([{"type": "Pod", "max": {"memory": "1Gi"}}, {"type": "Container"}]),
    ] {
        assert_eq!(faults(&limits), "", "{limits}");
    }
    let selected =
        json!({"spec": {"limits": [], "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}});
    let found = compile(&selected).unwrap_err().to_string();
    assert!(found.contains("spec.namespaceSelector.matchExpressions[0].operator"), "{found}");
}

#[test]
fn fields_that_are_not_known_and_values_of_other_types_are_found() {
    let mistyped = range("r", json!([{"type": "Pod", "mx": {"cpu": "1"}}]));
    let expected = "unknown field \"spec.limits[0].mx\" (did you mean \"max\"?)";
    assert_eq!(unknown_fields(&mistyped, ToString::to_string), [expected]);
    for (limits, field) in [
        (json!({"type": "Pod"}), "spec.limits: "),
        (json!([{"type": "Pod", "max": ["cpu"]}]), "spec.limits[0].max: "),
        (json!([{"type": "Pod", "max": {"cpu": {}}}]), "spec.limits[0].max[cpu]: "),
    ] {
        let found = faults(&limits);
        assert!(found.starts_with(field), "{limits}: {found}");
    }
}

#[test]
fn of_what_is_too_long_only_that_is_said() {
    let resources =
        |count: usize| (0..count).map(|at| (format!("a.com/r{at}"), json!("1"))).collect::<serde_json::Map<_, _>>();
    assert_eq!(faults(&of("Container", json!({"max": resources(64)}))), "");
    let found = faults(&of("Container", json!({"max": resources(100_000)})));
    assert!(found.contains("spec.limits[0].max: Too many: 100000: must have at most 64 items"), "{found}");
    assert!(found.len() < 1000, "{}", found.len());
    let limits: Vec<Value> = (0..100_000).map(|_| json!({"type": "Pot"})).collect();
    let found = faults(&limits.into());
    assert!(found.contains("spec.limits: Too many: 100000: must have at most 3 items"), "{found}");
    assert!(found.len() < 1000, "{}", found.len());
}
