//! Arguments of `outrider serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args, ValueEnum};

use crate::certs::files::DEFAULT_DIR;
use crate::certs::lifetimes::CertificateLifetimes;
use crate::cli::fail_open::FailOpenArgs;
use crate::cli::kinds::KindArgs;
use crate::cli::namespace::namespace;
use crate::config::ProjectConfig;
use crate::go_duration::unsigned_duration;
use crate::logging;
use crate::server::{BindAddress, Limits, ServerOptions, memory};
use crate::validate::Validate;

/// Where the serving certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CertificateSource {
    /// tls.crt and tls.key in --cert-dir, as cert-manager writes them
    Files,
    /// Outrider's own authority: in a Secret with a cluster, in memory without one
    #[value(name = "self")]
    Own,
}

/// Arguments of `outrider serve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Component configuration (`ProjectConfig`); flags take precedence over its fields, see docs/configuration.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE", conflicts_with = "standalone")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace that Outrider runs in
    #[arg(long, env = "POD_NAMESPACE", hide_env_values = true, default_value = "outrider-system", value_parser = namespace)]
    pub namespace: String,
    /// Namespaces that Outrider never changes, comma-separated; kube-system, kube-public, kube-node-lease and its own
    /// are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// How long to keep serving after SIGTERM, until no more requests are sent to this replica; after Ctrl-C only if it is given
    /// [default: 10s; with --standalone: 0s]
    #[arg(long, value_name = "DURATION", value_parser = unsigned_duration)]
    pub drain_delay: Option<Duration>,
    /// How to handle unknown fields of --config, and with --standalone of sets and namespaces, as in kubectl's flag of
    /// the same name
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Validate::Strict)]
    pub validate: Validate,
    /// What is listened on
    #[command(flatten)]
    pub listen: ListenArgs,
    /// The serving certificate
    #[command(flatten)]
    pub certificates: CertificateArgs,
    /// The webhook configurations
    #[command(flatten)]
    pub registration: RegistrationArgs,
    /// The kinds
    #[command(flatten)]
    pub kinds: KindArgs,
    /// The controllers
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Without a cluster
    #[command(flatten)]
    pub standalone: StandaloneArgs,
    /// Logging
    #[command(flatten)]
    pub log: LogArgs,
    /// What --config says; what a flag says as well has gone there
    #[arg(skip)]
    pub file: ProjectConfig,
}

/// What is listened on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Listening")]
pub struct ListenArgs {
    /// Where webhooks are served over TLS
    #[arg(long, value_name = "ADDRESS", default_value = ":9443")]
    pub webhook_bind_address: BindAddress,
    /// Where /healthz, /livez and /readyz are served; 0 turns them off
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,
    /// Where /metrics is served; 0 turns it off
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,
    /// Serve metrics over TLS, with the serving certificate, to those alone whom the API server allows to get /metrics; needs
    /// create on tokenreviews and subjectaccessreviews
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", conflicts_with = "standalone")]
    pub metrics_secure: bool,
    /// Serve webhooks; without them only the controllers run
    #[arg(long, env = "ENABLE_WEBHOOKS", hide_env_values = true, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    pub enable_webhooks: bool,
    /// Offer HTTP/2 on the webhook port; the API server uses HTTP/1.1
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub enable_http2: bool,
    /// Require a client certificate that an authority in this file signed; a change of it counts from the next connection on
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
}

/// The serving certificate.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// Where the serving certificate comes from [default: files; with --standalone: self]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub certificates: Option<CertificateSource>,
    /// Directory with tls.crt and tls.key, and ca.crt if there is one; a change is picked up within seconds
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIR)]
    pub cert_dir: PathBuf,
    /// With files: the leader keeps ca.crt in the caBundles, in place of cert-manager's injector; with self it always keeps its own
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(), conflicts_with = "standalone",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub write_ca_bundle: bool,
    /// With self: life of the authority; its successor comes when two thirds are over
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = unsigned_duration)]
    pub self_signed_ca_duration: Duration,
    /// With self: life of a certificate that it signs; renewed when a third is left
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = unsigned_duration)]
    pub self_signed_leaf_duration: Duration,
    /// How long a new authority must have been in every caBundle before a certificate of it is served
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = unsigned_duration)]
    pub ca_bundle_settle: Duration,
    /// How long an authority that was replaced stays in the caBundles; with self at least the life of a certificate
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = unsigned_duration)]
    pub ca_bundle_overlap: Duration,
}

impl CertificateArgs {
    /// The durations.
    pub const fn lifetimes(&self) -> CertificateLifetimes {
        CertificateLifetimes {
            authority: self.self_signed_ca_duration,
            leaf: self.self_signed_leaf_duration,
            settle: self.ca_bundle_settle,
            overlap: self.ca_bundle_overlap,
        }
    }
}

/// The webhook configurations.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registration")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct RegistrationArgs {
    /// Create the webhook configurations and point them at --webhook-url: for running outside the cluster
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(), requires = "webhook_url",
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub register_webhooks: bool,
    /// Where the API server reaches this process, such as `https://127.0.0.1:9443`; without --register-webhooks, what configurations
    /// that you wrote yourself say
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<String>,
    /// Have the API server send only pods that the sets can match, by a matchCondition that the leader keeps;
    /// docs/narrowing.md lists the limits
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub narrow_webhooks: bool,
    /// Let an on-demand webhook entry be for all resources, which admission plugins of `OwnerReferencesPermissionEnforcement` need.
    /// The chart value guard.allResources sets it, as the policies about the service account must allow the entry too
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub on_demand_all_resources: bool,
    /// Serve admission plugins; without, AdmissionPlugin objects do nothing, and webhook entries that they had are withdrawn
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true")]
    pub enable_plugins: bool,
    /// Scaled to zero
    #[command(flatten)]
    pub fail_open: FailOpenArgs,
}

