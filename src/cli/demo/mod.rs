//! `outrider demo`: the real server with built-in examples, and a pod that is sent to it.

mod client;
mod folder;
mod story;

use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use admission::registry::Phase;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::folder::Folder;
use self::story::Story;
use super::offline::OWN_NAMESPACE;
use super::serve::{Process, ServeError, follow_manifests};
use super::streams::CommandOutcome;
use crate::certs::local::{self, Local};
use crate::kinds::Kinds;
use crate::logging;
use crate::registry::registry;
use crate::server::{Addresses, BindAddress, Limits, ProbePaths, Server, ServerError, ServerOptions, Sources};
use crate::standalone::{Standalone, Validate};
use engine::offline::admit::{self, Reply, ReplyError};
use engine::pod::PODS;
use engine::snapshot::Exclusion;
use engine::yaml;

/// Arguments of `outrider demo`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// End after the example instead of serving on until Ctrl-C
    #[arg(long)]
    pub once: bool,
}

const EXAMPLES: &str = "\
Starts the server on free ports of this machine, needs no cluster, and changes nothing outside a temporary folder.

Examples:
  outrider demo          see a pod being injected, then try with curl
  outrider demo --once   see it and end

Exit codes: 0 fine, 2 the demo could not run.";

/// Why the demo could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Files, the runtime or the terminal.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The built-in examples.
    #[error(transparent)]
    Example(#[from] yaml::Error),
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] local::LocalError),
    /// The manifests.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The review could not be sent.
    #[error(transparent)]
    Client(#[from] client::ClientError),
    /// The reply could not be read.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// The server gave no verdict.
    #[error("the server answered {0}")]
    Unserved(http::StatusCode),
    /// A part of the demo is missing in this build.
    #[error("{0} is missing in this build")]
    Missing(&'static str),
}

const SETS: &str = include_str!("sidecarsets.yaml");
const POD: &str = include_str!("pod.yaml");
const NAMESPACE: &str = "shop";

/// Runs the command in the process.
pub fn execute(args: &DemoArgs) -> ExitCode {
    // The log reports when edited sets cannot be used.
    if let Err(error) = logging::init(Some(logging::LogFormat::Text), "warn") {
        return super::fail(&error);
    }
    let coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    match run(args, coloured, &mut io::stdout()) {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(DemoError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => super::fail(&error),
    }
}

/// Runs the command.
///
/// # Errors
/// [`DemoError`] when the demo cannot run.
pub fn run(args: &DemoArgs, coloured: bool, stdout: &mut dyn Write) -> Result<CommandOutcome, DemoError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before there are files: a signal without a handler would leave them behind.
        let mut ending = Ending::watch()?;
        let demo = Demo::prepare()?;
        let process = Process::default();
        let server = demo.server(&process).await?;
        let addresses = server.addresses();
        let serving = tokio::spawn(server.run(process.shutdown.clone()));
        stdout.write_all(demo.play(addresses, args.once, coloured).await?.as_bytes())?;
        stdout.flush()?;
        if !args.once {
            ending.signalled().await;
        }
        process.shutdown.begin(Duration::ZERO).await;
        let _ = serving.await;
        Ok(CommandOutcome::Fine)
    })
}

/// Ctrl-C, or SIGTERM.
struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    fn watch() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn signalled(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

struct Demo {
    folder: Folder,
    sets: PathBuf,
    review: PathBuf,
    path: String,
    pod: Value,
    body: Vec<u8>,
}

impl Demo {
    fn prepare() -> Result<Self, DemoError> {
        let pod = yaml::read(POD)?.pop().ok_or(DemoError::Missing("the example pod"))?.value;
        let registry = registry(&Kinds::default());
        let entry = admit::find(&registry, Phase::Mutating, "", "v1", "Pod")
            .ok_or(DemoError::Missing("the webhook of pods"))?;
        let pods = PODS.first().copied().ok_or(DemoError::Missing("the resource of pods"))?;
        let body = admit::review(pods, NAMESPACE, &pod);
        let folder = Folder::create()?;
        Ok(Self {
            sets: folder.write("sidecarsets.yaml", SETS)?,
            review: folder.write("pod-review.json", &body)?,
            path: entry.path.clone(),
            folder,
            pod,
            body,
        })
    }

    async fn server(&self, process: &Process) -> Result<Server<engine::snapshot::Snapshot>, DemoError> {
        let local = Local::serve(&process.resolver, NAMESPACE, &self.ca_file(), Timestamp::now())?;
        tokio::spawn(local.run());
        let snapshot = Arc::default();
        let exclusion = Exclusion::new(OWN_NAMESPACE, []);
        let paths = vec![self.sets.clone()];
        follow_manifests(
            Standalone::new(paths, exclusion, registry(&Kinds::default()), Validate::Strict),
            &snapshot,
            process,
        )?;
        let sources = Sources {
            registry: Arc::new(registry(&Kinds::default())),
            snapshot,
            resolver: Arc::clone(&process.resolver),
            readiness: process.readiness.clone(),
            freshness: process.freshness.clone(),
            metrics: process.metrics.clone(),
            scrapers: None,
            asker: None,
            known: None,
        };
        let free_port = BindAddress::One(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let options = ServerOptions {
            webhook: free_port.clone(),
            health: free_port.clone(),
            metrics: free_port,
            enable_http2: false,
            client_ca: None,
            probes: ProbePaths::default(),
            limits: Limits::default(),
        };
        Ok(Server::bind(options, sources).await?)
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.path("ca.crt")
    }

    /// Sends the pod and prints the reply.
    async fn play(&self, addresses: Addresses, once: bool, coloured: bool) -> Result<String, DemoError> {
        let address = addresses.webhook.ok_or(DemoError::Missing("the port of the webhooks"))?;
        let ca_pem = std::fs::read_to_string(self.ca_file())?;
        let (status, body) = client::post(address, &ca_pem, &self.path, self.body.clone()).await?;
        if !status.is_success() {
            return Err(DemoError::Unserved(status));
        }
        let reply = Reply::read(&body)?;
        let mut injected = self.pod.clone();
        if let Some(patch) = &reply.patch {
            patch.apply(&mut injected)?;
        }
        let story = Story {
            sets: &self.sets,
            review: &self.review,
            ca_file: &self.ca_file(),
            url: &format!("https://{address}{}", self.path),
            path: &self.path,
            addresses,
            before: &self.pod,
            once,
            after: &injected,
            reply: &reply,
        };
        Ok(story.text(coloured))
    }
}
