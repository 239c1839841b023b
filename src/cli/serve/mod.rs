//! `outrider serve`: the process that runs in a cluster, or without one.

mod args;
mod cluster;
mod config;
mod signals;
mod standalone;

use std::process::ExitCode;
use std::sync::Arc;

use admission::Registry;
use arc_swap::ArcSwap;
use clap::ArgMatches;
use jiff::Timestamp;

pub use config::{Ending, Given};
pub use standalone::follow_manifests;

pub use args::{
    CertificateArgs, CertificateSource, ControllerArgs, ListenArgs, LogArgs, RegistrationArgs, ServeArgs,
    StandaloneArgs,
};

use crate::certs::Resolver;
use crate::certs::expiry::Alarm;
use crate::certs::files::{CertificateFiles, ClientNames, FollowFiles, Recipients};
use crate::certs::local::{self, Local};
use crate::cli::report::located;
use crate::config::ConfigError;
use crate::logging;
use crate::metrics::{Freshness, Metrics};
use crate::readiness::Readiness;
use crate::server::{Addresses, Asker, Known, Scrapers, Server, ServerError, Shutdown, Sources, open_files};

/// Why the process could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Logging cannot begin.
    #[error(transparent)]
    Logging(#[from] logging::LoggingError),
    /// The configuration file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The runtime or the signal handlers cannot be set up.
    #[error("cannot set up the process: {0}")]
    Setup(#[from] std::io::Error),
    /// A port or TLS.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The certificate of a server without a cluster.
    #[error(transparent)]
    Certificate(#[from] local::LocalError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// The manifests of a server without a cluster.
    #[error("the manifests cannot be used:{}", listed(.0))]
    Manifests(crate::standalone::Unusable),
}

fn listed(unusable: &crate::standalone::Unusable) -> String {
    located(unusable).iter().flat_map(|finding| ["\n".to_owned(), finding.to_string()]).collect()
}

/// What every part of the process shares: clones are handles of the same things.
#[derive(Debug, Clone)]
pub struct Process {
    /// The gates; every part makes its own before [`run`] is called.
    pub readiness: Readiness,
    /// Written by the component that replaces the snapshot.
    pub freshness: Freshness,
    /// The metrics.
    pub metrics: Metrics,
    /// The end.
    pub shutdown: Shutdown,
    /// Where the serving certificate goes.
    pub resolver: Arc<Resolver>,
    /// Who may read the metrics.
    pub scrapers: Option<Arc<dyn Scrapers>>,
    /// Who answers questions of decisions.
    pub asker: Option<Arc<dyn Asker>>,
    /// What other replicas may ask.
    pub known: Option<Known>,
}

impl Default for Process {
    fn default() -> Self {
        let (readiness, freshness) = (Readiness::default(), Freshness::default());
        Self {
            metrics: Metrics::new(freshness.clone()),
            shutdown: Shutdown::new(readiness.clone()),
            resolver: Resolver::empty(),
            scrapers: None,
            asker: None,
            known: None,
            readiness,
            freshness,
        }
    }
}

/// Runs the command. `matches` is what `args` were made from: it knows which flags were given.
pub fn execute(args: ServeArgs, matches: &ArgMatches) -> ExitCode {
    let ended = start(args, Given(matches));
    logging::flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::fail(&error),
    }
}

fn start(mut args: ServeArgs, given: Given<'_>) -> Result<(), ServeError> {
    logging::init(args.log.log_format, &args.log.log_level)?;
    if let Some(path) = args.config.clone() {
        let loaded = crate::config::load(&path)?.within(&path, args.validate)?;
        let file = path.display().to_string();
        for warning in loaded.warnings {
            tracing::warn!(file, "{warning}");
        }
        tracing::info!(file, cluster_name = loaded.config.cluster_name, "Configuration read");
        args.configure(loaded.config, given);
    }
    if args.drain_delay.is_some_and(|wanted| args.ending().drain_delay < wanted) {
        tracing::warn!(
            "gracefulShutDown ends the process before --drain-delay is over; requests may be refused meanwhile"
        );
    }
    tracing::debug!(configuration = %args.effective().to_object(), "Effective configuration");
    open_files::raise_limit();
    let args = &args;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let process = Process::default();
        if args.standalone.standalone {
            return standalone::serve(args, process).await;
        }
        cluster::serve(args, given, process).await
    })
}

