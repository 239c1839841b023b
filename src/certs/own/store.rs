//! Where the authorities are kept.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::Error;
use super::secret::{Authorities, previous, read, written};
use crate::answers::{code, in_time};
use crate::certs::authority::{Authority, AuthorityError};
use crate::certs::warnings::Warnings;
use crate::field_managers::{CERTIFICATES, posting};
use crate::metrics::Metrics;
use crate::names::CA_SECRET;

const COMMON_NAME: &str = "Outrider CA";

/// Where the authority may live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the Secret only.
    Secret,
    /// In memory while the namespace does not exist: for one process outside the cluster.
    SecretOrMemory,
}

/// The Secret, or what takes its place.
pub struct AuthorityStore {
    secrets: Api<Secret>,
    namespace: String,
    storage: Storage,
    lifetime: Duration,
    warnings: Warnings,
    metrics: Metrics,
    /// Certificate and key.
    in_memory: Option<(String, String)>,
}

/// What was read: the Secret, if that is where it was, and what it says.
pub struct Stored {
    secret: Option<Secret>,
    /// Those that were read, or made now.
    pub authorities: Authorities,
}

impl AuthorityStore {
    /// Of authorities that live this long.
    pub fn new(
        client: Client,
        namespace: &str,
        storage: Storage,
        lifetime: Duration,
        warnings: Warnings,
        metrics: Metrics,
    ) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, namespace: namespace.to_owned(), storage, lifetime, warnings, metrics, in_memory: None }
    }

    /// The authorities; a new one where there is none, or none that can sign. Of several replicas that make one at the same time,
    /// the API server lets the first win, and the others read it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&mut self, now: Timestamp) -> Result<Stored, Error> {
        match in_time(self.get_or_make(now)).await {
            Err(Error::NoNamespace { namespace }) if self.storage == Storage::SecretOrMemory => {
                if self.in_memory.is_none() {
                    tracing::warn!(
                        "No such namespace: the certificate authority stays in memory, and a restart makes another; to keep it over a restart, run \
                         `kubectl create namespace {namespace}`, or name one that exists with --namespace"
                    );
                }
                self.remembered(now)
            }
            stored => stored,
        }
    }

    fn remembered(&mut self, now: Timestamp) -> Result<Stored, Error> {
        let newest = match &self.in_memory {
            Some((certificate, key)) => Authority::from_pem(certificate, key)?,
            None => self.remember(self.create(now)?),
        };
        Ok(Stored { secret: None, authorities: Authorities { newest, previous: None } })
    }

    fn remember(&mut self, authority: Authority) -> Authority {
        self.in_memory = Some((authority.certificate_pem().to_owned(), authority.key_pem()));
        authority
    }

    fn create(&self, now: Timestamp) -> Result<Authority, AuthorityError> {
        Authority::create(COMMON_NAME, self.lifetime, now)
    }

    async fn get_or_make(&mut self, now: Timestamp) -> Result<Stored, Error> {
        let found = self.secrets.get_opt(CA_SECRET).await.map_err(|error| self.failed(error))?;
        let reason = match found.as_ref().map(|secret| read(secret, now)) {
            Some(Ok(authorities)) => {
                self.in_memory = None;
                return Ok(Stored { secret: found, authorities });
            }
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        // What was in memory while there was no namespace is in use.
        let newest = match &self.in_memory {
            Some((certificate, key)) => Authority::from_pem(certificate, key)?,
            None => self.create(now)?,
        };
        // Clients that still trust the one before are served by it until the new one is known.
        let previous = found.as_ref().and_then(|secret| previous(secret, now));
        let secret = written(&newest, previous.as_ref(), found.as_ref());
        let answer = match &found {
            Some(_) => self.secrets.replace(CA_SECRET, &posting(CERTIFICATES), &secret).await,
            None => self.secrets.create(&posting(CERTIFICATES), &secret).await,
        };
        match answer {
            Ok(secret) => {
                self.in_memory = None;
                self.report_new(reason.as_deref()).await;
                Ok(Stored { secret: Some(secret), authorities: Authorities { newest, previous } })
            }
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let secret = self.secrets.get(CA_SECRET).await.map_err(|error| self.failed(error))?;
                let namespace = self.namespace.clone();
                let authorities = read(&secret, now).map_err(|reason| Error::Unusable { namespace, reason })?;
                self.in_memory = None;
                Ok(Stored { secret: Some(secret), authorities })
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn report_new(&self, reason: Option<&str>) {
        let namespace = &self.namespace;
        let Some(reason) = reason else {
            tracing::info!(namespace, secret = CA_SECRET, "Made a certificate authority");
            return;
        };
        self.metrics.certificate_errors.inc();
        tracing::error!(
            namespace,
            secret = CA_SECRET,
            reason,
            "The certificate authority could not be used and was replaced"
        );
        let note =
            format!("secret {namespace}/{CA_SECRET} could not be used and was replaced by a new authority: {reason}");
        self.warnings.warn("AuthorityReplaced", &note).await;
    }

    /// A new authority takes the first place; the newest becomes the previous one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn rotate(&mut self, stored: &Stored, now: Timestamp) -> Result<(), Error> {
        let (newest, old) = (self.create(now)?, &stored.authorities.newest);
        match &stored.secret {
            Some(secret) => self.replace(&written(&newest, Some(old), Some(secret))).await?,
            None => drop(self.remember(newest)),
        }
        tracing::info!(old_ends = %old.anchor().not_after(), "Created a new certificate authority; it signs once every caBundle contains it");
        Ok(())
    }

    /// The previous authority is removed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn forget(&self, stored: &Stored) -> Result<(), Error> {
        let Some(secret) = &stored.secret else { return Ok(()) };
        self.replace(&written(&stored.authorities.newest, None, Some(secret))).await?;
        tracing::info!("Every caBundle contains the new certificate authority; the previous one no longer signs");
        Ok(())
    }

    async fn replace(&self, secret: &Secret) -> Result<(), Error> {
        let params = posting(CERTIFICATES);
        in_time(async {
            match self.secrets.replace(CA_SECRET, &params, secret).await {
                // After a write by another client the next pass decides again.
                Err(error) if code(&error) != Some(409) => Err(self.failed(error)),
                _ => Ok(()),
            }
        })
        .await
    }

    fn failed(&self, error: kube::Error) -> Error {
        let namespace = self.namespace.clone();
        match error {
            kube::Error::Api(status) if status.code == 404 => Error::NoNamespace { namespace },
            source => Error::Api { namespace, source: Box::new(source) },
        }
    }
}
