//! `ImagePolicyWebhook` under load: hundreds of reviews at one time, and a backend that allows, denies, is slow, lies, fails or is gone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::namespace::Namespace;
use engine::snapshot::{Exclusion, Snapshot};
use jiff::Timestamp;
use kube::Config;
use outrider::certs::{Authority, Resolver};
use outrider::image_policy::ImageBackends;
use outrider::kinds::Kinds;
use outrider::manager::questions::ApiServer;
use outrider::metrics::{Freshness, Metrics};
use outrider::readiness::Readiness;
use outrider::registry::registry;
use outrider::server::{Limits, ProbePaths, Server, ServerOptions, Shutdown, Sources};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, plain_get};
use crate::harness::{DAY, authority};
use crate::image_reviewer::{Answer, ImageReviewer, Tls};

/// Reviews that are sent at one time.
const MANY: usize = 300;
/// Images that they are about, where each is tried several times.
const FEW: usize = 10;
/// Images that are reviewed at one time, as the server limits it.
const AT_ONCE: usize = 128;
/// Milliseconds that the API server waits where something answers.
const TIME_OUT: usize = 10_000;

const DENIED: &str = "pods \"p\" is forbidden: image policy webhook backend denied one or more images: not this one";

/// A server that asks the backends.
pub struct Served {
    pub webhook: SocketAddr,
    metrics: SocketAddr,
    authority: Authority,
    backends: Arc<ImageBackends>,
    clients: Mutex<Vec<Client>>,
}

impl Served {
    /// With one object of this section, and no Secret that was read.
    async fn without_secret(section: &Value) -> Self {
        Self::within(section, Limits::default()).await
    }

    /// The same, with these limits.
    pub async fn within(section: &Value, limits: Limits) -> Self {
        let (authority, resolver, readiness) = (authority(), Resolver::empty(), Readiness::default());
        resolver.swap(authority.sign(vec!["localhost".to_owned()], DAY, Timestamp::now()).unwrap());
        let freshness = Freshness::default();
        let backends = Arc::<ImageBackends>::default();
        // No question of these tests is for the API server.
        let nowhere = kube::Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap();
        let sources = Sources {
            registry: Arc::new(registry(&Kinds::default())),
            snapshot: snapshot(section),
            resolver,
            readiness: readiness.clone(),
            metrics: Metrics::new(freshness.clone()),
            freshness,
            scrapers: None,
            asker: Some(Arc::new(ApiServer::new(nowhere, Arc::clone(&backends)))),
            known: None,
        };
        let any = || "127.0.0.1:0".parse().unwrap();
        let options = ServerOptions {
            webhook: any(),
            health: any(),
            metrics: any(),
            enable_http2: false,
            client_ca: None,
            probes: ProbePaths::default(),
            limits,
        };
        let server = Server::bind(options, sources).await.unwrap();
        let addresses = server.addresses();
        tokio::spawn(server.run(Shutdown::new(readiness.clone())));
        while !readiness.missing().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Self {
            webhook: addresses.webhook.unwrap(),
            metrics: addresses.metrics.unwrap(),
            authority,
            backends,
            clients: Mutex::default(),
        }
    }

    async fn with(section: &Value, kubeconfig: &Value) -> Self {
        let served = Self::without_secret(section).await;
        served.asks(kubeconfig);
        served
    }

    /// The Secret has this backend now.
    pub fn asks(&self, kubeconfig: &Value) {
        self.backends.are(Some(BTreeMap::from([("kubeconfig".to_owned(), kubeconfig.to_string())])));
    }

    /// What is said to a pod of each of these images, all at one time.
    async fn all(&self, images: impl IntoIterator<Item = String>) -> Vec<Said> {
        let answers = self.answers(images.into_iter().map(|image| (image, TIME_OUT))).await;
        answers.into_iter().map(|answer| answer.unwrap()).collect()
    }

    /// What is said to pods of images that no backend answers about: those beyond the ones that are reviewed at one time are not decided.
    async fn all_open(&self) -> Vec<Said> {
        let (said, undecided): (Vec<_>, Vec<_>) = self.answers(impatient()).await.into_iter().partition(Result::is_ok);
        assert!(said.len() >= AT_ONCE, "{}", said.len());
        // 504: on a busy machine, its time was over before it could be asked.
        assert!(undecided.iter().all(|answer| matches!(answer, Err(429 | 504))), "{undecided:?}");
        said.into_iter().flatten().collect()
    }

