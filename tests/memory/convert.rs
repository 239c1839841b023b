//! What a conversion takes, and a decision on a `CronJob`, whatever is in the body.

use std::sync::PoisonError;

use admission::registry::Registry;
use engine::snapshot::Snapshot;
use outrider::workshop::cronjob::defaults::CronJobDefaults;
use outrider::workshop::cronjob::validation::CronJobValidation;
use outrider::workshop::cronjob::vocabulary::V2_SCHEDULE;
use outrider::workshop::cronjob::{conversion, mutating_rule, validating_rule};
use serde_json::json;

use crate::hostile_cronjobs::reviews;
use crate::{ALLOCATOR, ALONE};

/// Of a body that is tried. What is taken grows with it.
const BODY: usize = 1024 * 1024;

/// The largest body that is read.
const LARGEST_BODY: usize = 7 * 1024 * 1024;

/// Beside the body itself, for each of its bytes.
const BYTES_PER_BYTE: usize = 6;

/// Of the whole, with the body.
const MOST: usize = 64_000_000;
const _: () = assert!(LARGEST_BODY * (BYTES_PER_BYTE + 1) <= MOST);

#[test]
fn a_conversion_takes_no_more_than_is_stated() {
    let registry = Registry::<()>::default().converting(conversion::cronjob());
    hold(bodies, BYTES_PER_BYTE, |body| registry.convert(body).map(|reply| reply.len()).unwrap_or_default());
}

#[test]
fn a_decision_on_a_cronjob_takes_no_more_than_is_stated() {
    let registry = Registry::<Snapshot>::default()
        .defaulting(mutating_rule(), CronJobDefaults)
        .validating(validating_rule(), CronJobValidation);
    let snapshot = Snapshot::default();
    for entry in registry.entries() {
        // A value may be a map of one key, seven bytes in a list.
        hold(reviews, usize::MAX, |body| entry.endpoint.answer(body, &snapshot).unwrap().body.len());
    }
}

/// Measures every body, and fails for those that take more.
fn hold(bodies: fn() -> Vec<(String, String)>, bytes_per_byte: usize, answer: impl Fn(&[u8]) -> usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut too_much = Vec::new();
    for (what, body) in bodies() {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let reply = answer(body.as_bytes());
        let peak = ALLOCATOR.peak_usage() - before;
        println!("{what}: {} bytes, {peak} taken, {reply} answered", body.len());
        if peak > body.len().saturating_mul(bytes_per_byte) || peak + body.len() > MOST {
            too_much.push(format!("{what}: {peak} bytes for a body of {}", body.len()));
        }
    }
    assert!(too_much.is_empty(), "\n{}", too_much.join("\n"));
}

/// A review with these objects.
fn review(desired: &str, objects: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"batch.outrider.dev/{desired}","objects":[{objects}]}}}}"#
    )
}

/// As many of them as a body has room for, with commas between.
fn many(one: &str) -> String {
    let mut text = one.to_owned();
    let more = format!(",{one}");
    text.push_str(&more.repeat((BODY - 1024) / more.len()));
    text
}

fn repeated(one: &str) -> String {
    one.repeat((BODY - 1024) / one.len())
}

