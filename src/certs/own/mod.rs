//! A certificate authority in a Secret that all replicas share; each replica signs a short leaf for itself.

pub mod rotation;
mod secret;
mod store;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use self::rotation::{KnownAuthorities, Leaf, RotationStep, Signer, signer, step};
use self::secret::Authorities;
pub use self::store::{AuthorityStore, Storage};
use super::authority::{Authority, AuthorityError};
use super::ca_bundle;
use super::ca_bundle::publisher::Publisher;
use super::expiry::Alarm;
use super::lifetimes::CertificateLifetimes;
use super::resolver::Resolver;
use super::trust_anchor::{self, TrustAnchor};
use crate::answers::{NoAnswer, said};
use crate::metrics::Metrics;
use crate::names::CA_SECRET;
use crate::readiness::Gate;

const RETRY: Duration = Duration::from_secs(2);

/// Why there is no authority, or no leaf of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret cannot be read or written.
    #[error("secret {namespace}/{CA_SECRET}: {}", said(source))]
    Api {
        /// Namespace of the Secret.
        namespace: String,
        /// What happened.
        source: Box<kube::Error>,
    },
    /// The namespace is missing.
    #[error(
        "secret {namespace}/{CA_SECRET}: there is no namespace {namespace:?}; create it, or name another with --namespace"
    )]
    NoNamespace {
        /// Our own, as `--namespace` or the pod's service account says.
        namespace: String,
    },
    /// The API server did not answer.
    #[error("secret {CA_SECRET}: {0}")]
    Timeout(#[from] NoAnswer),
    /// Another replica made it, and it cannot be used.
    #[error("secret {namespace}/{CA_SECRET}, which another replica made: {reason}")]
    Unusable {
        /// Namespace of the Secret.
        namespace: String,
        /// What is wrong.
        reason: String,
    },
    /// The certificate cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The caBundles.
    #[error(transparent)]
    CaBundles(#[from] ca_bundle::Error),
}

/// What a replica signs for, and the recipients of the result.
pub struct Setup {
    /// DNS names and addresses of the leaf.
    pub names: Vec<String>,
    /// How long things live.
    pub lifetimes: CertificateLifetimes,
    /// Gets the leaf.
    pub resolver: Arc<Resolver>,
    /// Open once there is a leaf that the API server trusts.
    pub gate: Gate,
    /// Receives the authorities, as PEM, for the registration of webhooks.
    pub bundle: watch::Sender<Option<String>>,
    /// Counts errors, and holds the end of the authority.
    pub metrics: Metrics,
    /// Warns of what ends.
    pub alarm: Alarm,
}

/// Keeps a replica supplied with a leaf of the shared authority; in the leader also the authority and the caBundles.
pub struct OwnCertificates {
    setup: Setup,
    store: AuthorityStore,
    publisher: Publisher,
    /// Fingerprint of the authority whose leaf is served.
    signed_by: Option<String>,
    is_open: bool,
    /// The end of a leaf that expired while it was served, once it was reported.
    ended: Option<Timestamp>,
}

impl OwnCertificates {
    /// Asks nothing of the API server yet.
    pub const fn new(setup: Setup, store: AuthorityStore, publisher: Publisher) -> Self {
        Self { setup, store, publisher, signed_by: None, is_open: false, ended: None }
    }

    /// Works until it is dropped.
    pub async fn run(mut self) {
        loop {
            let check = self.setup.lifetimes.check();
            let pause = match self.check().await {
                Ok(true) => check,
                Ok(false) => check.min(RETRY),
                Err(error) => {
                    self.failed(&error);
                    check.min(RETRY)
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.publisher.leading_changes() => {}
            }
        }
    }

    fn failed(&mut self, error: &Error) {
        let ended = self.setup.resolver.not_after().filter(|end| *end < Timestamp::now());
        if let Some(end) = ended {
            if self.ended != ended {
                self.ended = ended;
                self.setup.metrics.certificate_errors.inc();
                tracing::error!(%error, "The serving certificate expired at {end}, and no other can be created");
            }
            self.setup.gate.note(format!("the certificate ended at {end}; {error}"));
        } else if self.is_open {
            tracing::warn!(%error, "Cannot check the certificate authority; the last good leaf stays");
            self.setup.gate.note(error.to_string());
        } else {
            tracing::error!(%error, "No serving certificate that the API server trusts yet, trying again");
            self.setup.gate.close(error.to_string());
        }
    }

    /// Checks everything once, and does what follows. False if something is under way that should not wait long.
    async fn check(&mut self) -> Result<bool, Error> {
        let now = Timestamp::now();
        let stored = self.store.get(now).await?;
        let Authorities { newest, previous } = &stored.authorities;
        let (newest, previous) = (newest.anchor(), previous.as_ref().map(Authority::anchor));
        let wanted: Vec<TrustAnchor> = [Some(newest), previous].into_iter().flatten().cloned().collect();
        trust_anchor::publish(&self.setup.bundle, &wanted);
        let is_changing = previous.is_some() || self.signed_by.as_deref() != Some(newest.fingerprint());
        let published = if self.publisher.leads() || is_changing || !self.is_open {
            self.publisher.publish(&wanted, self.is_open).await
        } else {
            Ok(())
        };
        // Also when the caBundles cannot be read: an expired leaf is of no use.
        let is_settled = published.is_ok() && self.publisher.are_settled([newest]);
        let known = KnownAuthorities { newest, previous, is_settled };
        self.sign(&stored.authorities, &known, now)?;
        published?;
        self.open(&wanted);
        self.check_expiry(newest, now).await;
        match step(&known, &self.setup.lifetimes, now) {
            RotationStep::Rotate if self.publisher.leads() => self.store.rotate(&stored, now).await?,
            RotationStep::Forget if self.publisher.leads() => self.store.forget(&stored).await?,
            _ => return Ok(self.is_open && !is_changing && self.publisher.is_complete()),
        }
        Ok(false)
    }

    fn sign(&mut self, authorities: &Authorities, known: &KnownAuthorities<'_>, now: Timestamp) -> Result<(), Error> {
        let Setup { resolver, lifetimes, names, .. } = &self.setup;
        let leaf = self.signed_by.as_deref().zip(resolver.not_after());
        let leaf = leaf.map(|(signed_by, not_after)| Leaf { signed_by, not_after });
        let authority = match (signer(known, leaf, lifetimes, now), &authorities.previous) {
            (Signer::Nobody, _) => return Ok(()),
            (Signer::Previous, Some(previous)) => previous,
            (Signer::Newest | Signer::Previous, _) => &authorities.newest,
        };
        let pair = authority.sign(names.clone(), lifetimes.leaf, now)?;
        let fingerprint = authority.anchor().fingerprint();
        tracing::info!(not_after = %pair.not_after(), authority = fingerprint, names = ?pair.names(), "Signed a serving certificate");
        resolver.swap(pair);
        self.signed_by = Some(fingerprint.to_owned());
        Ok(())
    }

    /// Opens the gate once the API server trusts what is served. It stays open then: a caBundle that is emptied later is
    /// the leader's business, and must not take all replicas away at once.
    fn open(&mut self, wanted: &[TrustAnchor]) {
        let Some(served) = wanted.iter().find(|anchor| self.signed_by.as_deref() == Some(anchor.fingerprint())) else {
            return;
        };
        let is_trusted = !self.publisher.guards_readiness() || self.publisher.are_settled([served]);
        if is_trusted || self.is_open {
            self.is_open = true;
            self.setup.gate.open();
        } else {
            self.setup.gate.close(self.publisher.obstacle(std::slice::from_ref(served)));
        }
    }

    async fn check_expiry(&mut self, newest: &TrustAnchor, now: Timestamp) {
        let Setup { alarm, metrics, resolver, .. } = &mut self.setup;
        metrics.ca_not_after.set(newest.not_after().as_second());
        metrics.ca_not_before.set(newest.not_before().as_second());
        metrics.certificate_checked.set(now.as_second());
        alarm.check("the certificate authority of Outrider", newest.not_before(), newest.not_after(), now).await;
        alarm.check_served(resolver, now).await;
    }
}
