//! The largest conversion reviews: of 7 MiB, as users may fill what the API server then wants converted.

use outrider::workshop::cronjob::vocabulary::V2_SCHEDULE;
use serde_json::json;

use crate::hostile::LARGEST;

/// Where the API server has objects converted.
pub const CONVERT: &str = "/convert?timeout=30s";

const PLAIN: &str = r#""schedule":"@every 5m""#;

/// Name, path and body of each.
pub fn conversions() -> Vec<(&'static str, &'static str, String)> {
    let of = |metadata: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"batch.outrider.dev/v1","kind":"CronJob","metadata":{{"name":"a"{metadata}}},"spec":{{{spec}}}}}"#
        )
    };
    let annotated = |annotations: &str| of(&format!(r#","annotations":{{{annotations}}}"#), PLAIN);
    let forged = format!(r#""{V2_SCHEDULE}":{}"#, json!(format!("{{{}}}", many(r#""":"""#, LARGEST / 3))));
    let half = (LARGEST - 1_000) / 2;
    let deep = format!("{}{}", "[".repeat(half), "]".repeat(half));
    let room = LARGEST - 1_000;
    let objects = [
        ("one long annotation", annotated(&format!(r#""a":"{}""#, "x".repeat(room)))),
        ("empty annotations", annotated(&many(r#""":"""#, room))),
        ("a forged memory", annotated(&forged)),
        ("managed fields", of(&format!(r#","managedFields":[{}]"#, many(r#"{"":0}"#, room)), PLAIN)),
        ("maps in the template", of("", &format!(r#"{PLAIN},"jobTemplate":[{}]"#, many(r#"{"":0}"#, room)))),
        ("a deep template", of("", &format!(r#"{PLAIN},"jobTemplate":{deep}"#))),
        ("a list for a schedule", of("", &format!(r#""schedule":[{}]"#, many("[]", room)))),
        ("a long schedule in escapes", of("", &format!(r#""schedule":"{}""#, r"\u0001".repeat(room / 6)))),
        ("small objects", many(&of("", r#""schedule":"@yearly""#), room)),
    ];
    objects.into_iter().map(|(what, objects)| (what, CONVERT, review(&objects))).collect()
}

fn review(objects: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"batch.outrider.dev/v2","objects":[{objects}]}}}}"#
    )
}

/// As many of them as there is room for, with commas between.
fn many(one: &str, room: usize) -> String {
    vec![one; room / (one.len() + 1)].join(",")
}
