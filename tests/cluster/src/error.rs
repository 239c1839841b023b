//! What can go wrong, reported so that the reader of a failed test knows what to do.

use std::fmt::{self, Display};
use std::io;
use std::path::Path;

/// Everything that fails in this crate.
///
/// Its `Debug` is the same text as its `Display`, because tests show errors through `unwrap`, and logs with their line
/// breaks escaped cannot be read.
#[derive(thiserror::Error)]
pub enum Error {
    /// A file, directory, socket or process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The operation and the path it was about.
        what: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// There is no Go toolchain to build the cluster's programs with.
    #[error(
        "cannot run `go`, which builds the cluster's programs ({0}): install Go (https://go.dev/doc/install), \
         or set KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver, kubectl, kube-controller-manager, \
         kube-scheduler, kwok, helm and promtool"
    )]
    NoGo(io::Error),
    /// `go` ran and failed.
    #[error("`go {command}` failed with {status}:\n{output}")]
    Go {
        /// Its arguments.
        command: String,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// `KUBEBUILDER_ASSETS` names a folder that lacks a program.
    #[error(
        "KUBEBUILDER_ASSETS={dir} holds no `{tool}`: it must hold etcd, kube-apiserver and kubectl (unset it to have them built)"
    )]
    Assets {
        /// The folder.
        dir: String,
        /// The program that is not there.
        tool: &'static str,
    },
    /// `KUBE_VERSION` is not a release.
    #[error("KUBE_VERSION={0}: want a Kubernetes release such as v1.35.2")]
    Version(String),
    /// No place for the cache is known.
    #[error("neither XDG_CACHE_HOME nor HOME is set: one of them must tell where built programs are kept")]
    NoCache,
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A component ended on its own.
    #[error("{name} ended by itself ({status}); the end of its log:\n{log}")]
    Ended {
        /// The component's name.
        name: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// Something did not happen in time.
    #[error("waited {seconds} s for {what}: {last}\n{logs}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long, in seconds.
        seconds: u64,
        /// What was seen last.
        last: String,
        /// The ends of the components' logs.
        logs: String,
    },
    /// kubectl ran and failed.
    #[error("`kubectl {command}` failed: {stderr}")]
    Kubectl {
        /// Its arguments.
        command: String,
        /// What it printed on stderr.
        stderr: String,
    },
    /// A component was named that this cluster does not have.
    #[error("this cluster has no component {0:?}")]
    NoComponent(String),
    /// A test that runs in a network of its own failed, or was not found.
    #[error("in a network of its own, the test {test} did not pass ({status})")]
    InNetwork {
        /// The test.
        test: String,
        /// How its process ended.
        status: String,
    },
    /// An audit log was asked for in a cluster that keeps none, or it cannot be read as one.
    #[error("audit log: {0}")]
    Audit(String),
    /// The background cluster could not be started or ended.
    #[error("{0}")]
    Background(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Error {
    /// Wraps `source` with the operation and the path it was about.
    pub(crate) fn io(verb: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("cannot {verb} {}", path.display()), source }
    }
}
