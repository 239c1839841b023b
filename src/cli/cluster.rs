//! What the commands that talk to a live cluster share.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kube::Client;

use crate::manager::client::{Connection, Error};

use super::streams::{Outcome, with_process_streams};

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl ClusterArgs {
    /// A client of the cluster.
    ///
    /// # Errors
    /// [`Error`] when there is none, or it cannot be used.
    pub async fn client(&self) -> Result<Client, Error> {
        Connection::find(self.kubeconfig.as_deref()).await?.client()
    }
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

/// Runs a command that talks to a cluster; an error is told, and means bad input.
pub fn run<E: std::error::Error>(work: impl Future<Output = Result<Told, E>>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::fail(&error),
    };
    match runtime.block_on(work) {
        Ok(told) => with_process_streams(|streams| {
            streams.stdout.write_all(told.result.as_bytes())?;
            streams.stderr.write_all(told.aside.as_bytes())?;
            Ok(told.outcome)
        }),
        Err(error) => super::fail(&error),
    }
}