    /// The same, each within a time-out of its own, in milliseconds, or the status of what is not decided: the server gives no answer
    /// afterwards.
    async fn answers(&self, images: impl IntoIterator<Item = (String, usize)>) -> Vec<Result<Said, u16>> {
        let images: Vec<(String, usize)> = images.into_iter().collect();
        let clients = self.clients(images.len()).await;
        let mut reviews = JoinSet::new();
        for ((image, time_out), mut client) in images.into_iter().zip(clients) {
            reviews.spawn(async move {
                let path = format!("/validate--v1-pod-imagepolicywebhook?timeout={time_out}ms");
                let reply = client.post(&path, &review(&image)).await;
                let said = || Said::of(image, &reply.json()["response"]);
                (if reply.status == 200 { Ok(said()) } else { Err(reply.status) }, client)
            });
        }
        let (answers, clients): (Vec<_>, Vec<_>) = reviews.join_all().await.into_iter().unzip();
        self.clients.lock().unwrap().extend(clients);
        answers
    }

    /// So many connections: their handshakes take longer than anything else here, and are over before the first review begins.
    pub async fn clients(&self, count: usize) -> Vec<Client> {
        let mut clients = std::mem::take(&mut *self.clients.lock().unwrap());
        let mut missing = JoinSet::new();
        for _ in clients.len()..count {
            let (address, ca) = (self.webhook, self.authority.certificate_pem().to_owned());
            missing.spawn(async move { Client::connect(address, &ca).await.unwrap() });
        }
        clients.extend(missing.join_all().await);
        clients
    }

    async fn metric(&self, line: &str) -> bool {
        plain_get(self.metrics, "/metrics").await.1.lines().any(|found| found == line)
    }
}

fn snapshot(section: &Value) -> Arc<ArcSwap<Snapshot>> {
    let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
    let spec = json!({"plugin": "ImagePolicyWebhook", "imagePolicyWebhook": section, "timeoutSeconds": 4});
    let object = json!({"metadata": {"name": "images", "uid": "u", "generation": 1}, "spec": spec});
    builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
    let (labels, annotations) = (BTreeMap::new(), BTreeMap::new());
    let shop = Namespace { name: "shop".to_owned(), labels, lacks_labels: false, annotations };
    builder.collections.namespaces.apply(&shop);
    let snapshot = Arc::default();
    builder.publish(&snapshot);
    snapshot
}

pub fn review(image: &str) -> String {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": image}]},
    });
    let request = json!({
        "uid": image, "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "p", "namespace": "shop", "operation": "CREATE", "object": pod,
        "userInfo": {"username": "kim"},
    });
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// What was said to a pod of an image.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    image: String,
    allowed: bool,
    message: String,
    failed_open: bool,
}

impl Said {
    fn of(image: String, response: &Value) -> Self {
        assert_eq!(response["uid"], image.as_str());
        Self {
            image,
            allowed: response["allowed"] == true,
            message: response["status"]["message"].as_str().unwrap_or_default().to_owned(),
            failed_open: response["auditAnnotations"]["failed-open"] == "true",
        }
    }

    /// The object decided, because there was no verdict: why, in what is said to the user.
    fn is_by_default(&self, default_allow: bool, why: &str) -> bool {
        let is_refused = self.message.starts_with("pods \"p\" is forbidden: ") && self.message.contains(why);
        (self.allowed, self.failed_open) == (default_allow, default_allow) && (default_allow || is_refused)
    }
}

/// A section without waits between tries.
pub fn section(default_allow: bool) -> Value {
    json!({"defaultAllow": default_allow, "retryBackoff": -1})
}

/// Reviews of few images: those of one image that wait at one time are one question.
fn of_few(reviews: usize) -> impl Iterator<Item = String> {
    (0..reviews).map(|at| format!("shop:{}", at % FEW))
}

fn distinct(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|at| format!("shop:{at}"))
}

/// Many reviews whose time-outs end one after the other.
fn impatient() -> impl Iterator<Item = (String, usize)> {
    distinct(MANY).enumerate().map(|(at, image)| (image, 4_000 + 10 * at))
}

