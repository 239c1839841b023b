use admission::Registry;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::annotations::ANNOTATIONS_MAX_BYTES;
use super::cronjob;
use crate::workshop::cronjob::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};

fn object(version: &str, schedule: impl Into<Value>) -> Value {
    let schedule: Value = schedule.into();
    json!({
        "apiVersion": format!("batch.outrider.dev/{version}"), "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "a", "uid": "u"},
        "spec": {"schedule": schedule, "jobTemplate": {}},
    })
}

fn to(version: &str, object: &Value) -> Value {
    let mut out = String::new();
    cronjob().convert(&serde_json::value::to_raw_value(object).unwrap(), version, &mut out).unwrap();
    serde_json::from_str(&out).unwrap()
}

#[track_caller]
fn assert_survives_the_way_there_and_back(object: &Value, home: &str, abroad: &str) {
    let there = to(abroad, object);
    assert_eq!(there["apiVersion"], format!("batch.outrider.dev/{abroad}"));
    assert_eq!(&to(home, &there), object, "was {there} in between");
}

#[test]
fn v1_schedules_become_fields_and_are_remembered_where_fields_say_less() {
    let cases = [
        ("*/1 * * * *", json!({"minute": "*/1"}), false),
        ("* * * * *", json!({}), false),
        ("*/1 * * * MON-FRI", json!({"minute": "*/1", "dayOfWeek": "MON-FRI"}), false),
        (
            "0 0 ? jan,FEB ,",
            json!({"minute": "0", "hour": "0", "dayOfMonth": "?", "month": "jan,FEB", "dayOfWeek": ","}),
            false,
        ),
        ("0  0 1 1 *", json!({"minute": "0", "hour": "0", "dayOfMonth": "1", "month": "1"}), true),
        (" 0 0 1 1 *\n", json!({"minute": "0", "hour": "0", "dayOfMonth": "1", "month": "1"}), true),
        ("@hourly", json!({"minute": "0"}), true),
        ("@daily", json!({"minute": "0", "hour": "0"}), true),
        ("@midnight", json!({"minute": "0", "hour": "0"}), true),
        ("@weekly", json!({"minute": "0", "hour": "0", "dayOfWeek": "0"}), true),
        ("@monthly", json!({"minute": "0", "hour": "0", "dayOfMonth": "1"}), true),
        ("@yearly", json!({"minute": "0", "hour": "0", "dayOfMonth": "1", "month": "1"}), true),
        ("@every 5m", json!({}), true),
        ("not a schedule", json!({}), true),
        ("", json!({}), true),
        ("{}", json!({}), true),
        ("\"@daily\"", json!({}), true),
    ];
    for (schedule, fields, remembered) in cases {
        let v1 = object("v1", schedule);
        let v2 = to("v2", &v1);
        assert_eq!(v2["spec"]["schedule"], fields, "{schedule}");
        assert_eq!(v2["metadata"].get("annotations").is_some(), remembered, "{schedule}");
        assert_survives_the_way_there_and_back(&v1, "v1", "v2");
    }
    let v2 = to("v2", &object("v1", "@every 5m"));
    assert_eq!(v2["metadata"]["annotations"], json!({V1_SCHEDULE: "@every 5m"}));
}

#[test]
fn v2_fields_become_a_string_and_are_remembered_where_the_string_says_less() {
    let cases = [
        (json!({"minute": "*/1"}), "*/1 * * * *", false),
        (json!({}), "* * * * *", false),
        (json!({"dayOfWeek": "MON-FRI", "minute": "*/1"}), "*/1 * * * MON-FRI", false),
        (json!({"minute": "*/1", "hour": "*", "dayOfWeek": "MON-FRI"}), "*/1 * * * MON-FRI", true),
        (json!({"minute": "0 0"}), "0 0 * * * *", true),
        (json!({"minute": ""}), " * * * *", true),
        (json!({"minute": "61"}), "61 * * * *", false),
    ];
    for (fields, schedule, remembered) in cases {
        let v2 = object("v2", fields.clone());
        let v1 = to("v1", &v2);
        assert_eq!(v1["spec"]["schedule"], schedule, "{fields}");
        assert_eq!(v1["metadata"].get("annotations").is_some(), remembered, "{fields}");
        assert_survives_the_way_there_and_back(&v2, "v2", "v1");
    }
}