/// The controllers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Controllers")]
pub struct ControllerArgs {
    /// Controllers to run, comma-separated: * is all, -NAME removes one
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    pub controllers: Vec<String>,
    /// Run controllers in one replica only, the one that holds the lease
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub leader_elect: bool,
    /// Name of the lease
    #[arg(long, value_name = "NAME", default_value = crate::manager::lease::NAME)]
    pub leader_elect_resource_name: String,
    /// Namespace of the lease [default: --namespace]
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_namespace: Option<String>,
    /// How long other replicas wait for a leader that does not renew
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = unsigned_duration)]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew before it gives up
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = unsigned_duration)]
    pub leader_elect_renew_deadline: Duration,
    /// Pause between two tries
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = unsigned_duration)]
    pub leader_elect_retry_period: Duration,
}

/// Without a cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Without a cluster")]
pub struct StandaloneArgs {
    /// Serve without a cluster: sets and namespaces come from --manifests, the certificate is made at start
    #[arg(long)]
    pub standalone: bool,
    /// File or folder with manifests (.yaml, .yml, .json); may be repeated; read again on change
    #[arg(long, value_name = "PATH", requires = "standalone")]
    pub manifests: Vec<PathBuf>,
    /// Where the certificate of the authority is written, for curl --cacert [default: outrider-ca.crt in the temporary folder]
    #[arg(long, value_name = "FILE", requires = "standalone")]
    pub ca_file: Option<PathBuf>,
    /// Answer yes to what decisions would request from the cluster: whether a user may do something, whether an image may run. Without
    /// it such a review gets HTTP 503
    #[arg(long, requires = "standalone")]
    pub allow_all_questions: bool,
}

/// Logging.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// How log lines look [default: text in a terminal, else json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<logging::LogFormat>,
    /// error, warn, info, debug or trace; or a list such as info,kube=warn
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
}

const EXAMPLES: &str = "\
Examples:
  In a cluster, with a certificate that cert-manager wrote:
    outrider serve --cert-dir /certs --leader-elect --log-format json
  Outside, against the current kubeconfig:
    outrider serve --certificates self --register-webhooks --webhook-url https://127.0.0.1:9443
  Without a cluster:
    outrider serve --standalone --manifests sidecarsets/ --webhook-bind-address 127.0.0.1:9443

Exit codes: 0 ended in order after SIGTERM or SIGINT, 1 ended at once by a second signal, 2 could not start.";

impl ServeArgs {
    /// Where the certificate comes from, with the default resolved.
    pub fn certificate_source(&self) -> CertificateSource {
        let default = if self.standalone.standalone { CertificateSource::Own } else { CertificateSource::Files };
        self.certificates.certificates.unwrap_or(default)
    }

    /// Where and how the server listens.
    pub fn server_options(&self) -> ServerOptions {
        let listen = &self.listen;
        ServerOptions {
            webhook: if listen.enable_webhooks { listen.webhook_bind_address.clone() } else { BindAddress::Off },
            health: listen.health_probe_bind_address.clone(),
            metrics: listen.metrics_bind_address.clone(),
            enable_http2: listen.enable_http2,
            client_ca: listen.client_ca_file.clone(),
            limits: Limits { finish: self.ending().finish, ..Limits::within(memory::limit()) },
            probes: self.probe_paths(),
        }
    }

    /// The file that gets the authority's certificate.
    pub fn ca_file(&self) -> PathBuf {
        self.standalone.ca_file.clone().unwrap_or_else(|| std::env::temp_dir().join("outrider-ca.crt"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn serve(arguments: &[&str]) -> Result<ServeArgs, clap::Error> {
        let cli = Cli::try_parse_from(["outrider", "serve"].iter().chain(arguments))?;
        match cli.command {
            Command::Serve(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn boolean_flags_read_as_go_reads_them() {
        let table: [(&[&str], bool, bool); 4] = [
            (&[], true, false),
            (&["--enable-webhooks=false", "--leader-elect"], false, true),
            (&["--enable-webhooks", "--leader-elect=true"], true, true),
            (&["--enable-webhooks=true", "--leader-elect=false"], true, false),
        ];
        for (arguments, webhooks, leader) in table {
            let args = serve(arguments).unwrap();
            assert_eq!(
                (args.listen.enable_webhooks, args.controllers.leader_elect),
                (webhooks, leader),
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn lists_take_commas_and_a_leading_minus() {
        let args =
            serve(&["--controllers=-sidecarset,*", "--excluded-namespaces", "cert-manager,istio-system"]).unwrap();
        assert_eq!(args.controllers.controllers, ["-sidecarset", "*"]);
        assert_eq!(args.excluded_namespaces, ["cert-manager", "istio-system"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let table: [&[&str]; 6] = [
            &["--manifests", "sets/"],
            &["--standalone", "--kubeconfig", "config"],
            &["--drain-delay", "10"],
            &["--webhook-bind-address", "everywhere"],
            &["--certificates", "none"],
            &["--register-webhooks"],
        ];
        for arguments in table {
            assert!(serve(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn without_webhooks_the_port_stays_closed() {
        let options = serve(&["--enable-webhooks=false"]).unwrap().server_options();
        assert_eq!(options.webhook, BindAddress::Off);
    }
}
