//! What the commands that talk to a live cluster share.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kube::Client;
use tokio::time::timeout;

use crate::manager::client::{Connection, Error};

use super::streams::{Outcome, with_process_streams};

/// The longest that the first question may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What a command has to tell: its result, what else there is to say, and how it ended.
#[derive(Debug)]
pub struct Told {
    /// For stdout.
    pub result: String,
    /// For stderr.
    pub aside: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    /// No client.
    #[error(transparent)]
    Client(#[from] Error),
    /// Nobody answers.
    #[error("the API server at {place} cannot be reached: {why}")]
    Unreachable { place: String, why: String },
    /// It does not know who asks.
    #[error("the API server at {place} does not accept the credentials: {why}")]
    Unauthorized { place: String, why: String },
}

/// Runs a command that talks to a cluster. Whatever keeps it from an answer is told with the address that was tried, and means bad
/// input.
pub fn run<E, F>(args: &ClusterArgs, work: impl FnOnce(Client) -> F) -> ExitCode
where
    E: std::error::Error,
    F: Future<Output = Result<Told, E>>,
{
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::fail(&error),
    };
    runtime.block_on(async {
        let (client, place) = match connect(args).await {
            Ok(connected) => connected,
            Err(error) => return super::fail(&error),
        };
        match work(client).await {
            Ok(told) => with_process_streams(|streams| {
                streams.stdout.write_all(told.result.as_bytes())?;
                streams.stderr.write_all(told.aside.as_bytes())?;
                if told.outcome == Outcome::BadInput {
                    writeln!(streams.stderr, "outrider: the API server asked was {place}")?;
                }
                Ok(told.outcome)
            }),
            Err(error) => super::fail(&Failed { place, error }),
        }
    })
}

#[derive(Debug, thiserror::Error)]
#[error("{error}; the API server asked was {place}")]
struct Failed<E: std::error::Error> {
    place: String,
    error: E,
}

/// A client whose API server has answered, and what it is called.
async fn connect(args: &ClusterArgs) -> Result<(Client, String), NoAnswer> {
    let connection = Connection::find(args.kubeconfig.as_deref()).await?;
    let (client, place) = (connection.client()?, connection.place());
    // Whoever may not read the version gets an answer all the same.
    match timeout(REQUEST_TIMEOUT, client.apiserver_version()).await {
        Ok(Err(kube::Error::Api(status))) if status.code == 401 => {
            Err(NoAnswer::Unauthorized { place, why: status.message.clone() })
        }
        Ok(Ok(_) | Err(kube::Error::Api(_))) => Ok((client, place)),
        Ok(Err(error)) => Err(NoAnswer::Unreachable { place, why: error.to_string() }),
        Err(_) => {
            let why = format!("no answer within {} s", REQUEST_TIMEOUT.as_secs());
            Err(NoAnswer::Unreachable { place, why })
        }
    }
}
