use admission::{Findings, Reason, Registry};
use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::Version;
use crate::workshop::cronjob::webhooks;
use engine::snapshot::Snapshot;

/// A valid object with these fields of `spec` in place of its own; `null` takes one away.
fn cronjob(fields: &Value) -> Value {
    let pod = json!({"restartPolicy": "OnFailure", "containers": [{"name": "a", "image": "a:1"}]});
    let mut spec = json!({"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}});
    for (key, value) in fields.as_object().unwrap() {
        match value {
            Value::Null => drop(spec.as_object_mut().unwrap().remove(key)),
            value => spec[key] = value.clone(),
        }
    }
    json!({"apiVersion": "batch.outrider.dev/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec})
}

fn with_pod(pod: &Value) -> Value {
    cronjob(&json!({"jobTemplate": {"spec": {"template": {"spec": pod}}}}))
}

fn judged(object: &Value) -> (String, Vec<String>) {
    let mut findings = Findings::default();
    super::create(object, Version::V1, &mut findings);
    (findings.errors.to_string(), findings.warnings)
}

fn errors(object: &Value) -> String {
    judged(object).0
}

fn errors_of_update(new: &Value, old: &Value) -> String {
    let mut findings = Findings::default();
    super::update(new, old, Version::V1, &mut findings);
    findings.errors.to_string()
}

/// The upstream tests T4 and T6.
#[test]
fn valid_objects_pass_without_a_warning() {
    for fields in [
        json!({}),
        json!({"schedule": "@hourly"}),
        json!({"schedule": "0 0 ? * MON-fri", "timeZone": "Europe/Berlin", "deletionPolicy": "WaitForActiveJobs"}),
        json!({"concurrencyPolicy": "Forbid", "suspend": true, "startingDeadlineSeconds": 1, "failedJobsHistoryLimit": 0}),
    ] {
        assert_eq!(judged(&cronjob(&fields)), (String::new(), vec![]), "{fields}");
    }
}

#[test]
fn annotations_leave_room_for_a_schedule_that_the_other_version_cannot_say() {
    let full = |schedule: &str, bytes: usize| {
        let mut object = cronjob(&json!({"schedule": schedule}));
        object["metadata"]["annotations"] = json!({"a": "x".repeat(bytes - 1)});
        object
    };
    let limit = 256 * 1024;
    let told = "metadata.annotations: Forbidden: spec.schedule is remembered in an annotation of 39 bytes for those who read version \
                v2, and the other annotations leave room for 5";
    assert_eq!(errors(&full("@every 5h", limit - 5)), told);
    for fits in [full("@every 5h", limit - 39), full("*/5 * * * *", limit - 5)] {
        assert_eq!(errors(&fits), "");
    }
    let (small, large) = (full("@every 5h", 10), full("@every 5h", limit - 5));
    assert_eq!(errors_of_update(&large, &small), told);
    assert_eq!(errors_of_update(&full("@every 5h", limit - 4), &large), "", "what is wrong already may change");
    assert_eq!(errors_of_update(&small, &large), "");
}

/// The upstream test T5.
#[test]
fn faults_of_the_spec_are_told_in_the_words_of_the_api_server() {
    let cases = [
        (
            json!({"schedule": "invalid-cron-schedule"}),
            r#"spec.schedule: Invalid value: "invalid-cron-schedule": Expected exactly 5 fields, found 1: invalid-cron-schedule"#,
        ),
        (json!({"schedule": ""}), r#"spec.schedule: Invalid value: "": Empty spec string"#),
        (json!({"schedule": null}), "spec.schedule: Required value"),
        (
            json!({"schedule": {}}),
            r#"spec.schedule: Invalid value: "object": spec.schedule in body must be of type string: "object""#,
        ),
        (json!({"schedule": "*".repeat(1025)}), "spec.schedule: Too long: may not be more than 1024 bytes"),
        (
            json!({"timeZone": "Mars/Olympus"}),
            r#"spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus"#,
        ),
        (json!({"timeZone": "Local"}), r#"spec.timeZone: Invalid value: "Local": unknown time zone Local"#),
        (json!({"timeZone": "../UTC"}), r#"spec.timeZone: Invalid value: "../UTC": unknown time zone ../UTC"#),
        (
            json!({"timeZone": ""}),
            r#"spec.timeZone: Invalid value: "": must name a time zone such as Europe/Berlin, or be left out for UTC"#,
        ),
        (
            json!({"concurrencyPolicy": "Nope"}),
            r#"spec.concurrencyPolicy: Unsupported value: "Nope": supported values: "Allow", "Forbid", "Replace""#,
        ),
        (
            json!({"deletionPolicy": "Nope"}),
            r#"spec.deletionPolicy: Unsupported value: "Nope": supported values: "Delete", "WaitForActiveJobs""#,
        ),
        (
            json!({"suspend": "yes"}),
            r#"spec.suspend: Invalid value: "string": spec.suspend in body must be of type boolean: "string""#,
        ),
        (
            json!({"successfulJobsHistoryLimit": -1}),
            "spec.successfulJobsHistoryLimit: Invalid value: -1: spec.successfulJobsHistoryLimit in body should be greater than or equal to 0",
        ),
        (
            json!({"failedJobsHistoryLimit": 2_147_483_648_i64}),
            "spec.failedJobsHistoryLimit: Invalid value: 2147483648: spec.failedJobsHistoryLimit in body should be less than or equal to 2147483647",
        ),
        (
            json!({"startingDeadlineSeconds": -5}),
            "spec.startingDeadlineSeconds: Invalid value: -5: spec.startingDeadlineSeconds in body should be greater than or equal to 0",
        ),
        (
            json!({"startingDeadlineSeconds": 1.5}),
            r#"spec.startingDeadlineSeconds: Invalid value: "number": spec.startingDeadlineSeconds in body must be of type integer: "number""#,
        ),
        (json!({"jobTemplate": null}), "spec.jobTemplate: Required value"),
        (json!({"jobTemplate": {}}), "spec.jobTemplate.spec: Required value"),
    ];
    for (fields, expected) in cases {
        assert_eq!(errors(&cronjob(&fields)), expected);
    }
    assert_eq!(errors(&json!({"metadata": {"name": "a"}})), "spec: Required value");
}

#[test]
fn faults_of_the_job_template_are_told_before_a_job_fails_on_them() {
    let containers = json!([{"name": "a", "image": "a:1"}]);
    let at = "spec.jobTemplate.spec.template.spec";
    let cases = [
        (
            json!({"containers": containers}),
            format!(r#"{at}.restartPolicy: Required value: valid values: "OnFailure", "Never""#),
        ),
        (
            json!({"containers": containers, "restartPolicy": "Always"}),
            format!(r#"{at}.restartPolicy: Required value: valid values: "OnFailure", "Never""#),
        ),
        (
            json!({"containers": containers, "restartPolicy": "Maybe"}),
            format!(r#"{at}.restartPolicy: Unsupported value: "Maybe": supported values: "OnFailure", "Never""#),
        ),
        (
            json!({"containers": containers, "restartPolicy": 1}),
            format!(
                r#"{at}.restartPolicy: Invalid value: "integer": {at}.restartPolicy in body must be of type string: "integer""#
            ),
        ),
        (json!({"restartPolicy": "Never"}), format!("{at}.containers: Required value")),
        (json!({"restartPolicy": "Never", "containers": []}), format!("{at}.containers: Required value")),
        (
            json!({"restartPolicy": "Never", "containers": {}}),
            format!(
                r#"{at}.containers: Invalid value: "object": {at}.containers in body must be of type array: "object""#
            ),
        ),
        (
            json!({"restartPolicy": "Never", "containers": [{"name": "a"}, null]}),
            format!("[{at}.containers[0].image: Required value, {at}.containers[1]: Required value]"),
        ),
    ];
    for (pod, expected) in cases {
        assert_eq!(errors(&with_pod(&pod)), expected);
    }
}

/// The upstream test T3.
#[test]
fn name_leaves_room_for_the_time_of_a_job() {
    let named = |length: usize| {
        let mut object = cronjob(&json!({}));
        object["metadata"]["name"] = "a".repeat(length).into();
        errors(&object)
    };
    assert_eq!(named(52), "");
    let name = "a".repeat(53);
    assert_eq!(named(53), format!(r#"metadata.name: Invalid value: "{name}": must be no more than 52 characters"#));
}

#[test]
fn every_less_than_a_second_is_refused() {
    for every in ["@every 1ns", "@every 999ms", "@every 0", "@every -5m"] {
        let told = format!(
            "spec.schedule: Invalid value: \"{every}\": must be at least 1s: a run starts at most once a second"
        );
        assert_eq!(errors(&cronjob(&json!({"schedule": every}))), told);
    }
    for every in ["@every 1s", "@every 1500ms", "@every 1h"] {
        assert_eq!(errors(&cronjob(&json!({"schedule": every}))), "", "{every}");
    }
}

#[test]
fn schedules_that_surprise_are_allowed_with_a_warning() {
    let cases = [
        (
            "@every 5m",
            "spec.schedule: \"@every 5m\" has no form in version v2; who reads that version finds it in the annotation batch.outrider.dev/v1-schedule",
        ),
        ("0 0 30 2 *", "spec.schedule: \"0 0 30 2 *\" matches no date, so no Job will ever start"),
        (", * * * *", "spec.schedule: \", * * * *\" matches no date, so no Job will ever start"),
    ];
    for (schedule, warning) in cases {
        assert_eq!(judged(&cronjob(&json!({"schedule": schedule}))), (String::new(), vec![warning.to_owned()]));
    }
    let warning =
        "spec.startingDeadlineSeconds: 0 leaves no run any time to start, so no Job will ever start".to_owned();
    assert_eq!(judged(&cronjob(&json!({"startingDeadlineSeconds": 0}))), (String::new(), vec![warning]));
}

/// The upstream tests T7 and T8.
#[test]
fn defaults_that_are_put_in_are_no_change_and_anything_else_is() {
    let bad =
        cronjob(&json!({"schedule": "x", "suspend": null, "concurrencyPolicy": "", "failedJobsHistoryLimit": [1]}));
    let mut filled = bad.clone();
    for (name, value) in
        [("suspend", json!(false)), ("concurrencyPolicy", json!("Allow")), ("successfulJobsHistoryLimit", json!(3))]
    {
        filled["spec"][name] = value;
    }
    assert_eq!(errors_of_update(&filled, &bad), "");
    for (name, value) in
        [("suspend", json!(true)), ("failedJobsHistoryLimit", json!(1)), ("more", json!(1)), ("schedule", json!("y"))]
    {
        let mut changed = filled.clone();
        changed["spec"][name] = value;
        assert_ne!(errors_of_update(&changed, &bad), "", "{name}");
    }
    let mut without = filled.clone();
    without["spec"].as_object_mut().unwrap().remove("jobTemplate");
    assert_ne!(errors_of_update(&without, &bad), "");
}

#[test]
fn update_is_judged_like_a_new_object_unless_the_spec_stays_as_it_is() {
    let good = cronjob(&json!({}));
    let bad = cronjob(&json!({"schedule": "x"}));
    assert_eq!(errors_of_update(&cronjob(&json!({"schedule": "0 0 * * *"})), &good), "");
    assert_eq!(
        errors_of_update(&bad, &good),
        r#"spec.schedule: Invalid value: "x": Expected exactly 5 fields, found 1: x"#
    );
    let mut labelled = bad.clone();
    labelled["metadata"]["finalizers"] = json!(["batch.outrider.dev/finalizer"]);
    assert_eq!(errors_of_update(&labelled, &bad), "");
    // What the API server sends once our defaults were put in.
    labelled["spec"]["concurrencyPolicy"] = "Allow".into();
    labelled["spec"]["suspend"] = false.into();
    labelled["spec"]["successfulJobsHistoryLimit"] = 3.into();
    labelled["spec"]["failedJobsHistoryLimit"] = 1.into();
    assert_eq!(errors_of_update(&labelled, &bad), "");
    labelled["spec"]["failedJobsHistoryLimit"] = 2.into();
    assert_ne!(errors_of_update(&labelled, &bad), "");
    let mut suspended = bad.clone();
    suspended["spec"]["suspend"] = true.into();
    assert_ne!(errors_of_update(&suspended, &bad), "");
}

#[test]
fn object_that_is_being_deleted_is_not_judged() {
    let mut object = cronjob(&json!({"schedule": "x"}));
    object["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
    let changed = cronjob(&json!({"schedule": "y"}));
    let judged = |new: &Value, old: &Value| {
        let mut findings = Findings::default();
        super::update(new, old, Version::V1, &mut findings);
        (findings.errors.is_empty(), findings.reason)
    };
    assert_eq!(judged(&changed, &object), (true, Reason::TERMINATING));
    // What the author writes into the field is not what the API server has written.
    assert_eq!(judged(&object, &changed), (false, Reason::ALLOWED));
    assert_eq!(response(VALIDATE, "CREATE", &object)["allowed"], false);
}

fn response(path: &str, operation: &str, object: &Value) -> Value {
    response_to(path, operation, object, "v1")
}

/// The answer where the object was sent in a version, and the API server turned it into v1.
fn response_to(path: &str, operation: &str, object: &Value, sent: &str) -> Value {
    let registry = webhooks(Registry::default());
    let (new, old) = if operation == "DELETE" { (&Value::Null, object) } else { (object, &Value::Null) };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": operation, "name": object["metadata"]["name"], "object": new, "oldObject": old,
        "kind": {"group": "batch.outrider.dev", "version": "v1", "kind": "CronJob"},
        "requestKind": {"group": "batch.outrider.dev", "version": sent, "kind": "CronJob"},
    }});
    let body = serde_json::to_vec(&review).unwrap();
    let answer = registry.find(path).unwrap().endpoint.answer(&body, &Snapshot::default()).unwrap();
    serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take()
}

const VALIDATE: &str = "/validate-batch-outrider-dev-v1-cronjob";

/// Acceptance checks 6 and 7.
#[test]
fn both_faults_are_told_in_one_reply_with_code_422_and_two_causes() {
    let mut object = cronjob(&json!({"schedule": "invalid-cron-schedule"}));
    let name = "this-name-is-longer-than-what-a-job-of-it-leaves-room-for";
    object["metadata"]["name"] = name.into();
    assert_eq!(
        response(VALIDATE, "CREATE", &object),
        json!({
            "uid": "u",
            "allowed": false,
            "status": {
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": format!("CronJob.batch.outrider.dev \"{name}\" is invalid: [metadata.name: Invalid value: \"{name}\": \
                    must be no more than 52 characters, spec.schedule: Invalid value: \"invalid-cron-schedule\": \
                    Expected exactly 5 fields, found 1: invalid-cron-schedule]"),
                "details": {"name": name, "group": "batch.outrider.dev", "kind": "CronJob", "causes": [
                    {
                        "reason": "FieldValueInvalid", "field": "metadata.name",
                        "message": format!("Invalid value: \"{name}\": must be no more than 52 characters"),
                    },
                    {
                        "reason": "FieldValueInvalid", "field": "spec.schedule",
                        "message": "Invalid value: \"invalid-cron-schedule\": Expected exactly 5 fields, found 1: invalid-cron-schedule",
                    },
                ]},
            },
        })
    );
}

/// An object of v2 as the API server has it converted, by the conversion that is served.
fn converted(schedule: &Value) -> Value {
    let mut object = cronjob(&json!({"schedule": schedule}));
    object["apiVersion"] = "batch.outrider.dev/v2".into();
    let registry = webhooks(Registry::default());
    let mut text = String::new();
    registry.conversions()[0].convert(&to_raw_value(&object).unwrap(), "v1", &mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn faults_of_v2_are_told_in_its_own_fields() {
    const ONE_FIELD: &str = "must be one field of a schedule, without spaces; leave it out for every value";
    let table: [(Value, &[(&str, &str)]); 8] = [
        (json!({"minute": "61"}), &[("minute", r#"Invalid value: "61": End of range (61) above maximum (59): 61"#)]),
        (
            json!({"hour": "x", "minute": "5", "dayOfWeek": "8"}),
            &[
                (
                    "hour",
                    r#"Invalid value: "x": Failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#,
                ),
                ("dayOfWeek", r#"Invalid value: "8": End of range (8) above maximum (6): 8"#),
            ],
        ),
        (json!({"month": "0"}), &[("month", r#"Invalid value: "0": Beginning of range (0) below minimum (1): 0"#)]),
        (json!({"minute": ""}), &[("minute", &format!(r#"Invalid value: "": {ONE_FIELD}"#))]),
        (json!({"dayOfMonth": "0 0"}), &[("dayOfMonth", &format!(r#"Invalid value: "0 0": {ONE_FIELD}"#))]),
        (json!({"minute": "@every 5m"}), &[("minute", &format!(r#"Invalid value: "@every 5m": {ONE_FIELD}"#))]),
        (
            json!({"minute": "@hourly"}),
            &[(
                "minute",
                "Invalid value: \"@hourly\": a descriptor is a whole schedule of v1; write the fields that it is short for",
            )],
        ),
        (json!({"minute": "5", "hour": "*"}), &[]),
    ];
    for (schedule, expected) in table {
        let object = converted(&schedule);
        assert!(object["spec"]["schedule"].is_string(), "{object}");
        let response = response_to(VALIDATE, "CREATE", &object, "v2");
        let causes: Vec<(String, String)> = response["status"]["details"]["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| (cause["field"].as_str().unwrap().to_owned(), cause["message"].as_str().unwrap().to_owned()))
            .collect();
        let expected: Vec<(String, String)> =
            expected.iter().map(|(field, text)| (format!("spec.schedule.{field}"), (*text).to_owned())).collect();
        assert_eq!(causes, expected, "{schedule}");
        // The same object, sent as v1, is reported with v1's field.
        let as_v1 = response_to(VALIDATE, "CREATE", &object, "v1");
        assert_eq!(as_v1["allowed"], response["allowed"], "{schedule}");
        if !expected.is_empty() {
            assert_eq!(as_v1["status"]["details"]["causes"][0]["field"], "spec.schedule");
        }
    }
    let never = response_to(VALIDATE, "CREATE", &converted(&json!({"dayOfMonth": "30", "month": "2"})), "v2");
    assert_eq!(
        never["warnings"],
        json!([r#"spec.schedule: {"dayOfMonth":"30","month":"2"} matches no date, so no Job will ever start"#])
    );
}

/// Acceptance check 10.
#[test]
fn deletion_is_always_allowed() {
    assert_eq!(response(VALIDATE, "DELETE", &cronjob(&json!({"schedule": "x"})))["allowed"], true);
}

#[test]
fn registration_has_one_mutating_and_one_validating_path_for_v1_and_the_conversion() {
    let registry = webhooks(Registry::default());
    let paths: Vec<&str> = registry.entries().iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, ["/mutate-batch-outrider-dev-v1-cronjob", VALIDATE]);
    let versions: Vec<Vec<&str>> = registry.conversions().iter().map(|kind| kind.versions().collect()).collect();
    assert_eq!(versions, [["v1", "v2"]]);
    assert_eq!(
        response("/mutate-batch-outrider-dev-v1-cronjob", "CREATE", &cronjob(&json!({})))["patchType"],
        "JSONPatch"
    );
}

proptest! {
    #[test]
    fn text_of_any_kind_is_judged(schedule in "\\PC{0,60}", zone in "\\PC{0,80}") {
        judged(&cronjob(&json!({"schedule": schedule, "timeZone": zone})));
    }
}
