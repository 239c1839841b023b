use serde_json::{Value, json};

use super::{Cause, Denial, Outcome, Verdict, WARNING_ITEM_RUNES, WARNING_TOTAL_RUNES, presentable, write};
use crate::field::{Error, ErrorList, Path};
use crate::patch::PatchWriter;
use crate::reason::Reason;
use crate::review::{Review, ReviewVersion};

fn reply(uid: &str, verdict: &Verdict) -> String {
    String::from_utf8(write(ReviewVersion::V1, uid, verdict)).unwrap()
}

fn patch_of(pointers: &[&str]) -> PatchWriter {
    let mut patch = PatchWriter::default();
    for pointer in pointers {
        patch.add(pointer, "true");
    }
    patch
}

/// RFC 4648 by the book: the encoder under test has no part in it.
fn decode_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(text.len() % 4, 0);
    let mut bytes = Vec::new();
    for quad in text.as_bytes().chunks(4) {
        let padding = quad.rsplit(|&c| c != b'=').next().map_or(0, <[u8]>::len);
        let bits = quad.iter().fold(0_u32, |bits, c| {
            (bits << 6) | u32::try_from(ALPHABET.iter().position(|a| a == c).unwrap_or(0)).unwrap()
        });
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    bytes
}

const HEAD: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"#;

#[test]
fn replies_are_written_byte_by_byte_as_expected() {
    let allow = || Verdict::allow(Reason::ALLOWED);
    let cases = [
        ("a", allow(), r#""a","allowed":true}}"#),
        ("q\"\\\n", allow(), r#""q\"\\\n","allowed":true}}"#),
        ("a", Verdict::patch(Reason::ALLOWED, PatchWriter::default()), r#""a","allowed":true}}"#),
        ("a", Verdict { outcome: Outcome::Patched(PatchWriter::default()), ..allow() }, r#""a","allowed":true}}"#),
        (
            "a",
            Verdict::patch(Reason::DEFAULTED, patch_of(&["/x"])),
            r#""a","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3giLCJ2YWx1ZSI6dHJ1ZX1d"}}"#,
        ),
        (
            "a",
            allow().warn("mind the \"gap\"").audit("reason", "NoMatch").audit("sets", "a,\"b\""),
            r#""a","allowed":true,"warnings":["mind the \"gap\""],"auditAnnotations":{"reason":"NoMatch","sets":"a,\"b\""}}}"#,
        ),
        (
            "a",
            Verdict::deny(Reason::INVALID, Denial::bad_request("no")).warn("w"),
            r#""a","allowed":false,"status":{"status":"Failure","message":"no","reason":"BadRequest","code":400},"warnings":["w"]}}"#,
        ),
    ];
    for (uid, verdict, expected) in cases {
        assert_eq!(reply(uid, &verdict), format!("{HEAD}{expected}"));
    }
}

#[test]
fn a_reply_repeats_uid_and_version_of_its_review() {
    for version in ["v1", "v1beta1"] {
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/{version}","kind":"AdmissionReview","request":{{"uid":"7\"","operation":"CREATE"}}}}"#
        );
        let review: Review = Review::parse(body.as_bytes()).unwrap();
        let reply: Value = serde_json::from_slice(&review.reply(&Verdict::allow(Reason::ALLOWED))).unwrap();
        assert_eq!(reply["apiVersion"], format!("admission.k8s.io/{version}"));
        assert_eq!(reply["response"], json!({"uid": "7\"", "allowed": true}));
    }
}

#[test]
fn patches_of_every_length_decode_to_the_document() {
    let mut pointer = String::from("/");
    for _ in 0..9 {
        pointer.push('é');
        pointer.push('x');
        let patch = patch_of(&[&pointer]);
        let document = patch.document().to_vec();
        let reply: Value = serde_json::from_str(&reply("u", &Verdict::patch(Reason::DEFAULTED, patch))).unwrap();
        assert_eq!(decode_base64(reply["response"]["patch"].as_str().unwrap()), document);
        assert_eq!(reply["response"]["patchType"], "JSONPatch");
    }
}

fn request_for(name: &str, group: &str) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": name, "kind": {"group": group, "version": "v1", "kind": "Backup"},
    }})
    .to_string()
}

fn status_of(denial: Denial) -> Value {
    let text = reply("u", &Verdict::deny(Reason::INVALID, denial));
    let mut reply: Value = serde_json::from_str(&text).unwrap();
    reply["response"]["status"].take()
}

