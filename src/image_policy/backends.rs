//! The backends of the Secret, and what they are asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use admission::Known;
use admission::question::{ImageBackend, ImageVerdict, Images};
use bytes::Bytes;
use http::{Uri, uri};
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use ring::digest::{Context, SHA256};
use serde_json::json;
use tokio::sync::{OnceCell, watch};
use tokio::time::sleep;

use super::cache::{Cache, Digest};
use super::exchange::{self, NoVerdict};
use super::kubeconfig;
use crate::logging::throttle::LogThrottle;
use crate::names::IMAGE_POLICY_SECRET;

/// Tries, as many as the API server's own plugin has (`DefaultRetryBackoffWithInitialDelay` of k8s.io/apiserver/pkg/util/webhook).
const TRIES: u32 = 5;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// The backends, as the Secret has them; none until it has been read.
#[derive(Debug)]
pub struct ImageBackends {
    known: watch::Sender<Option<Arc<Named>>>,
    /// Of backends that give no verdict, there may be one for each pod.
    throttle: Mutex<LogThrottle>,
}

impl Default for ImageBackends {
    fn default() -> Self {
        Self { known: watch::Sender::new(None), throttle: Mutex::default() }
    }
}

/// The changes of the Secret.
#[derive(Debug)]
pub struct BackendChanges(watch::Receiver<Option<Arc<Named>>>);

impl BackendChanges {
    /// Waits for the next one; for ever where there will be none.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether a backend can be asked, as far as its kubeconfig and what this process heard of it say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendState {
    /// The Secret has not been read.
    Unread,
    /// It cannot: why.
    Faulty(String),
    /// It gave no verdict when it was last asked: why.
    Silent(String),
    /// It can, if it answers.
    Usable,
}

/// One form of the Secret. What was said by the backends of another does not count.
#[derive(Debug, Default)]
struct Named {
    /// By their keys; none where there is no Secret.
    of: Option<BTreeMap<String, Slot>>,
    cache: Cache,
}

/// A kubeconfig, and what is made of it when it is first needed.
struct Slot {
    text: String,
    made: OnceCell<Result<Backend, String>>,
    fault: OnceCell<Option<String>>,
    /// Why there was no verdict when it was last asked.
    silence: Mutex<Option<String>>,
}

/// The text holds credentials.
impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Backend {
    client: Client,
    path: Uri,
    namespace: Option<String>,
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ImageBackends {
    /// The Secret has these kubeconfigs, or there is no Secret.
    pub fn are(&self, kubeconfigs: Option<BTreeMap<String, String>>) {
        if self.known.borrow().as_deref().is_some_and(|known| known.is_of(kubeconfigs.as_ref())) {
            return;
        }
        let slot = |(key, text)| {
            (key, Slot { text, made: OnceCell::new(), fault: OnceCell::new(), silence: Mutex::default() })
        };
        let of = kubeconfigs.map(|all| all.into_iter().map(slot).collect());
        self.known.send_replace(Some(Arc::new(Named { of, cache: Cache::default() })));
    }

    /// The Secret is not read any more.
    pub fn are_unknown(&self) {
        self.known.send_replace(None);
    }

    /// Every change of the Secret from now on.
    pub fn changes(&self) -> BackendChanges {
        BackendChanges(self.known.subscribe())
    }

    /// Whether the backend whose kubeconfig has this key can be asked. Sends nothing.
    pub async fn state(&self, key: &str) -> BackendState {
        let known = self.known.borrow().clone();
        match known {
            None => BackendState::Unread,
            Some(named) => match named.fault(key).await {
                Some(why) => BackendState::Faulty(why),
                None => named.silence(key).map_or(BackendState::Usable, BackendState::Silent),
            },
        }
    }

    /// Asks the backend, unless it said before what still counts. Takes as long as it takes: who waits decides for how long.
    pub async fn ask(&self, images: &Images) -> Known {
        let mut waiting = SentReview { backends: self, name: &images.backend.name, is_over: false };
        let known = self.answer(images).await;
        waiting.is_over = true;
        if let Known::Failed(why) = &known {
            self.report(waiting.name, why);
        }
        known
    }

    async fn answer(&self, images: &Images) -> Known {
        let mut known = self.known.subscribe();
        let named = match known.wait_for(Option::is_some).await {
            Ok(named) => named.clone().unwrap_or_default(),
            Err(_) => return Known::Failed("the image policy backend is not known".to_owned()),
        };
        let observed = || self.changed();
        named.ask(images, observed).await.map_or_else(Known::Failed, Known::Images)
    }

    /// Whether there were verdicts has changed: who follows the backends is to know.
    fn changed(&self) {
        self.known.send_modify(|_| ());
    }

    /// There was no verdict.
    fn report(&self, backend: &str, error: &str) {
        let known = self.known.borrow().clone();
        if known.is_some_and(|named| named.is_silent(backend, error)) {
            self.changed();
        }
        if self.throttle.lock().unwrap_or_else(PoisonError::into_inner).is_news(&error) {
            tracing::warn!(backend, error, "An image policy backend gave no verdict");
        }
    }
}

/// A question that was sent. Where it ends without an answer, the review that waited for it was out of time.
struct SentReview<'b> {
    backends: &'b ImageBackends,
    name: &'b str,
    is_over: bool,
}

impl Drop for SentReview<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.backends.report(self.name, "no answer within the time-out of the review");
        }
    }
}

impl Named {
    fn is_of(&self, kubeconfigs: Option<&BTreeMap<String, String>>) -> bool {
        let texts = |of: &BTreeMap<String, Slot>| {
            kubeconfigs.is_some_and(|all| of.iter().map(|(key, slot)| (key, &slot.text)).eq(all))
        };
        self.of.as_ref().map_or_else(|| kubeconfigs.is_none(), texts)
    }

