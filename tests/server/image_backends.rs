//! Backends of the Secret, asked one after the other: what is sent, what is remembered, and by whose certificates.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::Known;
use admission::question::{ImageBackend, Images};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use outrider::image_policy::{BackendState, ImageBackends};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::harness::authority;
use crate::image_reviewer::{Answer, ImageReviewer, Tls};

/// Verdicts that are kept.
const KEPT: usize = 1024;

fn backends(kubeconfig: &Value) -> ImageBackends {
    let backends = ImageBackends::default();
    backends.are(Some(BTreeMap::from([("kubeconfig".to_owned(), kubeconfig.to_string())])));
    backends
}

fn images(image: &str) -> Images {
    Images {
        backend: ImageBackend {
            name: "kubeconfig".to_owned(),
            allow_ttl: 300,
            deny_ttl: 30,
            retry_backoff: 0,
            timeout_seconds: 10,
        },
        namespace: "shop".to_owned(),
        images: vec![image.to_owned()],
        annotations: BTreeMap::new(),
    }
}

/// Whether the image may run.
async fn asked(backends: &ImageBackends, images: &Images) -> Result<bool, String> {
    match backends.ask(images).await {
        Known::Images(verdict) => Ok(verdict.allowed),
        Known::Failed(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_review_that_is_sent_is_that_of_the_original() {
    let reviewer =
        ImageReviewer::start(|_, _| Answer::status(&json!({"allowed": true, "auditAnnotations": {"seen": "1"}})));
    let annotations = BTreeMap::from([("a.image-policy.k8s.io/ticket".to_owned(), "1".to_owned())]);
    let images = Images { images: vec!["a:1".to_owned(), "b:2".to_owned()], annotations, ..images("") };
    let Known::Images(verdict) = backends(&reviewer.kubeconfig()).ask(&images).await else { panic!("no verdict") };
    assert_eq!((verdict.allowed, verdict.audit["seen"].as_str()), (true, "1"));
    let spec = json!({
        "containers": [{"image": "a:1"}, {"image": "b:2"}],
        "annotations": {"a.image-policy.k8s.io/ticket": "1"}, "namespace": "shop",
    });
    let sent = json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": spec});
    assert_eq!(reviewer.reviews(), [sent]);
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_remembered_and_errors_are_not() {
    let reviewer = ImageReviewer::start(|spec, before| match (spec["containers"][0]["image"].as_str(), before) {
        (Some("flaky"), 0..4) => Answer::Body([400, 401, 403, 404][before], String::new()),
        (Some("bad"), _) => Answer::status(&json!({"allowed": false})),
        (_, 4) => Answer::status(&json!({"allowed": true})),
        _ => Answer::Body(404, String::new()),
    });
    let backends = backends(&reviewer.kubeconfig());
    for status in [400, 401, 403, 404] {
        let failed = asked(&backends, &images("flaky")).await;
        assert_eq!(failed, Err(format!("the image policy backend answered HTTP {status}")));
    }
    // The backend fails from now on, and what it said counts.
    for _ in 0..3 {
        assert_eq!(asked(&backends, &images("flaky")).await, Ok(true));
        assert_eq!(asked(&backends, &images("bad")).await, Ok(false));
    }
    assert_eq!(reviewer.reviews().len(), 6);
    let forgetful = ImageBackend { allow_ttl: 0, ..images("").backend };
    assert!(asked(&backends, &Images { backend: forgetful, ..images("flaky") }).await.is_err());
    // Another namespace is another question, and another kubeconfig another backend.
    assert!(asked(&backends, &Images { namespace: "other".to_owned(), ..images("flaky") }).await.is_err());
    let other = reviewer.kubeconfig_for(reviewer.ca(), &json!({"token": "another"}));
    backends.are(Some(BTreeMap::from([("kubeconfig".to_owned(), other.to_string())])));
    assert!(asked(&backends, &images("flaky")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ttl_of_zero_remembers_nothing() {
    let reviewer =
        ImageReviewer::start(|spec, _| Answer::status(&json!({"allowed": spec["containers"][0]["image"] == "good"})));
    let backends = backends(&reviewer.kubeconfig());
    let backend = ImageBackend { allow_ttl: 0, deny_ttl: 0, ..images("").backend };
    for (image, allowed) in [("good", true), ("bad", false), ("good", true), ("bad", false)] {
        let images = Images { backend: backend.clone(), ..images(image) };
        assert_eq!(asked(&backends, &images).await, Ok(allowed));
    }
    assert_eq!(reviewer.reviews().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_very_many_images_the_verdicts_used_last_are_kept() {
    let reviewer = ImageReviewer::start(|_, _| Answer::status(&json!({"allowed": true})));
    let backends = backends(&reviewer.kubeconfig());
    for at in 0..=KEPT {
        assert_eq!(asked(&backends, &images(&format!("shop:{at}"))).await, Ok(true));
    }
    for (at, sent) in [(KEPT, KEPT + 1), (1, KEPT + 1), (0, KEPT + 2)] {
        assert_eq!(asked(&backends, &images(&format!("shop:{at}"))).await, Ok(true));
        assert_eq!(reviewer.reviews().len(), sent, "shop:{at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_may_ask_for_a_certificate_of_ours() {
    let clients = authority();
    let tls = Tls { clients: Some(clients.certificate_pem().to_owned()), ..Tls::default() };
    let reviewer = ImageReviewer::start_with(&tls, |_, _| Answer::status(&json!({"allowed": true})));
    let signer = KeyPair::from_pem(&clients.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(clients.certificate_pem(), signer).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["outrider".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let user = json!({
        "client-certificate-data": STANDARD.encode(certificate.pem()),
        "client-key-data": STANDARD.encode(key.serialize_pem()),
    });
    let with = reviewer.kubeconfig_for(reviewer.ca(), &user);
    assert_eq!(asked(&backends(&with), &images("shop:1")).await, Ok(true));
    assert!(asked(&backends(&reviewer.kubeconfig()), &images("shop:1")).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_namespace_of_the_backend_is_not_reviewed_by_it() {
    let backends = backends(&json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://images.image-policy.svc.cluster.local/review"}}],
    }));
    let own = Images { namespace: "image-policy".to_owned(), ..images("shop:1") };
    assert_eq!(asked(&backends, &own).await, Ok(true));
}

#[test]
fn credentials_are_in_no_debug_output() {
    let shown = format!("{:?}", backends(&json!({"users": [{"name": "a", "user": {"token": "hunter2"}}]})));
    assert!(shown.contains("kubeconfig") && !shown.contains("hunter2"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_kubeconfig_lacks_is_known_before_anybody_asks() {
    let backends = Arc::new(ImageBackends::default());
    assert_eq!(backends.state("kubeconfig").await, BackendState::Unread);
    let mut changes = backends.changes();
    let cluster =
        |data: &str| json!({"server": "https://localhost", "certificate-authority-data": STANDARD.encode(data)});
    let of = |cluster: Value| {
        json!({
            "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "clusters": [{"name": "a", "cluster": cluster}],
        })
    };
    let (valid, other) = (of(cluster(authority().certificate_pem())), of(cluster("no certificate")));
    for (secret, fault) in [
        (None, Some("there is no Secret outrider-image-policy in the namespace of Outrider")),
        (Some(("other", valid.to_string())), Some("has no key \"kubeconfig\"")),
        (Some(("kubeconfig", "a: [".to_owned())), Some("the kubeconfig cannot be read")),
        (Some(("kubeconfig", String::new())), Some("current-context is missing")),
        (
            Some(("kubeconfig", other.to_string())),
            Some("key \"kubeconfig\": cluster.certificate-authority-data has no certificate"),
        ),
        (Some(("kubeconfig", valid.to_string())), None),
    ] {
        backends.are(secret.map(|(key, text)| BTreeMap::from([(key.to_owned(), text)])));
        assert!(changes.next().now_or_never().is_some(), "{fault:?}");
        match (backends.state("kubeconfig").await, fault) {
            (BackendState::Usable, None) => {}
            (BackendState::Faulty(why), Some(fault)) => assert!(why.contains(fault), "{why}"),
            (found, _) => panic!("{found:?}, expected {fault:?}"),
        }
    }
    backends.are_unknown();
    assert_eq!(backends.state("kubeconfig").await, BackendState::Unread);
}
