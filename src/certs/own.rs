//! A certificate authority in a Secret that all replicas share; each replica signs a short leaf for itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;

use crate::certs::authority::{Authority, AuthorityError};
use crate::certs::pair::{PairError, ServingPair};
use crate::certs::resolver::Resolver;
use crate::server::Gate;

/// Name of the Secret, of type `kubernetes.io/tls`.
pub const CA_SECRET: &str = "outrider-ca";

const COMMON_NAME: &str = "Outrider CA";
/// Ten years: this form does not rotate the authority, it replaces one that has ended.
const CA_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
const LEAF_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A third of the leaf's life is left when it is renewed: two days for the API server to be reached.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(56);

/// How often the wall clock and the Secret are looked at. Not one long sleep until the renewal: timers stand still while a
/// machine is suspended, certificates do not.
const CHECK: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(2);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no authority, or no leaf of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Secret cannot be read or written.
    #[error("secret {namespace}/{CA_SECRET}: {source}")]
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
        /// The namespace.
        namespace: String,
    },
    /// The API server did not answer.
    #[error("secret {CA_SECRET}: the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// The certificate cannot be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// Keeps `resolver` supplied with a leaf of the shared authority.
pub struct OwnCertificates {
    secrets: Api<Secret>,
    namespace: String,
    names: Vec<String>,
    resolver: Arc<Resolver>,
    gate: Gate,
    bundle: watch::Sender<Option<String>>,
    storage: Storage,
}

/// Where the authority may live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In the Secret only.
    Secret,
    /// In memory while the namespace does not exist: for one process outside the cluster.
    SecretOrMemory,
}

#[derive(Default)]
struct State {
    /// The authority whose leaf is served.
    signed_by: Option<String>,
    in_memory: Option<Authority>,
}

impl OwnCertificates {
    /// For leaves with these DNS names and addresses. The gate is open while there is a leaf; the authority's certificate is
    /// told to `bundle`, for the webhook configurations.
    pub fn new(
        client: Client,
        namespace: &str,
        names: Vec<String>,
        resolver: Arc<Resolver>,
        gate: Gate,
        bundle: watch::Sender<Option<String>>,
        storage: Storage,
    ) -> Self {
        let secrets = Api::namespaced(client, namespace);
        Self { secrets, namespace: namespace.to_owned(), names, resolver, gate, bundle, storage }
    }

