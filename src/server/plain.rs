//! Health and metrics, each on a port of its own: plain HTTP, metrics over TLS where not everybody may read them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::certs::Resolver;

use super::Known;
use super::connections::ConnectionSlot;
use super::scrapers::{Scrapers, admit};
use crate::metrics::Metrics;
use crate::metrics::freshness::Freshness;
use crate::readiness::Readiness;

/// Connections at one time: kubelet, a Prometheus or two, a person.
pub const CONNECTIONS: usize = 128;

/// Longest wait for the head of a request, also between two requests. Prometheus repeats a GET on a connection that was closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the probes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePaths {
    /// Whether this replica can answer.
    pub readiness: String,
    /// Whether this process lives. `/livez` is served as well.
    pub liveness: String,
}

impl Default for ProbePaths {
    fn default() -> Self {
        Self { readiness: "/readyz".to_owned(), liveness: "/healthz".to_owned() }
    }
}

/// In front of the resource and name of an object, the path under which other replicas ask what is known of it.
pub const KNOWN: &str = "/known/";

#[derive(Clone)]
struct Health {
    readiness: Readiness,
    freshness: Freshness,
    known: Option<Known>,
}

/// The probes, and what other replicas ask.
pub fn health(readiness: Readiness, freshness: Freshness, paths: ProbePaths, known: Option<Known>) -> Router {
    let health = Health { readiness, freshness, known };
    // Not as routes: the router panics at paths that it cannot tell apart, and the paths come from a file.
    Router::new().fallback(get(move |uri: Uri| {
        let (health, paths) = (health.clone(), paths.clone());
        async move {
            match uri.path() {
                path if path == paths.readiness => ready(&health, uri.query()),
                // That this can be answered is all there is to say.
                path if path == paths.liveness || path == "/livez" => "ok".into_response(),
                path => match path.strip_prefix(KNOWN).and_then(|object| (health.known.as_ref()?.0)(object)) {
                    Some(what) => what.into_response(),
                    None => StatusCode::NOT_FOUND.into_response(),
                },
            }
        }
    }))
}

fn ready(health: &Health, query: Option<&str>) -> Response {
    let is_ready = health.readiness.is_ready();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let is_verbose = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("verbose")));
    let text = match (is_verbose, is_ready) {
        (true, _) => verbose(health),
        (false, true) => "ok".to_owned(),
        (false, false) if health.readiness.is_draining() => "not ready: shutting down".to_owned(),
        (false, false) => format!("not ready: {}", health.readiness.missing()),
    };
    (status, text).into_response()
}

/// As the API server's own `/readyz?verbose`: a line a check.
fn verbose(health: &Health) -> String {
    let mut lines: Vec<String> = Vec::new();
    for check in health.readiness.checks() {
        let state = if check.open { "[+]" } else { "[-]" };
        let word = if check.open { "ok" } else { "failed" };
        let detail = if check.detail.is_empty() { String::new() } else { format!(": {}", check.detail) };
        lines.push(format!("{state}{} {word}{detail}", check.name));
    }
    let (state, word) = if health.readiness.is_draining() { ("[-]", "failed: shutting down") } else { ("[+]", "ok") };
    lines.push(format!("{state}shutdown {word}"));
    lines.push(match health.freshness.age() {
        Some(age) => format!("snapshot: generation {}, age {:.1} s", health.freshness.generation(), age.as_secs_f64()),
        None => "snapshot: none yet".to_owned(),
    });
    lines.push(format!("readyz check {}", if health.readiness.is_ready() { "passed" } else { "failed" }));
    lines.join("\n") + "\n"
}

#[derive(Clone)]
struct Scraped {
    metrics: Metrics,
    resolver: Arc<Resolver>,
    readiness: Readiness,
    scrapers: Option<Arc<dyn Scrapers>>,
}

/// `/metrics`.
pub fn metrics(
    metrics: Metrics,
    resolver: Arc<Resolver>,
    readiness: Readiness,
    scrapers: Option<Arc<dyn Scrapers>>,
) -> Router {
    Router::new().route("/metrics", get(scrape)).with_state(Scraped { metrics, resolver, readiness, scrapers })
}

async fn scrape(
    State(Scraped { metrics, resolver, readiness, scrapers }): State<Scraped>,
    headers: HeaderMap,
) -> Response {
    if let Err(refusal) = admit(scrapers.as_ref(), &headers).await {
        return refusal.into_response();
    }
    metrics.ready.set(i64::from(readiness.is_ready()));
    let served = resolver.current();
    metrics.certificate_not_after.set(served.as_ref().map_or(0, |pair| pair.not_after().as_second()));
    metrics.certificate_not_before.set(served.as_ref().map_or(0, |pair| pair.not_before().as_second()));
    match metrics.encode() {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Serves one connection to its end, over TLS if there is an acceptor.
pub async fn serve(stream: TcpStream, acceptor: Option<TlsAcceptor>, place: ConnectionSlot, router: Router) {
    let serving = async {
        let Some(acceptor) = acceptor else { return serve_http(stream, router).await };
        match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => serve_http(stream, router).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    };
    tokio::select! {
        () = serving => {}
        () = place.activity.given_up() => {}
    }
}

async fn serve_http(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, router: Router) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = serving.await {
        tracing::debug!(%error, "Connection ended");
    }
}
