//! Serving a cluster: the manager's options from the flags, and the manager beside the server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{CertificateSource, Given, Process, ServeArgs, ServeError, run};
use crate::certs::lifetimes::LifetimesError;
use crate::certs::local;
use crate::kind::Kind;
use crate::manager::background::Background;
use crate::manager::client::{self, Connection};
use crate::manager::lease::TimesError;
use crate::manager::options::{Certificates, Controllers, Election, ManagerOptions};
use crate::manager::questions::ApiServer;
use crate::manager::scrapers::TokenReviews;
use crate::manager::{Manager, Shared, registration};
use crate::manifests::webhooks::WebhookEntry;
use crate::registry::registry;
use crate::selection::Unknown;
use crate::server::Shutdown;

/// Why a cluster cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The API server cannot be found.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// `--controllers`.
    #[error("--controllers: {0}")]
    Controllers(#[from] Unknown),
    /// `--leader-elect-*`.
    #[error("--leader-elect: {0}")]
    Election(#[from] TimesError),
    /// `--self-signed-…-duration`.
    #[error(transparent)]
    CertificateLifetimes(#[from] LifetimesError),
    /// `--webhook-url`.
    #[error("--webhook-url {0:?}: write https://HOST:PORT")]
    Url(String),
    /// The API server would not trust the certificate.
    #[error("--register-webhooks needs the authority's certificate in {path}: {source}; or use --certificates self")]
    Bundle {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Serves the cluster until a signal ends the process.
pub(super) async fn serve(args: &ServeArgs, given: Given<'_>, mut process: Process) -> Result<(), ServeError> {
    let mut connection = Connection::find(args.kubeconfig.as_deref()).await.map_err(ClusterError::from)?;
    connection.limit_plugins();
    let shared = Shared {
        readiness: process.readiness.clone(),
        freshness: process.freshness.clone(),
        metrics: process.metrics.clone(),
        resolver: Arc::clone(&process.resolver),
    };
    if args.listen.metrics_secure {
        let client = connection.client().map_err(ClusterError::from)?;
        process.scrapers = Some(Arc::new(TokenReviews::new(client)));
    }
    let client = connection.client().map_err(ClusterError::from)?;
    warn_of_kinds_without_controller(args);
    let (options, background) = (options(args, given)?, Background::start()?);
    let manager = Manager::new(&connection, options, shared, background).map_err(ClusterError::from)?;
    process.asker = Some(Arc::new(ApiServer::new(client, manager.images())));
    process.known = Some(manager.known());
    let (registry, snapshot) = (registry(&args.kinds.enable_kinds), manager.snapshot());
    let entries = WebhookEntry::all(&registry);
    let kinds = args.kinds.enable_kinds.names();
    tracing::info!(api_server = connection.url(), namespace = args.namespace, ?kinds, "Serving a cluster");
    let managing = tokio::spawn(manager.run(entries, process.shutdown.clone()));
    let ended = tokio::spawn(end_in_time(managing, process.shutdown.clone(), args.ending().finish));
    run(args, process, registry, snapshot).await?;
    // Only now may the process end: the lease has been given back.
    drop(ended.await);
    Ok(())
}

/// Waits until the manager has ended, which may take as long as the reviews that run.
async fn end_in_time(managing: JoinHandle<()>, shutdown: Shutdown, finish: Duration) {
    shutdown.stopping().await;
    match timeout(finish, managing).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => tracing::error!("The manager panicked"),
        Err(_) => tracing::warn!("The manager did not stop in time; the lease may not have been released"),
    }
}

/// A number of workers for a kind that is mistyped, or off, would have no effect without a word.
fn warn_of_kinds_without_controller(args: &ServeArgs) {
    let crds = args.kinds.enable_kinds.iter().filter(|kind| kind.controller.is_some()).map(Kind::definition);
    let specs: Vec<_> = crds.map(|crd| crd.spec).collect();
    let known: Vec<_> = specs.iter().map(|spec| (spec.names.kind.as_str(), spec.group.as_str())).collect();
    for kind in args.controller_options().unknown_kinds(&known) {
        tracing::warn!(kind, "groupKindConcurrency has no effect: no controller of this kind runs here");
    }
}

fn options(args: &ServeArgs, given: Given<'_>) -> Result<ManagerOptions, ClusterError> {
    let flags = &args.controllers;
    let election = if flags.leader_elect {
        Some(Election {
            namespace: args.lease_namespace().to_owned(),
            lease: flags.leader_elect_resource_name.clone(),
            times: args.lease_times().check()?,
        })
    } else {
        None
    };
    let webhook_url = match &args.registration.webhook_url {
        Some(url) if args.registration.register_webhooks && args.listen.enable_webhooks => Some(checked(url)?),
        _ => None,
    };
    Ok(ManagerOptions {
        namespace: args.namespace.clone(),
        health_port: args.listen.health_probe_bind_address.port().filter(|port| *port != 0),
        excluded_namespaces: args.excluded_namespaces.clone(),
        controllers: Controllers::parse(&flags.controllers, &args.kinds.enable_kinds)?,
        kinds: args.kinds.enable_kinds.clone(),
        controller_options: args.controller_options(),
        grace_period: args.ending().drain_delay.saturating_add(args.ending().finish),
        election,
        certificates: certificates(args, webhook_url.is_some())?,
        lifetimes: args.certificates.lifetimes().checked()?,
        fail_open: args.registration.fail_open.deployment(),
        webhook_url,
        webhook_port: if args.listen.enable_webhooks { args.listen.webhook_bind_address.port() } else { None },
        asked_name: asked_name(args, given),
        narrow_webhooks: args.registration.narrow_webhooks,
        on_demand_all_resources: args.registration.on_demand_all_resources,
        plugins: args.registration.enable_plugins,
    })
}

/// The name that the API server asks for: that of the Service, or the host of a URL. It is unknown where both flags are left
/// out, and a process that serves metrics alone is not asked by the API server.
fn asked_name(args: &ServeArgs, given: Given<'_>) -> Option<String> {
    if !args.listen.enable_webhooks {
        return None;
    }
    match &args.registration.webhook_url {
        Some(url) => registration::host(url),
        None => given.has("namespace").then(|| local::asked_name(&args.namespace)),
    }
}

/// The API server calls nothing but https.
fn checked(url: &str) -> Result<String, ClusterError> {
    let uri: Option<http::Uri> = url.parse().ok();
    let whole = uri.is_some_and(|uri| {
        uri.scheme_str() == Some("https")
            && uri.host().is_some()
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none()
    });
    if whole { Ok(url.trim_end_matches('/').to_owned()) } else { Err(ClusterError::Url(url.to_owned())) }
}

fn certificates(args: &ServeArgs, registers: bool) -> Result<Certificates, ClusterError> {
    if !args.listen.enable_webhooks && !args.listen.metrics_secure {
        return Ok(Certificates::Off);
    }
    match args.certificate_source() {
        CertificateSource::Own => Ok(Certificates::Own),
        CertificateSource::Files => {
            let flags = &args.certificates;
            if registers {
                let path = flags.cert_dir.join("ca.crt");
                crate::certs::files::read::read(&path).map_err(|source| ClusterError::Bundle { path, source })?;
            }
            Ok(Certificates::Files { dir: flags.cert_dir.clone(), write_ca_bundle: flags.write_ca_bundle })
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_name_that_the_api_server_asks_for_is_known_from_what_was_given() {
        let asked = |flags: &[&str]| {
            let matches = Cli::command().get_matches_from(["outrider", "serve"].iter().chain(flags));
            let Command::Serve(args) = Cli::from_arg_matches(&matches).unwrap().command else { panic!("serve") };
            asked_name(&args, Given(matches.subcommand_matches("serve").unwrap()))
        };
        let shop = "--namespace=shop";
        for (flags, expected) in [
            (&[shop][..], Some("outrider-webhook.shop.svc")),
            (&[shop, "--enable-webhooks=false", "--metrics-secure"], None),
            (&[shop, "--webhook-url=https://hooks.example.com:8443"], Some("hooks.example.com")),
            (&[shop, "--webhook-url=https://gateway.example.com/hooks"], Some("gateway.example.com")),
            (&[shop, "--webhook-url=hooks.example.com"], Some("hooks.example.com")),
            (&["--register-webhooks", "--webhook-url=https://[::1]:9443"], Some("::1")),
        ] {
            assert_eq!(asked(flags).as_deref(), expected, "{flags:?}");
        }
        if std::env::var_os("POD_NAMESPACE").is_none() {
            assert_eq!(asked(&[]), None);
        }
    }

    #[test]
    fn only_an_https_address_without_a_path_can_be_registered() {
        for url in ["https://127.0.0.1:9443", "https://127.0.0.1:9443/", "https://[::1]:9443", "https://host"] {
            assert_eq!(checked(url).unwrap(), url.trim_end_matches('/'));
        }
        for url in ["http://127.0.0.1:9443", "127.0.0.1:9443", "https://host/path", "https://host?x=y", "https://", ""]
        {
            assert!(checked(url).is_err(), "{url}");
        }
    }
}
