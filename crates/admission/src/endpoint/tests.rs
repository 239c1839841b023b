use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Decision, Defaulting, Findings, Mutating, Summary, Validating};
use crate::deadline::Deadline;
use crate::field::{Error, Path};
use crate::patch::{PatchBuilder, PatchError, PatchWriter, apply};
use crate::question::{Access, Answers, Known, Object, Question};
use crate::reason::Reason;
use crate::registry::{Phase, Registry, Resource, Rule};
use crate::reply::{Denial, Verdict};
use crate::review::{Operation, Request};
use crate::unserved::Unserved;

const BACKUPS: &[Resource] = &[Resource { group: "acme.example", version: "v1", resource: "backups", kind: "Backup" }];
const RULE: Rule = Rule::new("backup.acme.example", BACKUPS, &[Operation::Create, Operation::Update]);

/// The read model of these tests: the most copies that anyone may keep.
type Snapshot = i64;

struct Backups;

#[derive(Debug, Deserialize)]
struct Backup {
    keep: i64,
}

impl Defaulting<Snapshot> for Backups {
    fn default(&self, _: &Request<'_, Value>, patch: &mut PatchBuilder, snapshot: &Snapshot) -> Result<(), PatchError> {
        patch.default("/spec/keep", json!(snapshot))
    }
}

impl Validating<Snapshot> for Backups {
    type Object<'a> = Backup;

    fn create(&self, object: &Backup, _: &Request<'_, Backup>, snapshot: &Snapshot, findings: &mut Findings) {
        let keep = Path::new("keep");
        findings.warnings.push(format!("keeps {}", object.keep));
        findings.audit.push(("keep".into(), object.keep.to_string()));
        if object.keep > *snapshot {
            findings.errors.push(Error::invalid(&keep, object.keep, format!("must be at most {snapshot}")));
        }
        if object.keep % 2 != 0 {
            findings.errors.push(Error::invalid(&keep, object.keep, "must be even"));
        }
    }

    fn update(&self, object: &Backup, old: &Backup, _: &Request<'_, Backup>, _: &Snapshot, findings: &mut Findings) {
        if object.keep < old.keep {
            findings.errors.push(Error::forbidden(&Path::new("keep"), "may not shrink"));
        }
    }

    fn delete(&self, old: &Backup, request: &Request<'_, Backup>, _: &Snapshot, findings: &mut Findings) {
        if old.keep > 0 {
            let denial = Denial::forbidden(request, format!("{} still has copies", request.name));
            findings.denial = Some((Reason::new("StillInUse"), denial));
        }
    }
}

/// Answers as the object says.
struct Obedient;

impl Mutating<Snapshot> for Obedient {
    type Object<'a> = &'a str;

    fn mutate<'a>(&self, request: &Request<'a, &'a str>, _: &Snapshot) -> Result<Verdict, Unserved> {
        match request.object {
            Some("patch") => {
                let mut patch = PatchWriter::default();
                patch.add("/x", "1");
                Ok(Verdict::patch(Reason::new("Obeyed"), patch))
            }
            Some("deny") => Ok(Verdict::deny(Reason::INVALID, Denial::forbidden(request, "as you wish"))),
            Some("wait") => Err(Unserved::NamespaceUnknown(request.namespace.to_string())),
            _ => Ok(Verdict::allow(Reason::new("NoMatch"))),
        }
    }
}