#[test]
fn of_fields_only_known_ones_that_hold_strings_are_said_or_remembered() {
    for (fields, known) in [
        (json!({"minute": null}), json!({})),
        (json!({"minute": 5, "hour": "2"}), json!({"hour": "2"})),
        (json!({"minute": "5", "second": "1"}), json!({"minute": "5"})),
        (json!({"minute": "*", "second": ["1"]}), json!({"minute": "*"})),
    ] {
        let v1 = to("v1", &object("v2", fields.clone()));
        assert_eq!(to("v2", &v1)["spec"]["schedule"], known, "{fields}");
    }
}

#[test]
fn a_forged_memory_is_not_believed() {
    let deep = format!(r#"{{"dayOfWeek":{}{},"minute":"5"}}"#, "[".repeat(125), "]".repeat(125));
    for (schedule, memory) in [
        ("5 * * * *", deep.as_str()),
        ("5 * * * *", r#"{"minute":"5","hour":null}"#),
        ("5 * * * *", r#"{"minute":"5","second":"*"}"#),
        ("* * * * *", r#"{"minute":5}"#),
        ("* * * * *", "{}"),
        ("* * * * *", r#""x""#),
    ] {
        let mut v1 = object("v1", schedule);
        v1["metadata"]["annotations"] = json!({V2_SCHEDULE: memory});
        assert_eq!(to("v2", &v1), to("v2", &object("v1", schedule)), "{memory}");
    }
    let mut v2 = object("v2", json!({}));
    v2["metadata"]["annotations"] = json!({V1_SCHEDULE: "{}"});
    assert_eq!(to("v1", &v2)["spec"]["schedule"], "* * * * *");
}

#[test]
fn where_annotations_leave_no_room_the_memory_is_left_out() {
    for (schedule, version, other, key) in
        [(json!("@every 5h"), "v1", "v2", V1_SCHEDULE), (json!({"minute": "*"}), "v2", "v1", V2_SCHEDULE)]
    {
        let memory =
            to(other, &object(version, schedule.clone()))["metadata"]["annotations"][key].as_str().unwrap().len();
        for (spare, remembered) in [(0, false), (key.len() + memory - 1, false), (key.len() + memory, true)] {
            let mut object = object(version, schedule.clone());
            object["metadata"]["annotations"] = json!({"a": "x".repeat(ANNOTATIONS_MAX_BYTES - 1 - spare)});
            let there = to(other, &object);
            assert_eq!(there["metadata"]["annotations"].get(key).is_some(), remembered, "{key}, {spare} to spare");
        }
    }
}

#[test]
fn edit_of_the_schedule_in_one_version_wins_over_what_the_other_said() {
    let mut v2 = to("v2", &object("v1", "@every 5m"));
    v2["spec"]["schedule"]["minute"] = "7".into();
    assert_eq!(to("v1", &v2), object("v1", "7 * * * *"));

    let mut v1 = to("v1", &object("v2", json!({"minute": "5", "hour": "*"})));
    v1["spec"]["schedule"] = "@daily".into();
    let v2 = to("v2", &v1);
    assert_eq!(v2["spec"]["schedule"], json!({"minute": "0", "hour": "0"}));
    assert_eq!(v2["metadata"]["annotations"], json!({V1_SCHEDULE: "@daily"}));
}

#[test]
fn edit_of_anything_else_in_v2_leaves_schedule_status_and_annotations_of_v1_alone() {
    let mut v1 = object("v1", "0  0 1 1 *");
    v1["metadata"]["annotations"] = json!({"example.com/own": "x"});
    v1["status"] = json!({"active": [{"name": "a"}], "lastScheduleTime": "2024-01-01T00:00:00Z", "conditions": [{"type": "Available"}]});
    let mut v2 = to("v2", &v1);
    assert_eq!(v2["status"], v1["status"]);
    v2["metadata"]["labels"] = json!({"x": "a=b"});
    v1["metadata"]["labels"] = json!({"x": "a=b"});
    assert_eq!(to("v1", &v2), v1);
}

#[test]
fn annotations_that_remember_nothing_are_dropped_and_others_are_not() {
    for worthless in ["", "{", "\"", "{}", "* * * * *", "{\"minute\": \"5\"}", "@daily"] {
        let mut v2 = object("v2", json!({"minute": "5"}));
        v2["metadata"]["annotations"] = json!({V1_SCHEDULE: worthless, V2_SCHEDULE: worthless, "example.com/own": "x"});
        let v1 = to("v1", &v2);
        assert_eq!(v1["spec"]["schedule"], "5 * * * *", "{worthless}");
        assert_eq!(v1["metadata"]["annotations"], json!({"example.com/own": "x"}), "{worthless}");
    }
}

#[test]
fn overlong_schedule_is_converted_without_an_annotation_that_the_api_server_would_refuse() {
    let v2 = to("v2", &object("v1", format!("@every {}", "x".repeat(300_000))));
    assert_eq!(v2["metadata"].get("annotations"), None);
}

/// Acceptance check 15.
#[test]
fn list_of_odd_schedules_is_converted_in_order_and_as_a_whole() {
    let odd = ["@hourly", "@every 5m", "0  0 1 1 *", "nonsense", "*/5 * * * *"];
    let objects: Vec<Value> = (0..1000)
        .map(|index| {
            let mut object = object("v1", odd[index % odd.len()]);
            object["metadata"]["name"] = format!("c{index}").into();
            object
        })
        .collect();
    let registry = Registry::<()>::default().converting(cronjob());
    let convert = |objects: &[Value], version: &str| {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "7", "desiredAPIVersion": format!("batch.outrider.dev/{version}"), "objects": objects},
        });
        let reply: Value = serde_json::from_slice(&registry.convert(review.to_string().as_bytes()).unwrap()).unwrap();
        assert_eq!(reply["response"]["uid"], "7");
        assert_eq!(reply["response"]["result"]["status"], "Success");
        reply["response"]["convertedObjects"].as_array().unwrap().clone()
    };
    let there = convert(&objects, "v2");
    assert_eq!(there.len(), objects.len());
    assert_eq!(convert(&there, "v1"), objects);
}

/// Any JSON, not very deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|map| Map::from_iter(map).into()),
        ]
    })
}

