//! What the commands that talk to a live cluster share.

mod objects;

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kube::Client;

use crate::answers::said;
use crate::go_duration::unsigned_duration;
use crate::manager::client::{Connection, Error, Selection};
use crate::visible::Visible;

use crate::cli::streams::{CommandOutcome, with_process_streams};

pub use self::objects::{deciding, of_openkruise, pod_of_cluster};

/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64;

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Send requests as this user, which your own rights must allow
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Send requests as a member of this group; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub groups: Vec<String>,
    /// How long a request to the API server may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = timeout)]
    pub request_timeout: Duration,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match unsigned_duration(text)? {
        Duration::ZERO => Err("a request takes some time".to_owned()),
        timeout => Ok(timeout),
    }
}

impl ClusterArgs {
    /// The flag that chooses a cluster or a user, if one is there.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--context", self.context.is_some()),
            ("--as", self.user.is_some()),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    fn selection(&self) -> Selection {
        Selection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            user: self.user.clone(),
            groups: self.groups.clone(),
            timeout: Some(self.request_timeout),
        }
    }
}

/// Consent to what a command is about to do.
#[derive(Debug, Clone, Args)]
pub struct ConsentArgs {
    /// Do not ask for confirmation on a terminal
    #[arg(short, long)]
    pub yes: bool,
}

/// What a command is about to do, and whether it asks for confirmation on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    /// In words, with a small letter.
    pub what: &'a str,
    /// Whether there is a question.
    pub asks: bool,
}

/// The output of a command: its result, its messages, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// For stdout.
    pub result: String,
    /// For stderr.
    pub aside: String,
    /// How it ended.
    pub outcome: CommandOutcome,
}

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    /// No client.
    #[error(transparent)]
    Client(#[from] Error),
    /// Why the API server did not answer.
    #[error("the API server at {place} cannot be reached: {why}")]
    Unreachable { place: String, why: String },
    /// Something else answered, such as a login page or a proxy.
    #[error(
        "what answers at {place} is no Kubernetes API server: its reply is no JSON; correct the address, or the proxy"
    )]
    NoApiServer { place: String },
    /// It does not accept the credentials.
    #[error("the API server at {place} does not accept the credentials: {why}")]
    Unauthorized { place: String, why: String },
}

/// Runs a command that needs a cluster. An error is reported with the address that was tried, and means bad
/// input.
pub fn run<E, F>(args: &ClusterArgs, work: impl FnOnce(Client) -> F) -> ExitCode
where
    E: std::error::Error,
    F: Future<Output = Result<CommandOutput, E>>,
{
    run_with_intent(args, None, work)
}

/// As [`run`], for a command that changes a cluster: names the cluster, and asks for confirmation on a terminal.
pub fn run_with_intent<E, F>(args: &ClusterArgs, intent: Option<Intent<'_>>, work: impl FnOnce(Client) -> F) -> ExitCode
where
    E: std::error::Error,
    F: Future<Output = Result<CommandOutput, E>>,
{
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return crate::cli::fail(&error),
    };
    runtime.block_on(async {
        let (client, place) = match connect(args).await {
            Ok(connected) => connected,
            Err(error) => return crate::cli::fail(&error),
        };
        if let Some(intent) = intent
            && let Some(ended) = refused(intent, &place)
        {
            return ended;
        }
        match work(client).await {
            Ok(told) => with_process_streams(|streams| {
                streams.stdout.write_all(told.result.as_bytes())?;
                streams.stderr.write_all(told.aside.as_bytes())?;
                if told.outcome == CommandOutcome::BadInput {
                    writeln!(streams.stderr, "note: the API server is {place}")?;
                }
                Ok(told.outcome)
            }),
            Err(error) => crate::cli::fail(&FailedAtPlace { place, error }),
        }
    })
}

/// Prints what is about to happen and where, and returns whether the user on a terminal declined.
fn refused(intent: Intent<'_>, place: &str) -> Option<ExitCode> {
    let mut stderr = Visible::new(io::stderr());
    // What cannot be said is done all the same: the way out of a locked cluster does not wait for a terminal.
    let _ = writeln!(stderr, "outrider: {}, at the API server {place}", intent.what);
    if !intent.asks || !io::stdin().is_terminal() {
        return None;
    }
    let _ = write!(stderr, "Go on? [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    // More than a line of a terminal holds is no answer.
    let read = io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer);
    if read.is_ok() && is_yes(&answer) {
        return None;
    }
    let _ = writeln!(stderr, "outrider: nothing was done");
    Some(ExitCode::from(crate::cli::BAD_INPUT))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[derive(Debug, thiserror::Error)]
#[error("{error}; the API server is {place}")]
struct FailedAtPlace<E: std::error::Error> {
    place: String,
    error: E,
}

/// The result of a request to the API server, which has an address.
fn asking<T>(args: &ClusterArgs, work: impl AsyncFnOnce(&Client, &str) -> Result<T, String>) -> Result<T, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let (client, place) = connect(args).await.map_err(|error| error.to_string())?;
        work(&client, &place).await
    })
}

/// A client whose API server has answered, and what it is called.
async fn connect(args: &ClusterArgs) -> Result<(Client, String), ConnectError> {
    let connection = Connection::select(&args.selection()).await?;
    let (client, place) = (connection.client()?, connection.place());
    // A user who may not read the version gets an answer all the same.
    match client.apiserver_version().await {
        Err(kube::Error::Api(status)) if is_page(&status.message) => Err(ConnectError::NoApiServer { place }),
        Err(kube::Error::Api(status)) if status.code == 401 => {
            Err(ConnectError::Unauthorized { place, why: status.message.clone() })
        }
        Err(kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => Err(ConnectError::NoApiServer { place }),
        Ok(_) | Err(kube::Error::Api(_)) => Ok((client, place)),
        Err(error) => Err(ConnectError::Unreachable { place, why: said(&error) }),
    }
}

/// Whether a reply is a page for people. The client takes a body that is no status as the message of one.
fn is_page(message: &str) -> bool {
    message.trim_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        for answer in ["y\n", "Y\n", "yes\n", " YES "] {
            assert!(is_yes(answer), "{answer:?}");
        }
        for answer in ["", "\n", "n\n", "yes please\n", "ye"] {
            assert!(!is_yes(answer), "{answer:?}");
        }
    }
}
