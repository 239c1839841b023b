//! `ImagePolicyWebhook` (4.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::question::{ImageVerdict, Images};
use admission::{Decision, Known, Question, Reason};
use serde_json::{Value, json};

use super::plugin;
use crate::plugins::compiled::Settings;
use crate::plugins::validation::compile;
use crate::pod::limits;
use crate::testing::{Cluster, Reply};

const PATH: &str = "/validate--v1-pod-imagepolicywebhook";

fn on(section: Value) -> Cluster {
    Cluster::from_objects(&[plugin("images", json!({"plugin": "ImagePolicyWebhook", "imagePolicyWebhook": section}))])
}

fn pod(lists: Value) -> Value {
    let named = |list: &Value| {
        let images = list.as_array().unwrap().iter();
        images.enumerate().map(|(at, image)| json!({"name": format!("c{at}"), "image": image})).collect::<Vec<_>>()
    };
    let spec: serde_json::Map<String, Value> =
        lists.as_object().unwrap().iter().map(|(field, list)| (field.clone(), named(list).into())).collect();
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

fn review(pod: &Value, operation: &str, sub_resource: &str) -> Value {
    let mut review = crate::testing::review("shop", pod);
    review["request"]["operation"] = operation.into();
    review["request"]["subResource"] = sub_resource.into();
    if operation == "UPDATE" {
        review["request"]["oldObject"] = pod.clone();
    }
    review
}

/// A backend that refuses every image that is called bad.
fn backend(images: &Images) -> Known {
    let bad = images.images.iter().any(|image| image == "bad");
    let reason = if bad { "not allowed".to_owned() } else { String::new() };
    let audit = BTreeMap::from([("seen".to_owned(), images.images.join(",")), ("reason".to_owned(), "lie".to_owned())]);
    Known::Images(Arc::new(ImageVerdict { allowed: !bad, reason, audit }))
}

fn asked(cluster: &Cluster, review: &Value, answer: impl Fn(&Images) -> Known) -> (Reply, Vec<Arc<Images>>) {
    let known = |question: &Question| match question {
        Question::Images(images) => answer(images),
        other => panic!("{other:?}"),
    };
    let (reply, questions) = cluster.ask_with(PATH, review, known).unwrap();
    let images = questions.into_iter().map(|question| match question {
        Question::Images(images) => images,
        other => panic!("{other:?}"),
    });
    (reply, images.collect())
}

const DENIED: &str = "pods \"p\" is forbidden: image policy webhook backend denied one or more images: not allowed";

#[test]
fn the_images_that_a_request_is_about_decide_as_the_table_says() {
    let cluster = on(json!({}));
    for (lists, operation, sub_resource, reviewed, denied) in [
        (json!({"containers": ["good", "good"]}), "CREATE", "", "good,good", false),
        (json!({"containers": ["bad", "good"]}), "CREATE", "", "bad,good", true),
        (json!({"containers": ["good", "bad"]}), "UPDATE", "", "good,bad", true),
        (json!({"initContainers": ["bad"], "containers": ["good"]}), "CREATE", "", "good,bad", true),
        (json!({"initContainers": ["good"], "containers": ["bad"]}), "CREATE", "", "bad,good", true),
        (json!({"containers": ["good"], "ephemeralContainers": ["bad"]}), "UPDATE", "ephemeralcontainers", "bad", true),
        (json!({"containers": ["good"], "ephemeralContainers": ["bad"]}), "UPDATE", "", "good", false),
        (
            json!({"containers": ["bad"], "ephemeralContainers": ["good"]}),
            "UPDATE",
            "ephemeralcontainers",
            "good",
            false,
        ),
    ] {
        let (reply, images) = asked(&cluster, &review(&pod(lists.clone()), operation, sub_resource), backend);
        assert_eq!(images.iter().map(|one| one.images.join(",")).collect::<Vec<_>>(), [reviewed], "{lists}");
        assert_eq!((reply.decision == Decision::Denied, reply.code), (denied, denied.then_some(403)), "{lists}");
        assert_eq!(reply.message, if denied { DENIED } else { "" }, "{lists}");
        assert_eq!(reply.audit["seen"], reviewed, "recorded whatever was decided");
        assert_ne!(reply.audit.get("reason").map(String::as_str), Some("lie"), "our own keys are ours");
    }
}

#[test]
fn a_backend_that_fails_leaves_the_decision_to_the_object() {
    for (default_allow, failed, denied) in
        [(true, true, false), (false, true, true), (true, false, true), (false, false, true)]
    {
        let cluster = on(json!({"defaultAllow": default_allow}));
        let answer = |images: &Images| if failed { Known::Failed("gone".to_owned()) } else { backend(images) };
        let (reply, _) = asked(&cluster, &review(&pod(json!({"containers": ["bad"]})), "CREATE", ""), answer);
        assert_eq!(reply.decision == Decision::Denied, denied);
        let is_open = reply.audit.get("failed-open").map(String::as_str);
        assert_eq!(is_open, (failed && default_allow).then_some("true"));
        if failed && denied {
            assert_eq!((reply.code, reply.message.as_str()), (Some(403), "pods \"p\" is forbidden: gone"));
        }
    }
    let silent = |_: &Images| Known::Images(Arc::default());
    let (reply, _) = asked(&on(json!({})), &review(&pod(json!({"containers": ["a"]})), "CREATE", ""), silent);
    assert_eq!(reply.message, "pods \"p\" is forbidden: one or more images rejected by webhook backend");
}

#[test]
fn only_annotations_for_reviewers_are_sent_and_the_namespace_of_the_backend_is_left_alone() {
    let mut pod = pod(json!({"containers": ["good"]}));
    let own = json!({"a.image-policy.k8s.io/x": "1", "image-policy.k8s.io/x": "2", "other": "3"});
    pod["metadata"]["annotations"] = own;
    let (_, images) = asked(&on(json!({})), &review(&pod, "CREATE", ""), backend);
    assert_eq!(
        images[0].annotations.iter().collect::<Vec<_>>(),
        [(&"a.image-policy.k8s.io/x".to_owned(), &"1".to_owned())]
    );
    assert_eq!(images[0].namespace, "shop");
    let (reply, images) = asked(&on(json!({"backendNamespace": "shop"})), &review(&pod, "CREATE", ""), backend);
    assert_eq!((reply.decision, images.len()), (Decision::Allowed, 0));
}

#[test]
fn a_pod_that_leaves_is_not_asked_about_and_no_answer_is_no_verdict() {
    let mut leaving = pod(json!({"containers": ["bad"]}));
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let (reply, images) = asked(&on(json!({})), &review(&leaving, "UPDATE", ""), backend);
    assert_eq!((reply.decision, images.len()), (Decision::Allowed, 0));
    let open = on(json!({"defaultAllow": true})).ask(PATH, &review(&pod(json!({"containers": ["a"]})), "CREATE", ""));
    assert!(matches!(open, Err(admission::Unserved::Unanswered(_))), "{open:?}");
}

#[test]
fn of_who_is_exempt_nothing_is_asked_and_a_mode_that_does_not_enforce_lets_pods_pass() {
    let of = |spec: Value| Cluster::from_objects(&[plugin("images", spec)]);
    let bad = review(&pod(json!({"containers": ["bad"]})), "CREATE", "");
    let (reply, images) = asked(&of(json!({"plugin": "ImagePolicyWebhook", "mode": "Warn"})), &bad, backend);
    assert_eq!((reply.decision, images.len(), reply.warnings.len()), (Decision::Allowed, 1, 1));
    assert!(reply.warnings[0].contains("denied one or more images: not allowed"), "{:?}", reply.warnings);
    let exempt = of(json!({"plugin": "ImagePolicyWebhook", "match": {"excludeUsers": ["kim"]}}));
    for (user, denied) in [("kim", false), ("jo", true)] {
        let mut bad = bad.clone();
        bad["request"]["userInfo"] = json!({"username": user});
        let (reply, images) = asked(&exempt, &bad, backend);
        assert_eq!((reply.decision == Decision::Denied, images.len()), (denied, usize::from(denied)), "{user}");
    }
}

#[test]
fn the_configuration_is_normalised_as_by_the_plugin_of_the_api_server() {
    let of = |section: Value| {
        let object = plugin("a", json!({"plugin": "ImagePolicyWebhook", "imagePolicyWebhook": section}));
        compile(&object).map(|compiled| match compiled.settings {
            Settings::ImagePolicy(found) => {
                (found.backend.allow_ttl, found.backend.deny_ttl, found.backend.retry_backoff)
            }
            other => panic!("{other:?}"),
        })
    };
    for (section, expected) in [
        (json!({}), (300, 30, 500)),
        (json!({"allowTTL": 0, "denyTTL": 0, "retryBackoff": 0}), (300, 30, 500)),
        (json!({"allowTTL": -1, "denyTTL": -1, "retryBackoff": -1}), (0, 0, 0)),
        (json!({"allowTTL": 1800, "denyTTL": 1, "retryBackoff": 300_000}), (1800, 1, 300_000)),
    ] {
        assert_eq!(of(section.clone()).unwrap(), expected, "{section}");
    }
    for (section, field) in [
        (json!({"allowTTL": 1801}), "allowTTL"),
        (json!({"denyTTL": -2}), "denyTTL"),
        (json!({"retryBackoff": 300_001}), "retryBackoff"),
        (json!({"kubeConfigKey": "../x"}), "kubeConfigKey"),
        (json!({"backendNamespace": "A b"}), "backendNamespace"),
    ] {
        let faults = of(section).unwrap_err().to_string();
        assert!(faults.contains(&format!("spec.imagePolicyWebhook.{field}: Invalid value")), "{faults}");
    }
}

#[test]
fn a_pod_beyond_a_limit_is_refused_unless_an_update_keeps_its_spec() {
    let cluster = on(json!({}));
    let many = pod(json!({"containers": vec!["good"; limits::CONTAINERS + 1]}));
    let (created, questions) = asked(&cluster, &review(&many, "CREATE", ""), backend);
    assert_eq!((created.code, created.reason, questions.len()), (Some(422), Reason::TOO_LARGE, 0));
    assert_eq!(
        created.message,
        "the pod is too large: spec.containers holds more than 1000 containers; make it smaller"
    );
    let mut labelled = review(&many, "UPDATE", "");
    labelled["request"]["object"]["metadata"]["finalizers"] = json!(["a.example/b"]);
    assert_eq!(asked(&cluster, &labelled, backend).0.decision, Decision::Allowed);
    let mut changed = review(&many, "UPDATE", "");
    changed["request"]["object"]["spec"]["containers"][0]["image"] = "bad".into();
    assert_eq!(asked(&cluster, &changed, backend).0.reason, Reason::TOO_LARGE);
    let mut leaving = changed;
    leaving["request"]["oldObject"]["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();
    assert_eq!(asked(&cluster, &leaving, backend).0.decision, Decision::Allowed);
    // All annotations together are limited before they are sent anywhere.
    let mut annotated = pod(json!({"containers": ["good"]}));
    annotated["metadata"]["annotations"] = json!({"a.image-policy.k8s.io/b": "x".repeat(256 * 1024)});
    assert_eq!(asked(&cluster, &review(&annotated, "CREATE", ""), backend).0.reason, Reason::TOO_LARGE);
}
