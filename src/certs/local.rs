//! A certificate for a server without a cluster: made at start, its authority written to a file for clients.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::authority::{Authority, AuthorityError};
use super::resolver::Resolver;
use crate::names::SERVICE;

/// Both end together; a server that runs longer without a cluster is restarted.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Why no local certificate could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The certificate could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The file with the authority's certificate could not be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The name that the API server asks the webhook service in `namespace` for (`k8s.io/apiserver/pkg/util/webhook/client.go`).
pub fn asked_name(namespace: &str) -> String {
    format!("{SERVICE}.{namespace}.svc")
}

/// The names under which a cluster reaches the webhook service in `namespace`.
pub fn service_names(namespace: &str) -> Vec<String> {
    let asked = asked_name(namespace);
    vec![format!("{asked}.cluster.local"), asked, format!("{SERVICE}.{namespace}")]
}

/// The names of this machine to itself.
pub fn loopback_names() -> Vec<String> {
    ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec()
}

/// Makes an authority and a leaf for the loopback and service names, has `resolver` serve it, and writes the authority's
/// certificate to `ca_file`, so that `curl --cacert` works. The keys stay in memory.
///
/// # Errors
/// [`LocalError`] when the file cannot be written or there is no randomness.
pub fn serve(resolver: &Resolver, namespace: &str, ca_file: &Path) -> Result<Authority, LocalError> {
    let now = Timestamp::now();
    let authority = Authority::create("Outrider local CA", LIFETIME, now)?;
    let names = loopback_names().into_iter().chain(service_names(namespace)).collect();
    resolver.swap(authority.sign(names, LIFETIME, now)?);
    std::fs::write(ca_file, authority.certificate_pem())
        .map_err(|source| LocalError::Write { path: ca_file.to_owned(), source })?;
    Ok(authority)
}