#[test]
fn an_invalid_object_is_refused_with_every_fault_and_its_field() {
    let body = request_for("nightly", "acme.example");
    let review: Review = Review::parse(body.as_bytes()).unwrap();
    let spec = Path::new("spec");
    let errors: ErrorList =
        [Error::required(&spec.child("target"), ""), Error::invalid(&spec.child("keep"), -1, "must be positive")]
            .into_iter()
            .collect();
    assert_eq!(
        status_of(Denial::invalid(&review.request, &errors)),
        json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "Backup.acme.example \"nightly\" is invalid: \
                [spec.target: Required value, spec.keep: Invalid value: -1: must be positive]",
            "details": {"name": "nightly", "group": "acme.example", "kind": "Backup", "causes": [
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.target"},
                {"reason": "FieldValueInvalid", "message": "Invalid value: -1: must be positive", "field": "spec.keep"},
            ]},
        })
    );
}

#[test]
fn denials_carry_code_reason_and_object() {
    let body = request_for("a\"b", "");
    let review: Review = Review::parse(body.as_bytes()).unwrap();
    let request = &review.request;
    let cause = Cause { reason: "FieldValueForbidden".into(), message: "no".into(), field: String::new() };
    let details = json!({"name": "a\"b", "kind": "Backup"});
    let with_cause = json!({"causes": [{"reason": "FieldValueForbidden", "message": "no"}]});
    let invalid = r#"Backup "a\"b" is invalid"#;
    let cases = [
        (Denial::invalid(request, &ErrorList::new()), 422, "Invalid", invalid, details.clone()),
        (Denial::forbidden(request, "no"), 403, "Forbidden", "no", details.clone()),
        (Denial::conflict(request, "no"), 409, "Conflict", "no", details.clone()),
        (Denial::too_many_requests(request, "no"), 429, "TooManyRequests", "no", details),
        (Denial::bad_request("no"), 400, "BadRequest", "no", Value::Null),
        (Denial::bad_request("no").with_causes([cause]), 400, "BadRequest", "no", with_cause),
    ];
    for (denial, code, reason, message, details) in cases {
        let mut expected = json!({"status": "Failure", "code": code, "reason": reason, "message": message});
        if !details.is_null() {
            expected["details"] = details;
        }
        assert_eq!(status_of(denial), expected);
    }
}

#[test]
fn warnings_are_single_lines_and_neither_empty_nor_repeated() {
    let warnings = ["a\nb\tc\u{7f}d\u{85}e", "", "same", "same", "日本 – ☺"].map(str::to_owned);
    assert_eq!(presentable(&warnings), ["a b c d e", "same", "日本 – ☺"]);
    assert_eq!(reply("u", &Verdict::allow(Reason::ALLOWED).warn("")), format!("{HEAD}\"u\",\"allowed\":true}}}}"));
}

#[test]
fn warnings_are_shortened_only_when_all_together_are_too_long_for_the_api_server() {
    let runes = |lines: &[String]| lines.iter().map(|line| line.chars().count()).sum::<usize>();
    let exact = ["é".repeat(WARNING_TOTAL_RUNES)];
    assert_eq!(presentable(&exact), exact);

    let cut = presentable(&["é".repeat(WARNING_TOTAL_RUNES + 1)]);
    assert_eq!(cut, [format!("{}…", "é".repeat(WARNING_ITEM_RUNES - 1))]);

    let numbered = |count: usize, length: usize| (0..count).map(|n| format!("{n:0length$}")).collect::<Vec<_>>();
    let fitting = presentable(&numbered(15, 300));
    assert_eq!((fitting.len(), runes(&fitting)), (15, 15 * WARNING_ITEM_RUNES));
    let exact_items = numbered(15, WARNING_ITEM_RUNES);
    assert_eq!(presentable(&[exact_items.clone(), vec!["x".repeat(300)]].concat())[..15], exact_items);

    let many = presentable(&numbered(1000, 300));
    assert_eq!(many.last().unwrap(), "985 more warnings were left out");
    assert!(runes(&many) <= WARNING_TOTAL_RUNES, "{}", runes(&many));
    let one = presentable(&numbered(16, 300));
    assert_eq!(one.last().unwrap(), "1 more warning was left out");
}