/// Serves `registry` from `snapshot` until a signal ends the process. What updates the snapshot has been started by the caller and
/// holds its own clone of `process`.
///
/// # Errors
/// [`ServeError`] when the process cannot start.
pub async fn run<W: Send + Sync + 'static>(
    args: &ServeArgs,
    process: Process,
    registry: Registry<W>,
    snapshot: Arc<ArcSwap<W>>,
) -> Result<(), ServeError> {
    run_and_report(args, process, registry, snapshot, |_| ()).await
}

/// As [`run`], and calls `listening` once the ports are open.
async fn run_and_report<W: Send + Sync + 'static>(
    args: &ServeArgs,
    process: Process,
    registry: Registry<W>,
    snapshot: Arc<ArcSwap<W>>,
    listening: impl FnOnce(Addresses),
) -> Result<(), ServeError> {
    signals::follow(process.shutdown.clone(), args.ending())?;
    let sources = Sources {
        registry: Arc::new(registry),
        snapshot,
        resolver: Arc::clone(&process.resolver),
        readiness: process.readiness.clone(),
        freshness: process.freshness.clone(),
        metrics: process.metrics.clone(),
        scrapers: process.scrapers.clone(),
        asker: process.asker.clone(),
        known: process.known.clone(),
    };
    let server = Server::bind(args.server_options(), sources).await?;
    // Not before: a process that finds its port taken must not write over the file by which the other one is trusted.
    // With a cluster, this is the manager's task.
    if (args.listen.enable_webhooks || args.listen.metrics_secure) && args.standalone.standalone {
        certificate(args, &process)?;
    }
    let addresses = server.addresses();
    let shown = |address: Option<std::net::SocketAddr>| address.map_or_else(|| "off".to_owned(), |a| a.to_string());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        webhooks = shown(addresses.webhook),
        health = shown(addresses.health),
        metrics = shown(addresses.metrics),
        "Listening"
    );
    listening(addresses);
    tokio::spawn(log_when_ready(process.readiness));
    server.run(process.shutdown).await;
    tracing::info!("Ended in order");
    Ok(())
}

/// How often it is checked whether the process has become ready.
const READY_CHECK: std::time::Duration = std::time::Duration::from_millis(100);

/// One line in the log for a person who starts the process by hand.
async fn log_when_ready(readiness: Readiness) {
    while !readiness.is_ready() {
        if readiness.is_draining() {
            return;
        }
        tokio::time::sleep(READY_CHECK).await;
    }
    tracing::info!("Ready");
}

/// Keeps the serving certificate of a server without a cluster. The gate `certificate` is open while there is one.
fn certificate(args: &ServeArgs, process: &Process) -> Result<(), ServeError> {
    let gate = process.readiness.gate("certificate");
    match args.certificate_source() {
        CertificateSource::Files => {
            let resolver = Arc::clone(&process.resolver);
            // People ask, by whatever name.
            let clients = ClientNames { names: local::service_names(&args.namespace), ..ClientNames::default() };
            let files = CertificateFiles::new(&args.certificates.cert_dir, Arc::clone(&resolver), clients);
            let told = Recipients { gate, metrics: process.metrics.clone(), alarm: Alarm::new(None), bundle: None };
            tokio::spawn(FollowFiles::new(files, resolver, told, None).run());
        }
        CertificateSource::Own => {
            let ca_file = args.ca_file();
            let local = Local::serve(&process.resolver, &args.namespace, &ca_file, Timestamp::now())?;
            tokio::spawn(local.run());
            gate.open();
            tracing::info!(ca_file = %ca_file.display(), "Certificate made; clients trust it with this file");
        }
    }
    Ok(())
}