    fn slot(&self, key: &str) -> Result<&Slot, String> {
        let Some(of) = &self.of else {
            return Err(format!("there is no Secret {IMAGE_POLICY_SECRET} in the namespace of Outrider"));
        };
        let lacking = || format!("the Secret {IMAGE_POLICY_SECRET} in the namespace of Outrider has no key {key:?}");
        of.get(key).ok_or_else(lacking)
    }

    async fn fault(&self, key: &str) -> Option<String> {
        let slot = match self.slot(key) {
            Ok(slot) => slot,
            Err(why) => return Some(why),
        };
        // Not the client that asks: that one sends its requests from where it was made, and the leader's work has threads of its own.
        let fault = slot.fault.get_or_init(|| async { Backend::of(&slot.text).await.err() }).await;
        fault.as_ref().map(|why| in_key(key, why))
    }

    /// Why there was no verdict when the backend was last asked.
    fn silence(&self, key: &str) -> Option<String> {
        self.slot(key).ok()?.silence.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that there was no verdict. Returns whether there was one before.
    fn is_silent(&self, key: &str, why: &str) -> bool {
        let Ok(slot) = self.slot(key) else { return false };
        slot.silence.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_owned()).is_none()
    }

    async fn ask(&self, images: &Images, observed: impl Fn()) -> Result<Arc<ImageVerdict>, String> {
        let key = &images.backend.name;
        let unknown = |why: String| format!("the image policy backend is not known: {why}");
        let slot = self.slot(key).map_err(unknown)?;
        let made = slot.made.get_or_init(|| Backend::of(&slot.text)).await;
        let backend = made.as_ref().map_err(|why| unknown(in_key(key, why)))?;
        // One that is to review its own pods could not start.
        if backend.namespace.as_deref() == Some(images.namespace.as_str()) {
            return Ok(Arc::new(ImageVerdict { allowed: true, ..ImageVerdict::default() }));
        }
        let review = exchange::review(images)?;
        let digest = digest_of(&images.backend, &review);
        if let Some(verdict) = self.cache.get(&digest, Instant::now()) {
            return Ok(verdict);
        }
        let verdict = Arc::new(backend.ask(&images.backend, &review).await.map_err(|failure| failure.why)?);
        if slot.silence.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            observed();
        }
        let ttl = if verdict.allowed { images.backend.allow_ttl } else { images.backend.deny_ttl };
        if ttl > 0 {
            self.cache.keep(digest, &verdict, Duration::from_secs(ttl.into()), Instant::now());
        }
        Ok(verdict)
    }
}

fn in_key(key: &str, why: &str) -> String {
    format!("Secret {IMAGE_POLICY_SECRET}, key {key:?}: {why}")
}

/// Objects with other TTLs keep verdicts of their own.
fn digest_of(backend: &ImageBackend, review: &[u8]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(json!([backend.name, backend.allow_ttl, backend.deny_ttl]).to_string().as_bytes());
    context.update(review);
    let mut found = Digest::default();
    found.copy_from_slice(context.finish().as_ref());
    found
}

impl Backend {
    async fn of(text: &str) -> Result<Self, String> {
        let kubeconfig = kubeconfig::read(text)?;
        let made = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = made.map_err(|error| error.to_string())?;
        if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "cluster.certificate-authority-data has no certificate: give the PEM of the authority, in base64"
                    .to_owned(),
            );
        }
        // The path of the URL is the whole path, without a slash behind it.
        let url = std::mem::take(&mut config.cluster_url).into_parts();
        let path = url.path_and_query.as_ref().map_or("/", |path| path.as_str());
        let path: Uri = path.parse().map_err(|error| format!("the path of cluster.server: {error}"))?;
        let namespace = url.authority.as_ref().and_then(|authority| in_cluster(authority.host()));
        let origin = Uri::builder().scheme("https").path_and_query("/");
        let origin = url.authority.into_iter().fold(origin, uri::Builder::authority);
        config.cluster_url = origin.build().map_err(|error| format!("cluster.server: {error}"))?;
        (config.default_retry, config.proxy_url, config.connect_timeout) = (false, None, Some(CONNECT));
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        Ok(Self { client, path, namespace })
    }

    /// Tries a few times while another try may succeed.
    async fn ask(&self, of: &ImageBackend, review: &Bytes) -> Result<ImageVerdict, NoVerdict> {
        let mut pause = Duration::from_millis(of.retry_backoff.into());
        let mut tried = 1;
        loop {
            match exchange::ask(&self.client, &self.path, review).await {
                Err(failure) if failure.is_passing && tried < TRIES => {
                    sleep(pause).await;
                    (pause, tried) = (pause * 3 / 2, tried + 1);
                }
                answered => return answered,
            }
        }
    }
}

/// The namespace of a Service's name. A host outside of the cluster may have a part `svc` as well; of a cluster with a domain of its own,
/// the object names the namespace.
fn in_cluster(host: &str) -> Option<String> {
    let name = host.strip_suffix(".svc").or_else(|| host.strip_suffix(".svc.cluster.local"))?;
    let (_, namespace) = name.split_once('.')?;
    (!namespace.contains('.')).then(|| namespace.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_service_names_a_namespace() {
        for (host, expected) in [
            ("images.prod.svc", Some("prod")),
            ("images.prod.svc.cluster.local", Some("prod")),
            ("images.prod.svc.corp.example", None),
            ("images.prod", None),
            ("prod.svc", None),
            ("a.b.prod.svc", None),
            ("svc", None),
        ] {
            assert_eq!(in_cluster(host).as_deref(), expected, "{host}");
        }
    }
}