fn any_string_schedule() -> impl Strategy<Value = Value> {
    let field = prop_oneof![Just("*"), Just("*/5"), Just("0"), Just("MON-fri"), Just(","), Just("?")];
    let space = prop_oneof![5 => Just(" "), 1 => Just("  "), 1 => Just("\t")];
    prop_oneof![
        4 => proptest::collection::vec((field, space), 4..7)
            .prop_map(|parts| parts.into_iter().flat_map(|(field, space)| [field, space]).collect::<String>()),
        2 => proptest::collection::vec("[0-9*,/-]{1,4}", 5).prop_map(|parts| parts.join(" ")),
        2 => prop_oneof![Just("@hourly"), Just("@daily"), Just("@weekly"), Just("@yearly"), Just("@every 90s")].prop_map(str::to_owned),
        1 => "[\"{@ *0-9}:]{0,12}",
        1 => "\\PC{0,20}",
    ]
    .prop_map(Value::from)
}

fn any_field_schedule() -> impl Strategy<Value = Value> {
    let names = prop_oneof![Just("minute"), Just("hour"), Just("dayOfMonth"), Just("month"), Just("dayOfWeek")];
    let names = names.prop_map(str::to_owned);
    let value = prop_oneof![
        6 => prop_oneof![Just("*"), Just("*/5"), Just("0"), Just("1 2"), Just(""), Just("@daily")].prop_map(Value::from),
        1 => "\\PC{0,8}".prop_map(Value::from),
    ];
    proptest::collection::btree_map(names, value, 0..6).prop_map(|fields| Map::from_iter(fields).into())
}

/// An object as the API server may hold it: `annotations` is absent rather than empty.
fn any_object(version: &'static str, schedule: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let annotations = proptest::collection::btree_map("example\\.com/[a-z]{1,4}", "\\PC{0,8}", 0..3);
    (schedule, annotations, any_json(), any_json(), any_json()).prop_map(
        move |(schedule, annotations, template, status, unknown)| {
            let mut object = object(version, schedule);
            if !annotations.is_empty() {
                object["metadata"]["annotations"] = json!(annotations);
            }
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
            object["spec"]["jobTemplate"] = template;
            object["spec"]["fieldOfTomorrow"] = unknown.clone();
            object["status"] = status;
            object["fieldOfTomorrow"] = unknown;
            object
        },
    )
}