fn bodies() -> Vec<(String, String)> {
    let mut bodies = Vec::new();
    for (from, to) in [("v1", "v2"), ("v2", "v1"), ("v1", "v1")] {
        for (what, object) in objects(from) {
            bodies.push((format!("{what}, {from} to {to}"), review(to, &object)));
        }
    }
    let names = repeated("\u{7f}");
    bodies.push(("zeros for objects".to_owned(), review("v2", &many("0"))));
    bodies.push(("lists for objects".to_owned(), review("v2", &many("[]"))));
    bodies.push(("a long version".to_owned(), review(&names, r#"{"kind":"CronJob"}"#)));
    bodies.push(("a long uid".to_owned(), review("v1", "").replace("\"u\"", &json!(names).to_string())));
    bodies.push(("a long kind".to_owned(), review("v1", &json!({"kind": names}).to_string())));
    let unknown = json!({"apiVersion": "batch.outrider.dev/v9", "kind": "CronJob", "metadata": {"name": names}});
    bodies.push(("a long name that fails".to_owned(), review("v1", &unknown.to_string())));
    let around = format!(r#"{{"other":[{}],"kind":"ConversionReview"}}"#, many("{}"));
    bodies.push(("a review with a long field of its own".to_owned(), around));
    bodies
}

/// Objects of a version, each a whole body or many.
fn objects(version: &str) -> Vec<(&'static str, String)> {
    let of = |metadata: &str, spec: &str, rest: &str| {
        format!(
            r#"{{"apiVersion":"batch.outrider.dev/{version}","kind":"CronJob","metadata":{{"name":"a"{metadata}}},"spec":{{{spec}}}{rest}}}"#
        )
    };
    let plain = if version == "v1" { r#""schedule":"@every 5m""# } else { r#""schedule":{"minute":"*"}"# };
    let schedule = |text: &str| {
        if version == "v1" { format!(r#""schedule":{text}"#) } else { format!(r#""schedule":{{"minute":{text}}}"#) }
    };
    let deep = (BODY - 1024) / 2;
    let deep = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    vec![
        ("maps in managed fields", of(&format!(r#","managedFields":[{}]"#, many(r#"{"":0}"#)), plain, "")),
        ("one long annotation", of(&format!(r#","annotations":{{"a":"{}"}}"#, repeated("x")), plain, "")),
        ("empty annotations", of(&format!(r#","annotations":{{{}}}"#, many(r#""":"""#)), plain, "")),
        ("labels", of(&format!(r#","labels":{{{}}}"#, many(r#""\n":"\n""#)), plain, "")),
        (
            "forged memories",
            of(
                &format!(r#","annotations":{{{}}}"#, many(r#""batch.outrider.dev/v1-schedule":"{\"a\":[]}""#)),
                plain,
                "",
            ),
        ),
        ("one long memory", {
            let memory = json!(format!("{{{}}}", many(r#""":"""#).get(..BODY / 2).unwrap())).to_string();
            let both = format!(r#""{V2_SCHEDULE}":{memory}"#);
            of(&format!(r#","annotations":{{{both}}}"#), plain, "")
        }),
        ("fields of the object", of("", plain, &format!(",{}", many(r#""":0"#)))),
        ("twice a spec", of("", plain, &format!(",{}", many(r#""spec":{"schedule":"@yearly"}"#)))),
        ("twice metadata", of("", plain, &format!(",{}", many(r#""metadata":{"annotations":{}}"#)))),
        ("a deep template", of("", &format!(r#"{plain},"jobTemplate":{deep}"#), "")),
        ("maps in the template", of("", &format!(r#"{plain},"jobTemplate":[{}]"#, many(r#"{"":0}"#)), "")),
        ("a deep schedule", of("", &format!(r#""schedule":{deep}"#), "")),
        ("a list for a schedule", of("", &format!(r#""schedule":[{}]"#, many("[]")), "")),
        ("many fields of a schedule", of("", &format!(r#""schedule":{{{}}}"#, many(r#""minute":"*""#)), "")),
        ("a long schedule", of("", &schedule(&format!("\"{}\"", repeated("x"))), "")),
        ("a long schedule in escapes", of("", &schedule(&format!("\"{}\"", repeated(r"\u0001"))), "")),
        ("a long schedule in quotes", of("", &schedule(&format!("\"{}\"", repeated("\\\""))), "")),
        ("a long schedule of words", of("", &schedule(&format!("\"{}\"", repeated("x "))), "")),
        ("small objects", many(&of("", plain, ""))),
        ("small objects that grow", many(&of("", &schedule("\"@yearly\""), ""))),
        ("a long name", of("", plain, "").replace("\"a\"", &format!("\"{}\"", repeated("\u{7f}")))),
    ]
}