fn ask(phase: Phase, registry: &Registry<Snapshot>, request: Value) -> Result<(Answer, Value), Unserved> {
    let mut request = request;
    for (field, value) in [
        ("uid", json!("u-1")),
        ("kind", json!({"group": "acme.example", "version": "v1", "kind": "Backup"})),
        ("name", json!("nightly")),
        ("namespace", json!("shop")),
    ] {
        if request.get(field).is_none() {
            request[field] = value;
        }
    }
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let endpoint = &registry.find(&RULE.path(phase)).unwrap().endpoint;
    let answer = endpoint.answer(body.as_bytes(), &4)?;
    let mut reply: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(reply["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(reply["response"]["uid"], "u-1");
    assert_eq!(answer.summary.uid, "u-1");
    Ok((answer, reply["response"].take()))
}

fn default(request: Value) -> (Answer, Value) {
    ask(Phase::Mutating, &Registry::default().defaulting(RULE, Backups), request).unwrap()
}

fn validate(request: Value) -> (Answer, Value) {
    ask(Phase::Validating, &Registry::default().validating(RULE, Backups), request).unwrap()
}

fn mutate(object: &str) -> Result<(Answer, Value), Unserved> {
    let request = json!({"operation": "CREATE", "object": object});
    ask(Phase::Mutating, &Registry::default().mutating(RULE, Obedient), request)
}

#[test]
fn defaults_are_patched_in_and_are_a_fixed_point() {
    let mut object = json!({"spec": null, "newer": {"kept": true}});
    let (answer, response) = default(json!({"operation": "CREATE", "object": object}));
    assert_eq!((answer.decision, answer.reason), (Decision::Patched, Reason::DEFAULTED));
    assert_eq!(response["patchType"], "JSONPatch");
    apply(&mut object, &STANDARD.decode(response["patch"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(object, json!({"spec": {"keep": 4}, "newer": {"kept": true}}));

    let (answer, response) = default(json!({"operation": "UPDATE", "object": object}));
    assert_eq!((answer.decision, answer.reason), (Decision::Allowed, Reason::ALLOWED));
    assert_eq!(response, json!({"uid": "u-1", "allowed": true}));
}

#[test]
fn deletions_and_connections_are_not_defaulted() {
    let cases = [
        json!({"operation": "DELETE", "oldObject": {}}),
        json!({"operation": "CONNECT", "object": {"command": ["sh"]}}),
    ];
    for request in cases {
        let (answer, response) = default(request);
        assert_eq!((answer.decision, answer.reason), (Decision::Allowed, Reason::ALLOWED));
        assert_eq!(response, json!({"uid": "u-1", "allowed": true}));
    }
}

#[test]
fn an_endpoint_answers_only_for_what_its_rule_names() {
    let deployment = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    for (more, about) in [
        (
            json!({"kind": deployment, "resource": {"group": "apps", "version": "v1", "resource": "deployments"}}),
            "deployments.apps (v1 Deployment)",
        ),
        (
            json!({"kind": {"group": "acme.example", "version": "v9", "kind": "Backup"}}),
            "backups.acme.example (v9 Backup)",
        ),
        (json!({"subResource": "status"}), "backups.acme.example/status (v1 Backup)"),
    ] {
        // What cannot be decoded is of no interest where it should not have been sent.
        for object in [json!({"keep": 2, "spec": {}}), json!({"keep": "text", "spec": "text"}), json!([])] {
            let mut request = json!({"operation": "CREATE", "object": object,
                "resource": {"group": "acme.example", "version": "v1", "resource": "backups"}});
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            for (answer, response) in [default(request.clone()), validate(request)] {
                assert_eq!((answer.decision, answer.reason), (Decision::Denied, Reason::NOT_SERVED));
                let wanted =
                    format!("this path serves backups.acme.example (v1 Backup), and the review is about {about}");
                assert_eq!(answer.message, wanted);
                assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)));
            }
        }
    }
    let long = "x".repeat(100_000);
    let (answer, _) = default(json!({"operation": "CREATE", "kind": {"version": long, "kind": long}, "object": {}}));
    assert!(answer.message.len() < 1_000, "what is said again has a limit");
}

#[test]
fn an_object_that_leaves_no_place_for_a_default_is_refused_by_name() {
    let (answer, response) = default(json!({"operation": "CREATE", "object": {"spec": "text"}}));
    assert_eq!((answer.decision, answer.reason), (Decision::Denied, Reason::UNDECODABLE));
    assert_eq!(answer.message, "/spec: expected a map, found a string");
    assert_eq!(response["status"]["code"], 400);
}

#[test]
fn every_fault_is_told_at_once_with_causes_and_warnings_survive_the_denial() {
    let (answer, response) = validate(json!({"operation": "CREATE", "object": {"keep": 5}}));
    assert_eq!((answer.decision, answer.reason), (Decision::Denied, Reason::INVALID));
    assert_eq!(response["allowed"], false);
    assert_eq!(response["warnings"], json!(["keeps 5"]));
    assert_eq!(response["auditAnnotations"], json!({"keep": "5"}));
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(status["message"], answer.message);
    assert_eq!(
        answer.message,
        r#"Backup.acme.example "nightly" is invalid: [keep: Invalid value: 5: must be at most 4, keep: Invalid value: 5: must be even]"#
    );
    assert_eq!(status["details"]["causes"].as_array().unwrap().len(), 2);
    assert_eq!(status["details"]["causes"][0]["field"], "keep");
}

#[test]
fn a_validation_that_finds_nothing_allows_with_its_warnings_and_without_a_patch() {
    let (answer, response) = validate(json!({"operation": "CREATE", "object": {"keep": 2}}));
    assert_eq!((answer.decision, answer.reason, answer.message.as_str()), (Decision::Allowed, Reason::ALLOWED, ""));
    let expected = json!({"uid": "u-1", "allowed": true, "warnings": ["keeps 2"], "auditAnnotations": {"keep": "2"}});
    assert_eq!(response, expected);
}

#[test]
fn each_operation_reaches_its_own_check() {
    let shrunk = r#"Backup.acme.example "nightly" is invalid: keep: Forbidden: may not shrink"#;
    let cases = [
        (json!({"operation": "UPDATE", "object": {"keep": 1}, "oldObject": {"keep": 2}}), Reason::INVALID, shrunk),
        (json!({"operation": "UPDATE", "object": {"keep": 3}, "oldObject": {"keep": 2}}), Reason::ALLOWED, ""),
        (json!({"operation": "DELETE", "oldObject": {"keep": 0}}), Reason::ALLOWED, ""),
        (
            json!({"operation": "DELETE", "object": null, "oldObject": {"keep": 1}}),
            Reason::new("StillInUse"),
            "nightly still has copies",
        ),
        (json!({"operation": "CONNECT", "object": {"keep": 99}}), Reason::ALLOWED, ""),
    ];
    for (request, reason, message) in cases {
        let (answer, response) = validate(request.clone());
        assert_eq!((answer.reason, answer.message.as_str()), (reason, message), "{request}");
        assert_eq!(response["allowed"], message.is_empty());
    }
}

#[test]
fn a_review_that_lacks_its_object_does_not_pass_unlooked_at() {
    let cases = [
        (json!({"operation": "CREATE"}), "the review has no object, which CREATE must have"),
        (json!({"operation": "UPDATE", "oldObject": {"keep": 2}}), "the review has no object, which UPDATE must have"),
        (json!({"operation": "UPDATE", "object": {"keep": 2}}), "the review has no oldObject, which UPDATE must have"),
        (json!({"operation": "DELETE", "object": {"keep": 2}}), "the review has no oldObject, which DELETE must have"),
    ];
    for (request, message) in cases {
        let (answer, response) = validate(request);
        assert_eq!((answer.reason, answer.message.as_str()), (Reason::UNDECODABLE, message));
        assert_eq!(response["status"]["code"], 400);
    }
    let (answer, _) = default(json!({"operation": "CREATE", "object": null}));
    assert_eq!(answer.message, "the review has no object, which CREATE must have");
}

#[test]
fn an_undecodable_object_is_a_review_with_code_400() {
    let (answer, response) = validate(json!({"operation": "CREATE", "object": {"keep": "many"}}));
    assert_eq!((answer.decision, answer.reason), (Decision::Denied, Reason::UNDECODABLE));
    let status = &response["status"];
    assert_eq!((&status["code"], &status["message"]), (&json!(400), &json!(answer.message)));
    assert_eq!(answer.message, r#"the object could not be decoded: object: invalid type: string "many", expected i64"#);
}

#[test]
fn a_body_that_is_no_review_is_no_verdict() {
    let registry = Registry::default().mutating(RULE, Obedient).validating(RULE, Backups);
    for entry in registry.entries() {
        let unserved = entry.endpoint.answer(b"{}", &0).unwrap_err();
        assert_eq!((unserved.status(), unserved.retry_after()), (400, None));
    }
}

#[test]
fn a_mutating_endpoint_gives_the_verdict_or_none_as_it_is() {
    let decided = |object| {
        let (answer, response) = mutate(object).unwrap();
        (answer.decision, answer.reason, answer.message, response["patchType"].clone())
    };
    let none = String::new;
    assert_eq!(decided("patch"), (Decision::Patched, Reason::new("Obeyed"), none(), json!("JSONPatch")));
    assert_eq!(decided("leave"), (Decision::Allowed, Reason::new("NoMatch"), none(), Value::Null));
    assert_eq!(decided("deny"), (Decision::Denied, Reason::INVALID, "as you wish".to_owned(), Value::Null));
    let unserved = mutate("wait").unwrap_err();
    assert_eq!(unserved, Unserved::NamespaceUnknown("shop".to_owned()));
    assert_eq!((unserved.status(), unserved.retry_after()), (503, Some(1)));
}

#[test]
fn the_summary_says_what_was_asked() {
    let expected = Summary {
        uid: "u-1".to_owned(),
        kind: "Backup.acme.example".to_owned(),
        namespace: "shop".to_owned(),
        name: "nightly".to_owned(),
        operation: "DELETE",
        dry_run: true,
    };
    for keep in [json!(0), json!("undecodable")] {
        let (answer, _) = validate(json!({"operation": "DELETE", "oldObject": {"keep": keep}, "dryRun": true}));
        assert_eq!(answer.summary, expected);
    }
}

/// Finalizers and status are written by an update, also of an object that was stored without validation.
#[test]
fn of_what_cannot_be_decoded_metadata_and_status_may_change_and_the_spec_may_not() {
    let registry = Registry::<Snapshot>::default().defaulting(RULE, Backups).validating(RULE, Backups);
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let large = format!("[{}0]", "0,".repeat(50_000));
    let object = |metadata: &str, spec: &str| format!(r#"{{"metadata":{metadata},"keep":"x","spec":{spec}}}"#);
    let readable = r#"{"metadata":{},"keep":1}"#.to_owned();
    let (leaving, staying) = (r#"{"deletionTimestamp":"2026-01-01T00:00:00Z"}"#, r#"{"deletionTimestamp":null}"#);
    for spec in [&deep, &large] {
        for (operation, old, new, reason) in [
            ("UPDATE", object(leaving, spec), object(leaving, spec), Some(Reason::TERMINATING)),
            ("UPDATE", object(leaving, spec), object(leaving, &format!("[{spec}]")), None),
            ("UPDATE", object(staying, spec), object(r#"{"finalizers":["x/y"]}"#, spec), Some(Reason::ALLOWED)),
            ("UPDATE", object(staying, spec), object(staying, &format!("[{spec}]")), None),
            ("UPDATE", object(staying, spec), object(staying, spec).replace(r#""x""#, r#""y""#), None),
            ("UPDATE", object(staying, spec), object(staying, spec).replacen('{', r#"{"spec":1,"#, 1), None),
            // It was readable, and is not to become what no process reads.
            ("UPDATE", readable.clone(), format!(r#"{{"metadata":{{"x":{spec}}},"keep":"x"}}"#), None),
            ("CREATE", object(leaving, spec), object(leaving, spec), None),
            ("CREATE", "null".to_owned(), object(leaving, spec), None),
        ] {
            let body = format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"{operation}","object":{new},"oldObject":{old}}}}}"#
            );
            for entry in registry.entries() {
                let answer = entry.endpoint.answer(body.as_bytes(), &4).unwrap();
                let reply: Value = serde_json::from_slice(&answer.body).unwrap();
                let allowed = reason.is_some();
                assert_eq!(reply["response"]["allowed"], allowed, "{operation} {:?} {}", entry.phase, answer.message);
                assert!(reason.is_none_or(|reason| answer.reason == reason), "{:?}", answer.reason);
            }
        }
    }
}

/// Allows a user whom another authority allows, and asks for what that one says then.
struct Asks;

impl Mutating<Snapshot> for Asks {
    type Object<'a> = serde::de::IgnoredAny;

    fn mutate<'a>(&self, request: &Request<'a, Self::Object<'a>>, _: &Snapshot) -> Result<Verdict, Unserved> {
        let [kim, lee] = ["kim", "lee"].map(|user| Access { user: user.to_owned(), ..Access::default() });
        if request.ask(Question::Access(kim))?.is_yes() {
            return Ok(Verdict::allow(Reason::ALLOWED));
        }
        let answers = request.ask_all(vec![Question::Access(lee), Question::Object(Object::default())])?;
        let yes = answers.iter().filter(|answer| answer.is_yes()).count();
        Ok(Verdict::allow(Reason::new(if yes == 2 { "Both" } else { "NotBoth" })))
    }
}

#[test]
fn a_decision_that_must_know_more_returns_questions_and_is_taken_again_with_the_answers() {
    let registry = Registry::default().mutating(RULE, Asks);
    let endpoint = &registry.find(&RULE.path(Phase::Mutating)).unwrap().endpoint;
    let body =
        br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE"}}"#;
    let asked = |answers: &Answers| match endpoint.answer_with(body, &4, answers, Deadline::default()) {
        Err(Unserved::Unanswered(questions)) => questions,
        other => panic!("{other:?}"),
    };
    let mut answers = Answers::default();
    let first = asked(&answers);
    assert_eq!(first.iter().map(Question::kind).collect::<Vec<_>>(), ["access"]);
    assert!(endpoint.answer(body, &4).unwrap_err().to_string().starts_with("it is not known whether kim may "));

    let mut allowed = answers.clone();
    allowed.insert(first[0].clone(), Known::Allowed(true, String::new()));
    assert_eq!(endpoint.answer_with(body, &4, &allowed, Deadline::default()).unwrap().reason, Reason::ALLOWED);

    answers.insert(first[0].clone(), Known::Allowed(false, String::new()));
    let second = asked(&answers);
    assert_eq!(second.iter().map(Question::kind).collect::<Vec<_>>(), ["access", "object"]);
    answers.insert(second[0].clone(), Known::Allowed(true, String::new()));
    assert_eq!(asked(&answers), second[1..], "what is known is not asked again");
    answers.insert(second[1].clone(), Known::Object(None));
    assert_eq!(endpoint.answer_with(body, &4, &answers, Deadline::default()).unwrap().reason.as_str(), "NotBoth");
}
