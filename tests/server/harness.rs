//! A server on free ports, and a client that trusts it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use outrider::certs::{Authority, Resolver};
use outrider::metrics::{Freshness, Metrics};
use outrider::readiness::{Gate, Readiness};
use outrider::server::{Limits, ProbePaths, Server, ServerOptions, Shutdown, Sources};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::{Client, plain_get};
use crate::toys::{self, Latch, ToySnapshot};

pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub struct TestServer {
    pub webhook: SocketAddr,
    pub health: SocketAddr,
    pub metrics: SocketAddr,
    pub authority: Authority,
    pub resolver: Arc<Resolver>,
    pub shutdown: Shutdown,
    pub freshness: Freshness,
    pub controllers: Metrics,
    pub readiness: Readiness,
    pub sync: Gate,
    pub latch: Latch,
    pub running: JoinHandle<()>,
}

/// What a test changes about the server.
#[derive(Default)]
pub struct Setup {
    pub limits: Limits,
    pub enable_http2: bool,
    pub client_ca: Option<std::path::PathBuf>,
    pub probes: ProbePaths,
}

pub fn authority() -> Authority {
    Authority::create("test authority", DAY, Timestamp::now()).unwrap()
}

impl TestServer {
    /// Ready to decide.
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with_limits(limits: Limits) -> Self {
        Self::with(Setup { limits, ..Setup::default() }).await
    }

    pub async fn with(setup: Setup) -> Self {
        crate::log::capture();
        let authority = authority();
        let (resolver, readiness, freshness) = (Resolver::empty(), Readiness::default(), Freshness::default());
        resolver.swap(authority.sign(vec!["localhost".to_owned()], DAY, Timestamp::now()).unwrap());
        let snapshot = ToySnapshot::default();
        let (latch, sync) = (snapshot.latch.clone(), readiness.gate("sync:toys"));
        let metrics = Metrics::new(freshness.clone());
        let sources = Sources {
            registry: Arc::new(toys::registry()),
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            resolver: Arc::clone(&resolver),
            readiness: readiness.clone(),
            freshness: freshness.clone(),
            metrics: metrics.clone(),
            scrapers: None,
            asker: None,
            known: None,
        };
        let options = ServerOptions {
            webhook: "127.0.0.1:0".parse().unwrap(),
            health: "127.0.0.1:0".parse().unwrap(),
            metrics: "127.0.0.1:0".parse().unwrap(),
            enable_http2: setup.enable_http2,
            client_ca: setup.client_ca,
            probes: setup.probes,
            limits: setup.limits,
        };
        let server = Server::bind(options, sources).await.unwrap();
        let addresses = server.addresses();
        let shutdown = Shutdown::new(readiness.clone());
        let running = tokio::spawn(server.run(shutdown.clone()));
        sync.open();
        // The listeners are bound before their gates open.
        while !readiness.missing().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        Self {
            webhook: addresses.webhook.unwrap(),
            health: addresses.health.unwrap(),
            metrics: addresses.metrics.unwrap(),
            authority,
            resolver,
            shutdown,
            freshness,
            controllers: metrics,
            readiness,
            sync,
            latch,
            running,
        }
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.webhook, self.authority.certificate_pem()).await.unwrap()
    }

    pub async fn probe(&self, path: &str) -> (u16, String) {
        plain_get(self.health, path).await
    }

    /// Each of these codes has been counted for a request without a verdict.
    pub async fn demand_unserved(&self, codes: &[&str]) {
        let scraped = self.scrape().await;
        let is_counted = |code: &&str| {
            let labels = [r#"verdict="unserved""#.to_owned(), format!("reason=\"{code}\"")];
            let mut lines = scraped.lines().filter(|line| line.starts_with("outrider_reviews_total{"));
            lines.any(|line| labels.iter().all(|label| line.contains(label)))
        };
        let missing: Vec<_> = codes.iter().filter(|code| !is_counted(code)).collect();
        assert!(missing.is_empty(), "{missing:?} are not counted: {scraped}");
    }

    pub async fn scrape(&self) -> String {
        let (status, text) = plain_get(self.metrics, "/metrics").await;
        assert_eq!(status, 200);
        text
    }
}

/// A review of a new object.
pub fn review(uid: &str, object: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "toy.example", "version": "v1", "kind": "Toy"},
            "name": "bear",
            "namespace": "shop",
            "operation": "CREATE",
            "object": object,
        },
    })
    .to_string()
}

/// A review whose object is of no interest.
pub fn any_review() -> String {
    review("any", &json!({"spec": {}}))
}
