//! The backends of the Secret, and what they are asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admission::Known;
use admission::question::{ImageBackend, ImageVerdict, Images};
use http::Uri;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, watch};
use tokio::time::sleep;

use super::cache::{Cache, Digest};
use super::exchange::{self, Failure};
use super::kubeconfig;
use crate::names::IMAGE_POLICY_SECRET;

/// Tries, as many as the API server's own plugin has (`DefaultRetryBackoffWithInitialDelay` of k8s.io/apiserver/pkg/util/webhook).
const TRIES: u32 = 5;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// The backends, as the Secret has them; none until it has been read.
#[derive(Debug)]
pub struct ImageBackends {
    known: watch::Sender<Option<Arc<Named>>>,
}

impl Default for ImageBackends {
    fn default() -> Self {
        Self { known: watch::Sender::new(None) }
    }
}

/// One form of the Secret. What was said by the backends of another does not count.
#[derive(Debug, Default)]
struct Named {
    of: BTreeMap<String, Slot>,
    cache: Cache,
}

/// A kubeconfig, and the client that is made of it for the first question.
#[derive(Debug)]
struct Slot {
    text: String,
    made: OnceCell<Result<Backend, String>>,
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
    /// The Secret has these kubeconfigs; none where there is no Secret.
    pub fn are(&self, kubeconfigs: BTreeMap<String, String>) {
        let is_same = |known: &Named| known.of.iter().map(|(key, slot)| (key, &slot.text)).eq(kubeconfigs.iter());
        if self.known.borrow().as_deref().is_some_and(is_same) {
            return;
        }
        let slot = |(key, text)| (key, Slot { text, made: OnceCell::new() });
        let named = Named { of: kubeconfigs.into_iter().map(slot).collect(), cache: Cache::default() };
        self.known.send_replace(Some(Arc::new(named)));
    }

    /// The Secret is not read any more.
    pub fn are_unknown(&self) {
        self.known.send_replace(None);
    }

    /// Asks the backend, unless it said before what still counts. Takes as long as it takes: who waits decides for how long.
    pub async fn ask(&self, images: &Images) -> Known {
        let mut known = self.known.subscribe();
        let named = match known.wait_for(Option::is_some).await {
            Ok(named) => named.clone().unwrap_or_default(),
            Err(_) => return Known::Failed("the image policy backend is not known".to_owned()),
        };
        match named.ask(images).await {
            Ok(verdict) => Known::Images(verdict),
            Err(why) => {
                tracing::warn!(backend = images.backend.name, error = why, "An image policy backend gave no verdict");
                Known::Failed(why)
            }
        }
    }
}

impl Named {
    async fn ask(&self, images: &Images) -> Result<Arc<ImageVerdict>, String> {
        let key = &images.backend.name;
        let lacking = || {
            format!(
                "the image policy backend is not known: the Secret {IMAGE_POLICY_SECRET} in the namespace of Outrider has no key {key:?}"
            )
        };
        let slot = self.of.get(key).ok_or_else(lacking)?;
        let in_field =
            |why| format!("the image policy backend is not known: Secret {IMAGE_POLICY_SECRET}, key {key:?}: {why}");
        let backend = slot.made.get_or_init(|| Backend::of(&slot.text)).await.as_ref().map_err(in_field)?;
        // One that is to review its own pods could not start.
        if backend.namespace.as_deref() == Some(images.namespace.as_str()) {
            return Ok(Arc::new(ImageVerdict { allowed: true, ..ImageVerdict::default() }));
        }
        let spec = exchange::spec(images);
        let digest = digest_of(&images.backend, &spec);
        if let Some(verdict) = self.cache.get(&digest, Instant::now()) {
            return Ok(verdict);
        }
        let verdict = Arc::new(backend.ask(&images.backend, &spec).await.map_err(|failure| failure.why)?);
        let ttl = if verdict.allowed { images.backend.allow_ttl } else { images.backend.deny_ttl };
        if ttl > 0 {
            self.cache.keep(digest, &verdict, Duration::from_secs(ttl.into()), Instant::now());
        }
        Ok(verdict)
    }
}

/// Objects with other TTLs keep verdicts of their own.
fn digest_of(backend: &ImageBackend, spec: &Value) -> Digest {
    let mut found = Digest::default();
    let all = json!([backend.name, backend.allow_ttl, backend.deny_ttl, spec]);
    found.copy_from_slice(digest(&SHA256, all.to_string().as_bytes()).as_ref());
    found
}

impl Backend {
    async fn of(text: &str) -> Result<Self, String> {
        let kubeconfig = kubeconfig::read(text)?;
        let made = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = made.map_err(|error| error.to_string())?;
        // The path of the URL is the whole path, without a slash behind it.
        let url = std::mem::take(&mut config.cluster_url).into_parts();
        let path = url.path_and_query.as_ref().map_or("/", |path| path.as_str());
        let path: Uri = path.parse().map_err(|error| format!("the path of cluster.server: {error}"))?;
        let namespace = url.authority.as_ref().and_then(|authority| in_cluster(authority.host()));
        let origin = Uri::builder().scheme("https").path_and_query("/");
        let origin = url.authority.into_iter().fold(origin, http::uri::Builder::authority);
        config.cluster_url = origin.build().map_err(|error| format!("cluster.server: {error}"))?;
        (config.default_retry, config.proxy_url, config.connect_timeout) = (false, None, Some(CONNECT));
        let client = Client::try_from(config).map_err(|error| error.to_string())?;
        Ok(Self { client, path, namespace })
    }

    /// Tries a few times while another try may succeed.
    async fn ask(&self, of: &ImageBackend, spec: &Value) -> Result<ImageVerdict, Failure> {
        let mut pause = Duration::from_millis(of.retry_backoff.into());
        let mut tried = 1;
        loop {
            match exchange::ask(&self.client, &self.path, spec).await {
                Err(failure) if failure.is_passing && tried < TRIES => {
                    sleep(pause).await;
                    (pause, tried) = (pause * 3 / 2, tried + 1);
                }
                answered => return answered,
            }
        }
    }
}

/// The namespace of a Service's name.
fn in_cluster(host: &str) -> Option<String> {
    let mut parts = host.split('.');
    let (_, namespace, svc) = (parts.next()?, parts.next()?, parts.next()?);
    (svc == "svc").then(|| namespace.to_owned())
}