    /// Works until it is dropped.
    pub async fn run(self) {
        let mut state = State::default();
        loop {
            let check = tokio::time::timeout(REQUEST_TIMEOUT, self.check(&mut state));
            let pause = match check.await.unwrap_or(Err(Error::Timeout)) {
                Ok(()) => CHECK,
                Err(error) if self.resolver.current().is_some() => {
                    tracing::warn!(%error, "Cannot check the certificate authority; the last good leaf stays");
                    self.gate.note(error.to_string());
                    CHECK
                }
                Err(error) => {
                    tracing::error!(%error, "No serving certificate yet, trying again");
                    self.gate.close(error.to_string());
                    RETRY
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn check(&self, state: &mut State) -> Result<(), Error> {
        let now = Timestamp::now();
        let stored = match self.authority(now).await {
            Err(Error::NoNamespace { namespace }) if self.storage == Storage::SecretOrMemory => {
                if state.in_memory.is_none() {
                    tracing::warn!(namespace, "No such namespace: the certificate authority stays in memory");
                    state.in_memory = Some(Authority::create(COMMON_NAME, CA_LIFETIME, now)?);
                }
                None
            }
            authority => Some(authority?),
        };
        let Some(authority) = stored.as_ref().or(state.in_memory.as_ref()) else { return Ok(()) };
        let certificate = authority.certificate_pem().to_owned();
        let same = state.signed_by.as_ref() == Some(&certificate);
        if !same || self.resolver.not_after().is_none_or(|end| is_due(end, now)) {
            let pair = authority.sign(self.names.clone(), LEAF_LIFETIME, now)?;
            tracing::info!(not_after = %pair.not_after(), names = ?pair.names(), "Signed a serving certificate");
            self.resolver.swap(pair);
            state.signed_by = Some(certificate.clone());
        }
        let news = Some(certificate);
        self.bundle.send_if_modified(|bundle| {
            let changed = *bundle != news;
            *bundle = news;
            changed
        });
        self.gate.open();
        Ok(())
    }

    /// The authority in the Secret; a new one where there is none, or none that can sign. Of several replicas that make one
    /// at the same time, the API server lets the first win, and the others read it.
    async fn authority(&self, now: Timestamp) -> Result<Authority, Error> {
        let stored = self.secrets.get_opt(CA_SECRET).await.map_err(|error| self.failed(error))?;
        let unusable = match stored.as_ref().map(|secret| read(secret, now)) {
            Some(Ok(authority)) => return Ok(authority),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        let fresh = Authority::create(COMMON_NAME, CA_LIFETIME, now)?;
        let secret = secret(&fresh, stored.as_ref());
        let written = match &unusable {
            Some(reason) => {
                tracing::error!(reason, "The certificate authority in the Secret cannot be used and is replaced");
                self.secrets.replace(CA_SECRET, &PostParams::default(), &secret).await
            }
            None => self.secrets.create(&PostParams::default(), &secret).await,
        };
        match written {
            Ok(_) => {
                tracing::info!(namespace = self.namespace, secret = CA_SECRET, "Made a certificate authority");
                Ok(fresh)
            }
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let secret = self.secrets.get(CA_SECRET).await.map_err(|error| self.failed(error))?;
                read(&secret, now).map_err(|reason| AuthorityError::Unusable(PairError::Certificate(reason)).into())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: kube::Error) -> Error {
        let namespace = self.namespace.clone();
        match error {
            kube::Error::Api(status) if status.code == 404 => Error::NoNamespace { namespace },
            source => Error::Api { namespace, source: Box::new(source) },
        }
    }
}

fn is_due(not_after: Timestamp, now: Timestamp) -> bool {
    not_after.duration_since(now) < RENEW_BEFORE
}

/// The authority in a Secret, or why it cannot be used.
fn read(secret: &Secret, now: Timestamp) -> Result<Authority, String> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key)).map(|ByteString(bytes)| bytes.clone());
        String::from_utf8(bytes.ok_or_else(|| format!("{key} is missing"))?).map_err(|_| format!("{key} is not PEM"))
    };
    let (certificate, key) = (text("tls.crt")?, text("tls.key")?);
    let checked =
        ServingPair::from_pem(certificate.as_bytes(), key.as_bytes(), now).map_err(|error| error.to_string())?;
    if is_due(checked.not_after(), now) {
        return Err(format!("it ends at {}", checked.not_after()));
    }
    Authority::from_pem(&certificate, &key).map_err(|error| error.to_string())
}

/// A Secret with the authority; the version of the one that it replaces keeps two replicas from replacing each other's.
fn secret(authority: &Authority, replaced: Option<&Secret>) -> Secret {
    let entry = |key: &str, pem: &str| (key.to_owned(), ByteString(pem.as_bytes().to_vec()));
    let data = BTreeMap::from([entry("tls.crt", authority.certificate_pem()), entry("tls.key", &authority.key_pem())]);
    Secret {
        metadata: ObjectMeta {
            name: Some(CA_SECRET.to_owned()),
            resource_version: replaced.and_then(|secret| secret.metadata.resource_version.clone()),
            ..ObjectMeta::default()
        },
        // The type of a Secret cannot be changed.
        type_: replaced.map_or_else(|| Some("kubernetes.io/tls".to_owned()), |secret| secret.type_.clone()),
        data: Some(data),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::now()
    }

    #[test]
    fn an_authority_survives_its_secret_and_signs_for_every_name() {
        let made = Authority::create(COMMON_NAME, CA_LIFETIME, now()).unwrap();
        let read = read(&secret(&made, None), now()).unwrap();
        assert_eq!(read.certificate_pem(), made.certificate_pem());
        let pair = read.sign(vec!["outrider-webhook.ns.svc".to_owned(), "127.0.0.1".to_owned()], LEAF_LIFETIME, now());
        assert_eq!(pair.unwrap().names(), ["outrider-webhook.ns.svc", "127.0.0.1"]);
    }

    #[test]
    fn what_cannot_sign_is_named() {
        let good = secret(&Authority::create(COMMON_NAME, CA_LIFETIME, now()).unwrap(), None);
        let other = secret(&Authority::create(COMMON_NAME, CA_LIFETIME, now()).unwrap(), None);
        let with = |key: &str, value: Option<ByteString>| {
            let mut secret = good.clone();
            let data = secret.data.as_mut().unwrap();
            match value {
                Some(value) => data.insert(key.to_owned(), value),
                None => data.remove(key),
            };
            secret
        };
        let foreign = other.data.as_ref().unwrap()["tls.key"].clone();
        let ended = now() + SignedDuration::from_hours(11 * 365 * 24);
        let cases = [
            (with("tls.key", None), now(), "tls.key is missing"),
            (with("tls.crt", Some(ByteString(vec![0xff]))), now(), "tls.crt is not PEM"),
            (with("tls.key", Some(foreign)), now(), "the private key does not belong to the certificate"),
            (good.clone(), ended, "the certificate ended at"),
        ];
        for (secret, now, expected) in cases {
            let reason = read(&secret, now).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    #[test]
    fn a_leaf_is_renewed_with_a_third_of_its_life_left() {
        let end = now();
        assert!(!is_due(end, end - SignedDuration::from_hours(57)));
        assert!(is_due(end, end - SignedDuration::from_hours(55)));
        assert!(is_due(end, end + SignedDuration::from_hours(1)));
    }

    #[test]
    fn a_replacement_carries_the_version_and_type_of_what_it_replaces() {
        let authority = Authority::create(COMMON_NAME, CA_LIFETIME, now()).unwrap();
        let mut old = secret(&authority, None);
        old.metadata.resource_version = Some("7".to_owned());
        old.type_ = Some("Opaque".to_owned());
        let new = secret(&authority, Some(&old));
        assert_eq!((new.metadata.resource_version.as_deref(), new.type_.as_deref()), (Some("7"), Some("Opaque")));
    }
}
