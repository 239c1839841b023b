//! The server: webhooks over TLS, health and metrics in plain HTTP.
//!
//! It knows the registry and the read model `W`, not the kinds. [`Server::bind`] opens the ports, so that a port that is taken
//! shows before anything starts; [`Server::run`] serves until [`Shutdown`] has run its course.

pub mod address;
mod apart;
mod body;
mod body_memory;
mod client_ca;
mod connection;
mod connections;
pub mod deadline;
mod decision;
mod handshake;
mod limits;
mod listener;
pub mod memory;
pub mod open_files;
mod plain;
pub mod questions;
mod rate_limits;
mod record;
mod remembered;
mod reply;
mod scrapers;
mod shares;
pub mod shutdown;
pub mod tls;
mod waiting;
pub mod webhooks;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use admission::Registry;
use arc_swap::ArcSwap;
use axum::Router;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::certs::Resolver;
use crate::metrics::{Freshness, Metrics};
use crate::readiness::{Gate, Readiness};
pub use address::BindAddress;
pub use limits::Limits;
pub use plain::ProbePaths;
pub use questions::Asker;
pub use scrapers::{Bearer, Scrapers};
pub use shutdown::Shutdown;
pub use webhooks::Webhooks;

use apart::Apart;
use client_ca::FollowClientCa;
use connection::Front;
use tls::Acceptor;

/// Where and how to listen.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The webhook port.
    pub webhook: BindAddress,
    /// The port of the probes.
    pub health: BindAddress,
    /// The port of the metrics.
    pub metrics: BindAddress,
    /// Offer HTTP/2 too.
    pub enable_http2: bool,
    /// Clients must show a certificate that one of these authorities signed. The file is followed.
    pub client_ca: Option<PathBuf>,
    /// Where the probes are.
    pub probes: ProbePaths,
    /// Bounds.
    pub limits: Limits,
}

/// What the server serves from, shared with the code that updates it.
pub struct Sources<W> {
    /// The endpoints.
    pub registry: Arc<Registry<W>>,
    /// What they decide from; replaced as a whole.
    pub snapshot: Arc<ArcSwap<W>>,
    /// Where the certificate comes from.
    pub resolver: Arc<Resolver>,
    /// The gates.
    pub readiness: Readiness,
    /// The age of the snapshot.
    pub freshness: Freshness,
    /// Served at `/metrics`, and counted into by reviews.
    pub metrics: Metrics,
    /// Who may read the metrics, over TLS; everybody, over plain HTTP, when absent.
    pub scrapers: Option<Arc<dyn Scrapers>>,
    /// The client that answers questions of decisions; none without a cluster.
    pub asker: Option<Arc<dyn Asker>>,
    /// What this replica knows of an object that other replicas ask about, beside the probes. `None` without a cluster.
    pub known: Option<Known>,
}

/// What this replica knows of an object, by its resource and name (`sidecarsets/a`); nothing of one that it does not know.
#[derive(Clone)]
pub struct Known(pub Arc<Answering>);

/// What [`Known`] calls.
pub type Answering = dyn Fn(&str) -> Option<String> + Send + Sync;

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A port cannot be opened.
    #[error("cannot listen on {address} for {front}: {source}; choose another address with {}", flag(front))]
    Listen {
        /// What the port is for.
        front: &'static str,
        /// Where.
        address: BindAddress,
        /// What the system said.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
}

/// A server whose ports are open.
pub struct Server<W> {
    webhook: Option<TcpListener>,
    health: Option<TcpListener>,
    metrics: Option<TcpListener>,
    acceptor: Acceptor,
    client_ca: Option<FollowClientCa>,
    scraping: Option<TlsAcceptor>,
    sources: Sources<W>,
    probes: ProbePaths,
    limits: Limits,
    listening: Option<Gate>,
}

/// The ports that the system gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The webhook port.
    pub webhook: Option<SocketAddr>,
    /// The port of the probes.
    pub health: Option<SocketAddr>,
    /// The port of the metrics.
    pub metrics: Option<SocketAddr>,
}

