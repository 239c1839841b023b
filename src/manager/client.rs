//! Clients of the API server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::{Body, ClientBuilder};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::BoxError;
use tower::util::{MapErrLayer, MapFutureLayer, MapRequestLayer, MapResponseLayer};

use super::credentials::{TokenFile, limit_plugin};
use crate::answers::CONNECT_TIMEOUT;
use crate::watch::last_seen::{LastSeen, ObservedBody};
use crate::watch::read_model::{Clients, ReadModel};

/// In the API server's audit log; in a write that names no field manager, the part before the slash is the manager
/// (`managerOrUserAgent` in `k8s.io/apiserver/pkg/endpoints/handlers`). Without the header it is `unknown`.
const AGENT: &str = concat!("outrider/", env!("CARGO_PKG_VERSION"));

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kubeconfig file that was asked for cannot be used.
    #[error("kubeconfig {path} cannot be used: {}", in_words(source), path = path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// Neither in a pod nor with a kubeconfig.
    #[error(
        "no cluster found: {}, and {tried} cannot be used: {}; give --kubeconfig FILE",
        without_account(in_cluster),
        in_words(kubeconfig)
    )]
    NoCluster {
        /// Why the pod's service account cannot be used.
        in_cluster: InClusterError,
        /// Which kubeconfig was tried.
        tried: String,
        /// Why KUBECONFIG or the default kubeconfig cannot be used.
        kubeconfig: KubeconfigError,
    },
    /// The token's file, as the configuration names it.
    #[error("the token in {path} cannot be used: {source}", path = path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The configuration was read and makes no client.
    #[error("the API server's address or credentials cannot be used: {0}")]
    Client(#[from] kube::Error),
}

/// The library's message, but for a file that cannot be read: that one shows its path with two pairs of quotes.
fn in_words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        other => other.to_string(),
    }
}

/// Why there is no service account to ask with. Outside of pods, the library's words are about a variable.
fn without_account(error: &InClusterError) -> String {
    match error {
        InClusterError::ReadEnvironmentVariable(_) => "this process runs in no pod".to_owned(),
        other => format!("the service account of the pod cannot be used: {other}"),
    }
}

/// How the API server is reached.
#[derive(Debug, Clone)]
pub struct Connection {
    config: Config,
    origin: String,
    token: Option<TokenFile>,
    /// The longest that a request may take, if that was said.
    timeout: Option<Duration>,
}

/// Which cluster, as which user, and how patiently.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The kubeconfig; without it KUBECONFIG, then the one in the home folder, then the pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; without it the current one.
    pub context: Option<String>,
    /// The user to ask as.
    pub user: Option<String>,
    /// The groups to ask as.
    pub groups: Vec<String>,
    /// The longest that a request may take, until the head of its answer; then as long for each part of it.
    pub timeout: Option<Duration>,
}

/// A request that took too long.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct RequestTimeout(Duration);

/// The kubeconfig that is used where none is given: that of KUBECONFIG, else the one in the home folder.
fn default_kubeconfig() -> String {
    if let Some(value) = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
        return format!("KUBECONFIG={}", value.to_string_lossy());
    }
    let home = std::env::var_os("HOME").unwrap_or_else(|| "~".into());
    PathBuf::from(home).join(".kube/config").display().to_string()
}

/// The configuration of a kubeconfig, and which of its contexts that is.
async fn configured(
    file: Result<Kubeconfig, KubeconfigError>,
    options: &KubeConfigOptions,
) -> Result<(Config, Option<String>), KubeconfigError> {
    let file = file?;
    let context = options.context.clone().or_else(|| file.current_context.clone());
    Ok((Config::from_custom_kubeconfig(file, options).await?, context))
}

impl Connection {
    /// Finds the API server: by the kubeconfig file given; else by KUBECONFIG or `~/.kube/config`; else as a pod.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`] or [`Error::NoCluster`].
    pub async fn find(kubeconfig: Option<&Path>) -> Result<Self, Error> {
        Self::select(&Selection { kubeconfig: kubeconfig.map(Path::to_owned), ..Selection::default() }).await
    }

    /// Gives up programs that fetch credentials and do not end. Not for commands: their users may have to log in, and can stop
    /// them.
    pub fn limit_plugins(&mut self) {
        // Without its path there is no such limit.
        if let Ok(ours) = std::env::current_exe() {
            limit_plugin(&mut self.config, &ours);
        }
    }

    /// As [`Connection::find`], of the context that is named, as the user who is named.
    ///
    /// # Errors
    /// As [`Connection::find`]; a context that is named needs a kubeconfig.
    pub async fn select(selection: &Selection) -> Result<Self, Error> {
        let options = KubeConfigOptions { context: selection.context.clone(), ..KubeConfigOptions::default() };
        let (mut config, context, mut origin) = if let Some(path) = &selection.kubeconfig {
            let failed = |source| Error::Kubeconfig { path: path.to_owned(), source };
            let (config, context) = configured(Kubeconfig::read_from(path), &options).await.map_err(failed)?;
            (config, context, format!("kubeconfig {}", path.display()))
        } else {
            let tried = default_kubeconfig();
            match configured(Kubeconfig::read(), &options).await {
                Ok((config, context)) => (config, context, format!("kubeconfig {tried}")),
                Err(source) if selection.context.is_some() => {
                    return Err(Error::Kubeconfig { path: tried.into(), source });
                }
                Err(kubeconfig) => {
                    let none = |in_cluster| Error::NoCluster { in_cluster, tried, kubeconfig };
                    (Config::incluster().map_err(none)?, None, "the pod's service account".to_owned())
                }
            }
        };
        if let Some(context) = context {
            // Writing to a String cannot fail.
            let _ = write!(origin, ", context {context}");
        }
        if let Some(user) = &selection.user {
            config.auth_info.impersonate = Some(user.clone());
            let _ = write!(origin, ", as {user}");
        }
        if !selection.groups.is_empty() {
            config.auth_info.impersonate_groups = Some(selection.groups.clone());
        }
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
        config.connect_timeout =
            Some(selection.timeout.map_or(CONNECT_TIMEOUT, |timeout| timeout.min(CONNECT_TIMEOUT)));
        config.read_timeout = selection.timeout.or(config.read_timeout);
        let path = config.auth_info.token_file.clone().unwrap_or_default().into();
        let token = TokenFile::take(&mut config).map_err(|source| Error::Token { path, source })?;
        Ok(Self { config, origin, token, timeout: selection.timeout })
    }