fn image_of(spec: &Value) -> &str {
    spec["containers"][0]["image"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_and_denied_images_are_asked_about_once_whatever_the_default() {
    for default_allow in [false, true] {
        let reviewer = ImageReviewer::start(|spec, _| {
            let bad = image_of(spec).starts_with("bad");
            Answer::status(&json!({"allowed": !bad, "reason": if bad { "not this one" } else { "" }}))
        });
        let served = Served::with(&section(default_allow), &reviewer.kubeconfig()).await;
        let images = (0..MANY).map(|at| format!("{}:{}", ["good", "bad"][at % 2], at % 20));
        for said in served.all(images).await {
            let expected = if said.image.starts_with("bad") { (false, DENIED) } else { (true, "") };
            assert_eq!((said.allowed, said.message.as_str(), said.failed_open), (expected.0, expected.1, false));
        }
        assert_eq!(reviewer.reviews().len(), 20, "each image once, and its verdict reused");
        assert!(reviewer.most_open() <= AT_ONCE, "{}", reviewer.most_open());
    }
}

async fn slow(default_allow: bool) {
    let reviewer = ImageReviewer::start(|spec, _| match image_of(spec) {
        "quick" => Answer::status(&json!({"allowed": true})),
        _ => Answer::Never,
    });
    let served = Served::with(&section(default_allow), &reviewer.kubeconfig()).await;
    for said in served.all_open().await {
        assert!(said.is_by_default(default_allow, "the image policy backend did not answer in time"), "{said:?}");
    }
    // A backend learns a little later that a review is given up, when the next one has its place already.
    assert!(reviewer.most_open() < 2 * AT_ONCE, "{}", reviewer.most_open());
    let late = format!("outrider_questions_total{{kind=\"images\",result=\"timeout\"}} {MANY}");
    assert!(served.metric(&late).await);
    // What no review waits for any more is given up, and its place is free.
    let said = served.all(["quick".to_owned()]).await.remove(0);
    assert!(said.allowed && !said.failed_open, "{said:?}");
    while reviewer.open() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn unread(default_allow: bool) {
    let reviewer = ImageReviewer::start(|_, _| Answer::status(&json!({"allowed": true})));
    let served = Served::without_secret(&section(default_allow)).await;
    for said in served.all_open().await {
        assert!(said.is_by_default(default_allow, "did not answer in time"), "{said:?}");
    }
    served.backends.are(None);
    for said in served.all(of_few(3 * FEW)).await {
        assert!(said.is_by_default(default_allow, "there is no Secret outrider-image-policy"), "{said:?}");
    }
    let kubeconfig = reviewer.kubeconfig().to_string();
    served.backends.are(Some(BTreeMap::from([("other".to_owned(), kubeconfig.clone())])));
    for said in served.all(of_few(3 * FEW)).await {
        assert!(said.is_by_default(default_allow, "has no key \"kubeconfig\""), "{said:?}");
    }
    served.backends.are(Some(BTreeMap::from([("kubeconfig".to_owned(), kubeconfig)])));
    let said = served.all(distinct(1)).await.remove(0);
    assert!(said.allowed && !said.failed_open, "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_does_not_answer_keeps_no_review_beyond_its_time_out() {
    tokio::join!(slow(false), slow(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_not_read_is_waited_for_and_one_that_is_missing_is_not() {
    tokio::join!(unread(false), unread(true));
}

/// Replies that are no verdict, by the numbers of the images.
fn broken(number: usize) -> Answer {
    let of = |status: Value| Answer::status(&status);
    let whole = |kind: &str, status: Value| {
        json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": kind, "status": status}).to_string()
    };
    let allowed = || json!({"allowed": true});
    match number {
        0 => Answer::Body(200, String::new()),
        1 => Answer::Body(200, "<html>yes</html>".to_owned()),
        2 => Answer::Body(200, allowed().to_string()),
        3 => Answer::Body(200, whole("AdmissionReview", allowed())),
        4 => Answer::Body(200, json!(["imagepolicy.k8s.io/v1alpha1", "ImageReview", allowed()]).to_string()),
        5 => of(json!([true])),
        6 => of(json!({"allowed": "true"})),
        7 => of(json!({"allowed": true, "reason": {}})),
        8 => Answer::Body(200, whole("ImageReview", allowed()) + &" ".repeat(1 << 20)),
        9 => Answer::Endless,
        10 => Answer::Body(302, whole("ImageReview", allowed())),
        _ => Answer::Body(404, whole("ImageReview", allowed())),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_no_verdict_leaves_the_decision_to_the_object() {
    for default_allow in [false, true] {
        let reviewer = ImageReviewer::start(|spec, _| {
            broken(image_of(spec).trim_start_matches("shop:").parse::<usize>().unwrap() % 12)
        });
        let served = Served::with(&section(default_allow), &reviewer.kubeconfig()).await;
        for said in served.all(distinct(MANY)).await {
            let number = said.image.trim_start_matches("shop:").parse::<usize>().unwrap() % 12;
            if matches!(number, 8 | 9) {
                // Whatever the object says: its author could make a backend say that much.
                assert!(!said.allowed && said.message.ends_with("the reply is longer than 64 KiB"), "{said:?}");
                continue;
            }
            let why = match number {
                0..=7 => "is no ImageReview",
                10 => "answered HTTP 302",
                _ => "answered HTTP 404",
            };
            assert!(said.is_by_default(default_allow, why), "{said:?}");
        }
        assert_eq!(reviewer.reviews().len(), MANY, "none of these is worth another try");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_gone_or_is_another_leaves_the_decision_to_the_object() {
    let allow = |_: &Value, _: usize| Answer::status(&json!({"allowed": true}));
    let gone = ImageReviewer::start(allow).kubeconfig();
    let other_name = ImageReviewer::start_with(&Tls { name: "other.example".to_owned(), ..Tls::default() }, allow);
    let trusted = ImageReviewer::start(allow);
    let strange = trusted.kubeconfig_for(authority().certificate_pem(), &json!({"token": "t"}));
    let foreign = Tls { clients: Some(authority().certificate_pem().to_owned()), ..Tls::default() };
    let particular = ImageReviewer::start_with(&foreign, allow);
    for (kubeconfig, why, reviews) in [
        (gone, "Connection refused", MANY),
        (other_name.kubeconfig(), "certificate", 3 * FEW),
        (strange, "certificate", 3 * FEW),
        (particular.kubeconfig(), "cannot be reached", 3 * FEW),
    ] {
        for default_allow in [false, true] {
            let served = Served::with(&section(default_allow), &kubeconfig).await;
            for said in served.all(of_few(reviews)).await {
                let is_right = said.is_by_default(default_allow, "cannot be reached")
                    && (default_allow || said.message.contains(why));
                assert!(is_right, "{said:?}");
            }
        }
    }
    for reviewer in [other_name, trusted, particular] {
        assert_eq!(reviewer.reviews(), Vec::<Value>::new(), "no image is named to a stranger");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_errors_are_tried_again_a_few_times_and_never_remembered() {
    for status in [429, 500, 502, 503, 504] {
        let reviewer = ImageReviewer::start(move |_, before| match before {
            0..4 => Answer::Body(status, String::new()),
            _ => Answer::status(&json!({"allowed": true})),
        });
        let served = Served::with(&json!({"retryBackoff": 1}), &reviewer.kubeconfig()).await;
        let said = served.all(vec!["shop:1".to_owned(); 3 * FEW]).await;
        assert!(said.iter().all(|said| said.allowed && !said.failed_open), "{status}: {:?}", said[0]);
        assert_eq!(reviewer.reviews().len(), 5, "{status}");
    }
    for default_allow in [false, true] {
        let reviewer = ImageReviewer::start(|_, _| Answer::Body(503, String::new()));
        let served =
            Served::with(&json!({"retryBackoff": 1, "defaultAllow": default_allow}), &reviewer.kubeconfig()).await;
        let mut before = 0;
        for _ in 0..2 {
            for said in served.all(of_few(MANY / 2)).await {
                assert!(said.is_by_default(default_allow, "answered HTTP 503"), "{said:?}");
            }
            let sent = reviewer.reviews().len();
            assert!(sent - before >= FEW * 5 && sent.is_multiple_of(5), "{before}, then {sent}");
            before = sent;
        }
    }
}
