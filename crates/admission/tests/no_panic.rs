//! Whatever a client sends, it gets an answer or an error: no panic, no stack overflow, no verdict without a uid.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod half_surrogates;

use std::borrow::Cow;

use admission::conversion::{Conversion, Hub, Spoke};
use admission::registry::{Phase, Resource};
use admission::{
    Defaulting, Findings, Mutating, Operation, PatchBuilder, PatchError, PatchWriter, Reason, Registry, Request,
    Review, Rule, Unserved, Validating, Verdict,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use half_surrogates::without_half_surrogates;

const BACKUPS: &[Resource] = &[Resource { group: "acme.example", version: "v1", resource: "backups", kind: "Backup" }];
const RAW: &[Resource] = &[Resource { group: "acme.example", version: "v1", resource: "raws", kind: "Raw" }];
const RULE: Rule = Rule::new("backup.acme.example", BACKUPS, &[Operation::Create]);

struct Backups;

#[derive(Deserialize)]
struct View<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

impl Mutating<()> for Backups {
    type Object<'a> = View<'a>;
    fn mutate<'a>(&self, request: &Request<'a, View<'a>>, (): &()) -> Result<Verdict, Unserved> {
        let object = request.object.as_ref().ok_or(Unserved::Fault)?;
        let mut patch = PatchWriter::default();
        patch.add("/seen", object.spec.map_or("null", RawValue::get));
        Ok(Verdict::patch(Reason::new("Seen"), patch).warn(object.name.clone()).audit("seen", request.name.as_str()))
    }
}

impl Defaulting<()> for Backups {
    fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, (): &()) -> Result<(), PatchError> {
        patch.default("/spec/schedule/minutes", json!(5))?;
        patch.insert("/spec/targets", 0, json!("first"))?;
        patch.remove("/spec/targets/1");
        patch.set("/spec/targets/0/name", json!("changed"))
    }
}

impl Validating<()> for Backups {
    type Object<'a> = Value;
    fn update(&self, new: &Value, old: &Value, _: &Request<'_, Value>, (): &(), findings: &mut Findings) {
        findings.warnings.push(format!("{old} {new}"));
    }
}

#[derive(Serialize, Deserialize)]
struct V1 {
    spec: Value,
}
#[derive(Serialize, Deserialize)]
struct V2 {
    spec: Value,
}
impl Hub for V1 {
    const VERSION: &'static str = "v1";
}
impl Spoke<V1> for V2 {
    const VERSION: &'static str = "v2";
    fn into_hub(self) -> Result<V1, String> {
        Ok(V1 { spec: self.spec })
    }
    fn from_hub(hub: V1) -> Result<Self, String> {
        Ok(Self { spec: hub.spec })
    }
}

fn registry() -> Registry<()> {
    Registry::default()
        .mutating(Rule { resources: RAW, ..RULE }, Backups)
        .defaulting(RULE, Backups)
        .validating(RULE, Backups)
        .converting(Conversion::new::<V1>("acme.example", "Backup").spoke::<V1, V2>())
}

/// Sends `body` everywhere and checks what must hold for any body.
fn probe(registry: &Registry<()>, body: &[u8]) {
    let review = Review::<Value>::parse(body);
    for entry in registry.entries() {
        let Ok(answer) = entry.endpoint.answer(body, &()) else { continue };
        let reply: Value = serde_json::from_slice(&answer.body).expect("a reply is JSON");
        let response = &reply["response"];
        assert_eq!(response["uid"], answer.summary.uid);
        assert!(response["allowed"].is_boolean());
        assert_eq!(response.get("patch").is_some(), response.get("patchType").is_some());
        assert!(entry.phase == Phase::Mutating || response.get("patch").is_none());
        if let Ok(review) = &review {
            assert_eq!(response["uid"], review.request.uid.as_str());
        }
    }
    if let Ok(reply) = registry.convert(body) {
        let reply = String::from_utf8(reply).expect("a reply is text");
        let reply: Value = serde_json::from_str(&without_half_surrogates(&reply)).expect("a reply is JSON");
        assert!(reply["response"]["uid"].as_str().is_some_and(|uid| !uid.is_empty()));
    }
}