    /// The API server's address.
    pub fn url(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// The API server's address, and what it was found by: for the user of a command that cannot reach it.
    pub fn place(&self) -> String {
        format!("{} ({})", self.url().trim_end_matches('/'), self.origin)
    }

    /// A client.
    ///
    /// # Errors
    /// [`Error::Client`] for credentials that cannot be used.
    pub fn client(&self) -> Result<Client, Error> {
        let builder = ClientBuilder::try_from(self.config.clone())?
            .with_layer(&self.authorizing())
            .with_layer(&MapErrLayer::new(with_causes));
        let Some(timeout) = self.timeout else { return Ok(builder.build()) };
        let patient = MapFutureLayer::new(move |answer| async move {
            tokio::time::timeout(timeout, answer).await.unwrap_or_else(|_| Err(RequestTimeout(timeout).into()))
        });
        Ok(builder.with_layer(&patient).build())
    }

    /// A client that sends each request once. Others send one anew that was refused for now, up to fifteen times.
    ///
    /// # Errors
    /// As [`Connection::client`].
    pub fn client_without_retries(&self) -> Result<Client, Error> {
        let mut config = self.config.clone();
        config.default_retry = false;
        Self { config, origin: self.origin.clone(), token: self.token.clone(), timeout: self.timeout }.client()
    }

    /// Puts the token of the file into each request.
    fn authorizing(&self) -> MapRequestLayer<impl Fn(http::Request<Body>) -> http::Request<Body> + Clone + use<>> {
        let token = self.token.clone();
        MapRequestLayer::new(move |request| match &token {
            Some(token) => token.authorize(request),
            None => request,
        })
    }

    /// The clients of a read model's watches. `namespace` is our own; `plugins` are watched unless they are off.
    ///
    /// # Errors
    /// As [`Connection::client`].
    pub fn watching(&self, model: &ReadModel, namespace: &str, plugins: bool) -> Result<Clients, Error> {
        Ok(Clients {
            sidecarsets: self.listening(&model.sidecarsets.last_seen)?,
            plugins: plugins.then(|| self.listening(&model.plugins.last_seen)).transpose()?,
            limit_ranges: plugins.then(|| self.listening(&model.limit_ranges.last_seen)).transpose()?,
            security_profiles: plugins.then(|| self.listening(&model.security_profiles.last_seen)).transpose()?,
            namespaces: self.listening(&model.namespaces.last_seen)?,
            configuration: self.listening(&model.configuration.last_seen)?,
            revisions: self.listening(&model.revisions.last_seen)?,
            while_read: self.listening(&LastSeen::default())?,
            namespace: namespace.to_owned(),
            version: self.client()?,
        })
    }

    /// A client that records each answer of the API server. Without retries of its own: the watch has them, and logs them.
    fn listening(&self, last_seen: &LastSeen) -> Result<Client, Error> {
        let mut config = self.config.clone();
        config.default_retry = false;
        let last_seen = last_seen.clone();
        let listen = MapResponseLayer::new(move |response| ObservedBody::response(response, &last_seen));
        let builder = ClientBuilder::try_from(config)?.with_layer(&self.authorizing());
        Ok(builder.with_layer(&listen).with_layer(&MapErrLayer::new(with_causes)).build())
    }
}

/// The HTTP client's message for a failed connection is only `client error (Connect)`; the causes say more.
fn with_causes(error: BoxError) -> BoxError {
    // It has words of its own.
    if error.is::<kube::Error>() {
        return error;
    }
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn why_the_api_server_cannot_be_reached_is_told() {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut config = Config::new(format!("http://{nobody}").parse().unwrap());
        config.default_retry = false;
        let connection = Connection { config, origin: "a test".to_owned(), token: None, timeout: None };
        let last_seen = LastSeen::default();
        for client in [connection.client(), connection.listening(&last_seen)] {
            let error = client.unwrap().apiserver_version().await.unwrap_err().to_string();
            assert!(error.ends_with("Connection refused (os error 111)"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_request_ends_when_patience_does() {
        // It takes connections and says nothing.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = Config::new(format!("http://{}", silent.local_addr().unwrap()).parse().unwrap());
        config.default_retry = false;
        let timeout = Some(Duration::from_millis(50));
        let connection = Connection { config, origin: "a test".to_owned(), token: None, timeout };
        let error = connection.client().unwrap().apiserver_version().await.unwrap_err();
        assert_eq!(crate::answers::said(&error), "no answer within 50ms");
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named() {
        let error = Connection::find(Some(Path::new("/nowhere/config"))).await.unwrap_err().to_string();
        assert_eq!(error, "kubeconfig /nowhere/config cannot be used: No such file or directory (os error 2)");
    }
}