proptest! {
    #[test]
    fn v1_objects_come_back_from_v2_as_they_were(object in any_object("v1", any_string_schedule())) {
        assert_survives_the_way_there_and_back(&object, "v1", "v2");
    }

    #[test]
    fn v2_objects_come_back_from_v1_as_they_were(object in any_object("v2", any_field_schedule())) {
        assert_survives_the_way_there_and_back(&object, "v2", "v1");
    }

    #[test]
    fn objects_of_the_wrong_shape_are_converted_too(schedule in any_json(), spec in any_json()) {
        for (home, abroad) in [("v1", "v2"), ("v2", "v1")] {
            to(abroad, &object(home, schedule.clone()));
            let mut object = object(home, Value::Null);
            object["spec"] = spec.clone();
            to(abroad, &object);
        }
    }

    #[test]
    fn every_stored_object_can_be_read_in_both_versions(
        schedule in any_string_schedule(),
        memories in (any_memory(), any_memory()),
        spare in prop_oneof![Just(None), (0_usize..200).prop_map(Some)],
        template in any_json(),
    ) {
        let mut stored = object("v1", schedule.clone());
        stored["spec"]["jobTemplate"] = template.clone();
        let mut annotations = Map::from_iter([(V1_SCHEDULE.to_owned(), memories.0.into()), (V2_SCHEDULE.to_owned(), memories.1.into())]);
        if let Some(spare) = spare {
            let taken = total(&annotations);
            annotations.insert("a".to_owned(), "x".repeat(ANNOTATIONS_MAX_BYTES.saturating_sub(taken + 1 + spare)).into());
        }
        stored["metadata"]["annotations"] = annotations.into();
        let v2 = read(&stored, "v2");
        let fields = v2["spec"]["schedule"].as_object().unwrap();
        prop_assert!(fields.iter().all(|(name, part)| crate::workshop::cronjob::v2::FIELDS.contains(&name.as_str()) && part.is_string()));
        let back = read(&v2, "v1");
        prop_assert!(back["spec"]["schedule"].is_string());
        for object in [&v2, &back] {
            prop_assert_eq!(&object["spec"]["jobTemplate"], &template);
            let annotations = object["metadata"].get("annotations").and_then(Value::as_object);
            prop_assert!(annotations.is_none_or(|annotations| total(annotations) <= ANNOTATIONS_MAX_BYTES));
        }
        if spare.is_none() && !stored["metadata"]["annotations"][V2_SCHEDULE].as_str().unwrap().starts_with('{') {
            prop_assert_eq!(&back["spec"]["schedule"], &schedule);
        }
    }

    /// JSON that no decoder of ours would read, or would write in another way.
    #[test]
    fn what_is_no_schedule_stays_as_it_is_written_however_deep(
        depth in prop_oneof![1_usize..200, 200_usize..20_000],
        schedule in any_string_schedule(),
        one in prop_oneof![Just("1.0"), Just("1e999"), Just("-0"), Just(r#""\ud800""#), Just(r#"{"a":1,"a":2,"\u0061":3}"#)],
    ) {
        let deep = format!("{}{one}{}", r#"{"":["#.repeat(depth), "]}".repeat(depth));
        let stored = object("v1", schedule).to_string().replace(r#""jobTemplate":{}"#, &format!(r#""jobTemplate":{deep},"x":{one}"#));
        let stored = stored.replace(r#""uid":"u""#, &format!(r#""uid":"u","managedFields":{deep}"#));
        let stored = stored.replacen('{', &format!(r#"{{"status":{deep},"#), 1);
        let there = read_text(&stored, "v2");
        let back = read_text(&there, "v1");
        for text in [there, back] {
            for kept in [format!(r#""jobTemplate":{deep}"#), format!(r#""x":{one}"#), format!(r#""managedFields":{deep}"#), format!(r#""status":{deep}"#)] {
                prop_assert_eq!(text.matches(&kept).count(), 1);
            }
        }
    }
}

/// What a user may write in place of what conversion remembers.
fn any_memory() -> impl Strategy<Value = String> {
    let depth = 1_usize..2_000;
    prop_oneof![
        any_json().prop_map(|json| json.to_string()),
        any_field_schedule().prop_map(|json| json.to_string()),
        any_json().prop_map(|json| json!({"minute": json, "hour": "1"}).to_string()),
        depth.prop_map(|depth| format!("{{\"minute\":{}{}}}", "[".repeat(depth), "]".repeat(depth))),
        "\\PC{0,20}",
    ]
}

fn total(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum()
}

/// As the API server reads it, through the webhook.
fn read(object: &Value, version: &str) -> Value {
    serde_json::from_str(&read_text(&object.to_string(), version)).unwrap()
}

fn read_text(object: &str, version: &str) -> String {
    let registry = Registry::<()>::default().converting(cronjob());
    let review = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"7","desiredAPIVersion":"batch.outrider.dev/{version}","objects":[{object}]}}}}"#
    );
    let reply = String::from_utf8(registry.convert(review.as_bytes()).unwrap()).unwrap();
    let (_, objects) = reply.split_once(r#""convertedObjects":["#).expect(&reply);
    objects.strip_suffix(r#"],"result":{"status":"Success"}}}"#).expect(&reply).to_owned()
}