impl<W: Send + Sync + 'static> Server<W> {
    /// Opens the ports and adds the gate `webhook listener`.
    ///
    /// # Errors
    /// [`ServerError`] when a port is taken or TLS cannot be set up.
    pub async fn bind(options: ServerOptions, sources: Sources<W>) -> Result<Self, ServerError> {
        let resolver = Arc::clone(&sources.resolver);
        let scraping = match &sources.scrapers {
            Some(_) => Some(TlsAcceptor::from(Arc::new(tls::server_config(sources.resolver.clone(), None, false)?))),
            None => None,
        };
        let (acceptor, client_ca) = match options.client_ca {
            None => (Acceptor::new(tls::server_config(resolver, None, options.enable_http2)?), None),
            Some(path) => {
                let (gate, metrics) = (sources.readiness.gate("client CA"), sources.metrics.clone());
                let client_ca = FollowClientCa::begin(path, resolver, options.enable_http2, gate, metrics).await?;
                (client_ca.acceptor(), Some(client_ca))
            }
        };
        let webhook = listen("webhooks", &options.webhook).await?;
        Ok(Self {
            listening: webhook.as_ref().map(|_| sources.readiness.gate("webhook listener")),
            webhook,
            health: listen("health probes", &options.health).await?,
            metrics: listen("metrics", &options.metrics).await?,
            acceptor,
            client_ca,
            scraping,
            sources,
            probes: options.probes,
            limits: options.limits,
        })
    }

    /// Where the server listens.
    pub fn addresses(&self) -> Addresses {
        let address = |listener: &Option<TcpListener>| listener.as_ref().and_then(|bound| bound.local_addr().ok());
        Addresses { webhook: address(&self.webhook), health: address(&self.health), metrics: address(&self.metrics) }
    }

    /// Serves until `shutdown` has closed the listeners and what ran has ended or run out of its time. Probes and metrics are
    /// answered to the end.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { webhook, health, metrics, acceptor, client_ca, scraping, sources, probes, limits, listening } = self;
        let probes = plain::health(sources.readiness.clone(), sources.freshness, probes, sources.known);
        let page =
            plain::metrics(sources.metrics.clone(), sources.resolver, sources.readiness.clone(), sources.scrapers);
        let _probes = serve_plain("probes", health, None, probes);
        let _scrapes = serve_plain("metrics", metrics, scraping, page);
        let reviews = async {
            let Some(listener) = webhook else { return shutdown.stopping().await };
            let front = Arc::new(Front {
                handshake_failures: sources.metrics.handshake_failures.clone(),
                webhooks: Webhooks::new(
                    sources.registry,
                    sources.snapshot,
                    sources.readiness,
                    sources.metrics,
                    limits.clone(),
                    sources.asker,
                ),
                acceptor,
                shutdown: shutdown.clone(),
                limits: limits.clone(),
            });
            if let Some(gate) = listening {
                gate.open();
            }
            let serve = |stream, place| Arc::clone(&front).serve(stream, place);
            let connections = open_files::connections(limits.connections);
            listener::accept(listener, connections, limits.finish, shutdown.clone(), serve).await;
        };
        let following = async {
            match client_ca {
                Some(client_ca) => client_ca.follow().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = reviews => {}
            () = following => {}
        }
    }
}

/// The flag that decides where a front listens.
fn flag(front: &str) -> &'static str {
    match front {
        "webhooks" => "--webhook-bind-address",
        "health probes" => "--health-probe-bind-address, or 0 for none",
        _ => "--metrics-bind-address, or 0 for none",
    }
}

async fn listen(front: &'static str, address: &BindAddress) -> Result<Option<TcpListener>, ServerError> {
    address.listen().await.map_err(|source| ServerError::Listen { front, address: address.clone(), source })
}

/// Serves until what it returns is dropped, in a separate thread: a liveness probe must not wait for a review.
fn serve_plain(
    name: &'static str,
    listener: Option<TcpListener>,
    acceptor: Option<TlsAcceptor>,
    router: Router,
) -> Option<Apart> {
    let apart = apart::serve(name, listener?, move |listener| async move {
        let forever = Shutdown::new(Readiness::default());
        let serve = |stream, place| plain::serve(stream, acceptor.clone(), place, router.clone());
        listener::accept(listener, plain::CONNECTIONS, std::time::Duration::ZERO, forever, serve).await;
    });
    apart.inspect_err(|error| tracing::error!(%error, name, "Cannot be served")).ok()
}
