//! Everything that can stop a comparison. All of it exits with 2: no figure is better than a wrong one.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("cannot run `wrk`: {0}; install it, for example with: apt-get install wrk")]
    WrkMissing(io::Error),
    #[error("`wrk` failed against the {server}: {found}")]
    WrkFailed { server: String, found: String },
    #[error("the {server} did not answer every request of row {row} properly: {found}; nothing was measured")]
    BadReplies { server: String, row: String, found: String },
    #[error("{path} does not exist; build it with: cargo build --release -p {package}")]
    ServerMissing { path: PathBuf, package: String },
    #[error("cannot start the {server} ({command}): {source}")]
    Start { server: String, command: String, source: io::Error },
    #[error("the {server} ended before it was ready ({status}); its output:\n{output}")]
    Ended { server: String, status: String, output: String },
    #[error("the {server} was not ready within {seconds} s (last: {last}); its output:\n{output}")]
    NotReady { server: String, seconds: u64, last: String, output: String },
    #[error("row {row}: the reply of the {server} is not what the row expects: {found}")]
    WrongReply { row: String, server: String, found: String },
    #[error("cannot ask {address}: {found}")]
    Http { address: String, found: String },
    #[error("cannot read or write {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot read {field} in {path}: found {found:?}")]
    Proc { path: PathBuf, field: &'static str, found: String },
    #[error("no row is called {found:?}; rows: {known}")]
    UnknownRow { found: String, known: String },
    #[error("the recorded review cannot be used: {0}")]
    Review(String),
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot encode JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("stopped by {0}")]
    Stopped(&'static str),
}

impl BenchError {
    /// For `map_err` on file operations.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