#[test]
fn half_a_surrogate_pair_is_copied_and_the_reply_is_json() {
    let body = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"c","desiredAPIVersion":"acme.example/v2","objects":[{"apiVersion":"acme.example/v1","kind":"Backup","metadata":{"labels":{"\ud800":"\ude00"}},"spec":1}]}}"#;
    let reply = String::from_utf8(registry().convert(body.as_bytes()).unwrap()).unwrap();
    assert!(reply.contains(r#"{"\ud800":"\ude00"}"#), "{reply}");
    probe(&registry(), body.as_bytes());
}

fn seeds() -> Vec<Vec<u8>> {
    let backup = json!({"apiVersion": "acme.example/v1", "kind": "Backup", "name": "nightly é\u{1}",
        "metadata": {"name": "nightly", "labels": {"a": "b"}}, "spec": {"targets": ["x", null], "schedule": null}});
    let review = |operation: &str| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "0df28fbd", "operation": operation, "name": "nightly", "namespace": "shop", "dryRun": false,
            "kind": {"group": "acme.example", "version": "v1", "kind": "Backup"}, "options": null,
            "userInfo": {"username": "jane", "groups": ["a"], "extra": {"b": ["c"]}},
            "object": backup, "oldObject": backup}})
    };
    let conversion = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "c", "desiredAPIVersion": "acme.example/v2", "objects": [backup, backup]}});
    [review("CREATE"), review("UPDATE"), review("DELETE"), review("CONNECT"), conversion]
        .iter()
        .map(|seed| seed.to_string().into_bytes())
        .collect()
}

#[derive(Debug, Clone)]
enum Mutation {
    Overwrite(Vec<u8>),
    Insert(Vec<u8>),
    Cut(usize),
    Repeat(usize),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let tokens = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "0",
        "-1e999",
        "1e-400",
        "18446744073709551616",
        "true",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\ud800",
        "\\u0000",
        "\u{0}",
        "é",
        "\"uid\":",
        "\"object\":",
    ];
    let token = prop::sample::select(tokens.map(|token| token.as_bytes().to_vec()).to_vec());
    let bytes = prop_oneof![3 => token, 1 => prop::collection::vec(any::<u8>(), 1..4)];
    prop_oneof![
        bytes.clone().prop_map(Mutation::Overwrite),
        bytes.prop_map(Mutation::Insert),
        (1..40_usize).prop_map(Mutation::Cut),
        (1..40_usize).prop_map(Mutation::Repeat),
    ]
}

fn mutate(body: &mut Vec<u8>, place: usize, mutation: &Mutation) {
    let at = place % (body.len() + 1);
    let until = |len: usize| (at + len).min(body.len());
    match mutation {
        Mutation::Overwrite(bytes) => drop(body.splice(at..until(bytes.len()), bytes.iter().copied())),
        Mutation::Insert(bytes) => drop(body.splice(at..at, bytes.iter().copied())),
        Mutation::Cut(len) => drop(body.drain(at..until(*len))),
        Mutation::Repeat(len) => body.extend_from_within(at..until(*len)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        probe(&registry(), &body);
    }

    #[test]
    fn mutated_reviews_never_panic(
        seed in prop::sample::select(seeds()),
        mutations in prop::collection::vec((any::<usize>(), mutations()), 0..4),
    ) {
        let mut body = seed;
        for (place, mutation) in &mutations {
            mutate(&mut body, *place, mutation);
        }
        probe(&registry(), &body);
    }
}

#[test]
fn replacing_any_value_of_a_review_never_panics() {
    let odd = [json!(null), json!(7), json!("x"), json!([]), json!({}), json!([[null]]), json!({"": {"": 1}})];
    let registry = registry();
    for seed in seeds() {
        let seed: Value = serde_json::from_slice(&seed).unwrap();
        for pointer in pointers(&seed) {
            for value in &odd {
                let mut body = seed.clone();
                *body.pointer_mut(&pointer).unwrap() = value.clone();
                probe(&registry, body.to_string().as_bytes());
            }
        }
    }
}

fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, child)| (format!("/{key}"), child)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(index, child)| (format!("/{index}"), child)).collect(),
        _ => Vec::new(),
    };
    let below = |(step, child): (String, &Value)| -> Vec<String> {
        pointers(child).into_iter().map(|rest| format!("{step}{rest}")).collect()
    };
    std::iter::once(String::new()).chain(children.into_iter().flat_map(below)).collect()
}

#[test]
fn deep_nesting_never_overflows_the_stack() {
    // A frame has more than 24 bytes and the stack of a test thread 2 MiB.
    let depth = 100_000;
    let registry = registry();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}0{}", open.repeat(depth), close.repeat(depth));
        for seed in seeds() {
            let seed = String::from_utf8(seed).unwrap();
            for place in ["\"targets\":", "\"options\":", "\"extra\":", "\"request\":", "\"uid\":", "\"objects\":"] {
                let Some(at) = seed.find(place).map(|at| at + place.len()) else { continue };
                let body = format!("{}{deep},\"was\":{}", &seed[..at], &seed[at..]);
                probe(&registry, body.as_bytes());
            }
        }
    }
}
