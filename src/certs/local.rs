//! A certificate for a server without a cluster: made at start, its authority written to a file for clients.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::authority::{Authority, AuthorityError};
use super::lifetimes::signed;
use super::resolver::Resolver;
use crate::logging::throttle::LogThrottle;
use crate::names::SERVICE;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Long, as clients have its certificate from a file.
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3650);

const LEAF_LIFE: Duration = DAY.saturating_mul(90);

/// How often the certificate is checked for renewal. Not one long sleep: timers stop while a machine is
/// suspended, certificates do not.
const CHECK: Duration = Duration::from_secs(60);

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

/// An authority and a leaf for the loopback and service names. The keys stay in memory.
pub struct Local {
    authority: Authority,
    names: Vec<String>,
    ca_file: PathBuf,
    resolver: Arc<Resolver>,
}

impl Local {
    /// Makes both, has `resolver` serve the leaf, and writes the authority's certificate to `ca_file`, so that `curl --cacert`
    /// works.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written or there is no randomness.
    pub fn serve(
        resolver: &Arc<Resolver>,
        namespace: &str,
        ca_file: &Path,
        now: Timestamp,
    ) -> Result<Self, LocalError> {
        let local = Self {
            authority: create(now)?,
            names: loopback_names().into_iter().chain(service_names(namespace)).collect(),
            ca_file: ca_file.to_owned(),
            resolver: Arc::clone(resolver),
        };
        local.sign(now)?;
        local.write(&local.authority)?;
        Ok(local)
    }

    /// The authority.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    fn sign(&self, now: Timestamp) -> Result<(), LocalError> {
        self.resolver.swap(self.authority.sign(self.names.clone(), LEAF_LIFE, now)?);
        Ok(())
    }

    fn write(&self, authority: &Authority) -> Result<(), LocalError> {
        std::fs::write(&self.ca_file, authority.certificate_pem())
            .map_err(|source| LocalError::Write { path: self.ca_file.clone(), source })
    }

    /// Signs another leaf when a third of the life is left, and before that makes another authority if this one has no time for
    /// it. Returns whether there was anything to do.
    ///
    /// # Errors
    /// As [`Self::serve`]. What is served stays then.
    pub fn renew(&mut self, now: Timestamp) -> Result<bool, LocalError> {
        let left = |end: Timestamp| end.duration_since(now);
        if self.resolver.not_after().is_some_and(|end| left(end) >= signed(LEAF_LIFE) / 3) {
            return Ok(false);
        }
        if left(self.authority.anchor().not_after()) < signed(LEAF_LIFE) {
            let authority = create(now)?;
            // Clients that read the file from now on are to trust what is served from now on.
            self.write(&authority)?;
            self.authority = authority;
        }
        self.sign(now)?;
        Ok(true)
    }

    /// Renews until it is dropped.
    pub async fn run(mut self) {
        let mut throttle = LogThrottle::default();
        loop {
            tokio::time::sleep(CHECK).await;
            match self.renew(Timestamp::now()) {
                Ok(true) => {
                    throttle.over();
                    tracing::info!(ca_file = %self.ca_file.display(), "Certificate renewed");
                }
                Err(error) if throttle.is_news(&error) => {
                    tracing::error!(%error, "The certificate cannot be renewed, trying again");
                }
                Ok(false) | Err(_) => {}
            }
        }
    }
}

fn create(now: Timestamp) -> Result<Authority, AuthorityError> {
    Authority::create("Outrider local CA", AUTHORITY_LIFE, now)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn the_certificate_of_a_server_without_a_cluster_is_renewed() {
        let (dir, resolver) = (tempfile::tempdir().unwrap(), Resolver::empty());
        let ca_file = dir.path().join("ca.crt");
        let start = Timestamp::now();
        let after = |days: i64| start + SignedDuration::from_hours(24 * days);
        let mut local = Local::serve(&resolver, "shop", &ca_file, start).unwrap();
        let first = local.authority().anchor().clone();
        assert!(!local.renew(after(59)).unwrap());
        assert!(local.renew(after(61)).unwrap() && !local.renew(after(62)).unwrap());
        assert_eq!((local.authority().anchor(), resolver.not_after()), (&first, Some(whole(after(61 + 90)))));

        std::fs::remove_file(&ca_file).unwrap();
        std::fs::create_dir(&ca_file).unwrap();
        let served = resolver.not_after();
        assert!(local.renew(after(3600)).is_err());
        assert_eq!(resolver.not_after(), served, "it stays until clients can trust another");
        std::fs::remove_dir(&ca_file).unwrap();
        assert!(local.renew(after(3600)).unwrap());
        assert_ne!(*local.authority().anchor(), first);
        assert_eq!(std::fs::read_to_string(&ca_file).unwrap(), local.authority().certificate_pem());
        assert_eq!(resolver.not_after(), Some(whole(after(3690))));
    }

    /// As certificates have it.
    fn whole(time: Timestamp) -> Timestamp {
        Timestamp::from_second(time.as_second()).unwrap()
    }
}
