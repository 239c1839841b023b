//! Why one of Outrider's objects in the cluster could not be read or written.

use crate::answers::{self, NoAnswer, said, to_user};
use crate::names::VALIDATING;

/// Why a webhook configuration, a definition or an object that they are about is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("{name}: {}", said(source))]
    Api {
        /// Name of the object.
        name: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// Other clients write the object all the time.
    #[error("{name}: it changed while it was being written, {tries} times; try again")]
    Contended {
        /// Name of the object.
        name: &'static str,
        /// How often the write was tried.
        tries: usize,
    },
    /// A kind that is on has no definition yet.
    #[error(
        "there is no CustomResourceDefinition {0}; apply the chart, or `outrider manifests crds` with the same --enable-kinds"
    )]
    NoDefinition(String),
    /// A configuration that entries have to be written to does not exist.
    #[error("{0}: it is not there; apply the chart, or `outrider manifests webhooks`")]
    NoConfiguration(&'static str),
    /// There is no caBundle to copy into new entries.
    #[error("{VALIDATING} has no caBundle yet, which new entries begin with")]
    NoBundle,
    /// No answer in time.
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
    /// Another process is called, and answers.
    #[error("another process serves the webhooks at {url}; end it, or use another cluster")]
    Served {
        /// Host and port.
        url: String,
    },
    /// The cluster has replicas that a Service leads to.
    #[error(
        "Outrider is installed in this cluster: {0} calls a Service; use another cluster, or remove the installation first"
    )]
    Installed(&'static str),
    /// An entry cannot be written as JSON: a defect.
    #[error("an entry cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// An error of the client, about the object of this name.
    pub fn api(name: &str) -> impl Fn(kube::Error) -> Self + use<'_> {
        |source| Self::Api { name: name.to_owned(), source: Box::new(source) }
    }

    /// The status code of the API server's answer, if it is that which failed.
    pub fn code(&self) -> Option<u16> {
        let Self::Api { source, .. } = self else { return None };
        answers::code(source)
    }

    /// The message for the user of a command, which needs the rights that `needs` names.
    pub fn to_user(&self, needs: &str) -> String {
        match self {
            Self::Api { name, source } => format!("{name}: {}", to_user(source, needs)),
            other => other.to_string(),
        }
    }
}
