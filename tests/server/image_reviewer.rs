//! A backend that reviews images, over TLS on loopback: it answers as a test wants it, also late, never, without end, or with lies.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use outrider::certs::Authority;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What it says to a review.
pub enum Answer {
    /// A status code, and a body.
    Body(u16, String),
    /// The beginning of a reply that has no end.
    Endless,
    /// Nothing, while the client waits.
    Never,
}

impl Answer {
    /// An `ImageReview` with this status.
    pub fn status(status: &Value) -> Self {
        let review = json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "status": status});
        Self::Body(200, review.to_string())
    }
}

/// What is said to the spec of a review, of which so many came before.
type Decide = dyn Fn(&Value, usize) -> Answer + Send + Sync;

/// How it is reached.
pub struct Tls {
    /// The name in its certificate.
    pub name: String,
    /// The authority, PEM, of the certificates that clients must have.
    pub clients: Option<String>,
}

impl Default for Tls {
    fn default() -> Self {
        Self { name: "localhost".to_owned(), clients: None }
    }
}

/// The backend, until it is dropped: then its connections are closed, and further ones refused.
pub struct ImageReviewer {
    address: SocketAddr,
    authority: Authority,
    seen: Arc<Seen>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    reviews: Mutex<Vec<Value>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// A review that is open for as long as this lives.
struct Open<'s>(&'s Seen);

impl Seen {
    fn begin(&self) -> Open<'_> {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
        Open(self)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ImageReviewer {
    pub fn start(decide: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(&Tls::default(), decide)
    }

    pub fn start_with(tls: &Tls, decide: impl Fn(&Value, usize) -> Answer + Send + Sync + 'static) -> Self {
        let authority = Authority::create("image reviewers", DAY, Timestamp::now()).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&authority, tls)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, decide): (_, Arc<Decide>) = (Arc::<Seen>::default(), Arc::new(decide));
        let (end, ended) = oneshot::channel::<()>();
        let shared = Arc::clone(&seen);
        // A runtime of its own, which takes all connections with it when it ends.
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, acceptor, shared, decide) => {}
                    _ = ended => {}
                }
            });
        });
        Self { address, authority, seen, end: Some(end), thread: Some(thread) }
    }

    /// The kubeconfig that names it.
    pub fn kubeconfig(&self) -> Value {
        self.kubeconfig_for(self.authority.certificate_pem(), &json!({"token": "t"}))
    }

    /// The same, by a user with these credentials who trusts this authority.
    pub fn kubeconfig_for(&self, ca: &str, user: &Value) -> Value {
        let cluster = json!({
            "server": format!("https://localhost:{}/review", self.address.port()),
            "certificate-authority-data": STANDARD.encode(ca),
        });
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "images",
            "contexts": [{"name": "images", "context": {"cluster": "images", "user": "outrider"}}],
            "clusters": [{"name": "images", "cluster": cluster}], "users": [{"name": "outrider", "user": user}],
        })
    }

    /// Whom to trust there, PEM.
    pub fn ca(&self) -> &str {
        self.authority.certificate_pem()
    }

    /// The reviews that came, in their order.
    pub fn reviews(&self) -> Vec<Value> {
        self.seen.reviews.lock().unwrap().clone()
    }

    /// Reviews that wait for an answer now.
    pub fn open(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }

    /// The most reviews that ever waited at one time.
    pub fn most_open(&self) -> usize {
        self.seen.most_open.load(Ordering::SeqCst)
    }
}

impl Drop for ImageReviewer {
    fn drop(&mut self) {
        drop(self.end.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn server_config(authority: &Authority, tls: &Tls) -> ServerConfig {
    let (certificate, key) = authority.sign_pem(vec![tls.name.clone()], DAY, Timestamp::now()).unwrap();
    let provider = Arc::new(default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let builder = match &tls.clients {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
}

async fn accept(listener: tokio::net::TcpListener, acceptor: TlsAcceptor, seen: Arc<Seen>, decide: Arc<Decide>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, seen, decide) = (acceptor.clone(), Arc::clone(&seen), Arc::clone(&decide));
        tokio::spawn(async move {
            // Clients that do not trust it close the connection.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|request| answer(request, &seen, &*decide));
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: &Seen,
    decide: &Decide,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let _open = seen.begin();
    let is_as_expected = request.uri().path() == "/review" && request.method() == "POST";
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let before = {
        let mut reviews = seen.reviews.lock().unwrap();
        reviews.push(review.clone());
        reviews.len() - 1
    };
    let reply = |status: u16, body| Response::builder().status(status).body(body).unwrap();
    if !is_as_expected {
        return Ok(reply(400, Full::from("POST to /review").boxed()));
    }
    match decide(&review["spec"], before) {
        Answer::Body(status, body) => Ok(reply(status, Full::from(body).boxed())),
        Answer::Endless => {
            let chunks = futures::stream::repeat_with(|| Ok(Frame::data(Bytes::from(vec![b' '; 16 * 1024]))));
            Ok(reply(200, StreamBody::new(chunks).boxed()))
        }
        Answer::Never => std::future::pending().await,
    }
}
