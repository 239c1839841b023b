//! What the commands that talk to a live cluster share.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use admission::format::names::dns1123_subdomain;
use clap::Args;
use engine::limitrange::api as limits;
use engine::openkruise;
use engine::plugins::api as plugins;
use engine::sidecarset::api::{API_VERSION, KIND, PLURAL};
use engine::sidecarset::pin::RevisionRef;
use engine::snapshot::revisions::SET_LABEL;
use http::Request;
use kube::Client;
use serde_json::Value;

use crate::answers::{code, said};
use crate::go_duration::unsigned_duration;
use crate::input::Manifest;
use crate::manager::client::{Connection, Error, Selection};
use crate::visible::Visible;

use super::offline::OWN_NAMESPACE;
use super::streams::{Outcome, with_process_streams};

/// Bytes of an answer that are read.
const LONGEST_ANSWER: u64 = 64;

/// Which cluster.
#[derive(Debug, Clone, Args)]
pub struct ClusterArgs {
    /// Kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Send requests as this user, which your own rights must allow
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Send requests as a member of this group; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub groups: Vec<String>,
    /// How long a request to the API server may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = timeout)]
    pub request_timeout: Duration,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match unsigned_duration(text)? {
        Duration::ZERO => Err("a request takes some time".to_owned()),
        timeout => Ok(timeout),
    }
}

impl ClusterArgs {
    /// The flag that chooses a cluster or a user, if one is there.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--context", self.context.is_some()),
            ("--as", self.user.is_some()),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    fn selection(&self) -> Selection {
        Selection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            user: self.user.clone(),
            groups: self.groups.clone(),
            timeout: Some(self.request_timeout),
        }
    }
}

/// Consent to what a command is about to do.
#[derive(Debug, Clone, Args)]
pub struct ConsentArgs {
    /// Do not ask for confirmation on a terminal
    #[arg(short, long)]
    pub yes: bool,
}

/// What a command is about to do, and whether it asks for confirmation on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    /// In words, with a small letter.
    pub what: &'a str,
    /// Whether there is a question.
    pub asks: bool,
}

/// The output of a command: its result, its messages, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    /// For stdout.
    pub result: String,
    /// For stderr.
    pub aside: String,
    /// How it ended.
    pub outcome: Outcome,
}

/// Why nothing can be asked.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    /// No client.
    #[error(transparent)]
    Client(#[from] Error),
    /// Why the API server did not answer.
    #[error("the API server at {place} cannot be reached: {why}")]
    Unreachable { place: String, why: String },
    /// Something else answered, such as a login page or a proxy.
    #[error(
        "what answers at {place} is no Kubernetes API server: its reply is no JSON; correct the address, or the proxy"
    )]
    NoApiServer { place: String },
    /// It does not accept the credentials.
    #[error("the API server at {place} does not accept the credentials: {why}")]
    Unauthorized { place: String, why: String },
}

/// Runs a command that needs a cluster. An error is reported with the address that was tried, and means bad
/// input.
pub fn run<E, F>(args: &ClusterArgs, work: impl FnOnce(Client) -> F) -> ExitCode
where
    E: std::error::Error,
    F: Future<Output = Result<CommandOutput, E>>,
{
    run_with_intent(args, None, work)
}

/// As [`run`], for a command that changes a cluster: names the cluster, and asks for confirmation on a terminal.
pub fn run_with_intent<E, F>(args: &ClusterArgs, intent: Option<Intent<'_>>, work: impl FnOnce(Client) -> F) -> ExitCode
where
    E: std::error::Error,
    F: Future<Output = Result<CommandOutput, E>>,
{
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return super::fail(&error),
    };
    runtime.block_on(async {
        let (client, place) = match connect(args).await {
            Ok(connected) => connected,
            Err(error) => return super::fail(&error),
        };
        if let Some(intent) = intent
            && let Some(ended) = refused(intent, &place)
        {
            return ended;
        }
        match work(client).await {
            Ok(told) => with_process_streams(|streams| {
                streams.stdout.write_all(told.result.as_bytes())?;
                streams.stderr.write_all(told.aside.as_bytes())?;
                if told.outcome == Outcome::BadInput {
                    writeln!(streams.stderr, "outrider: the API server is {place}")?;
                }
                Ok(told.outcome)
            }),
            Err(error) => super::fail(&Failed { place, error }),
        }
    })
}

/// Prints what is about to happen and where, and returns whether the user on a terminal declined.
fn refused(intent: Intent<'_>, place: &str) -> Option<ExitCode> {
    let mut stderr = Visible::new(io::stderr());
    // What cannot be said is done all the same: the way out of a locked cluster does not wait for a terminal.
    let _ = writeln!(stderr, "outrider: {}, at the API server {place}", intent.what);
    if !intent.asks || !io::stdin().is_terminal() {
        return None;
    }
    let _ = write!(stderr, "Go on? [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    // More than a line of a terminal holds is no answer.
    let read = io::stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer);
    if read.is_ok() && is_yes(&answer) {
        return None;
    }
    let _ = writeln!(stderr, "outrider: nothing was done");
    Some(ExitCode::from(super::BAD_INPUT))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[derive(Debug, thiserror::Error)]
#[error("{error}; the API server is {place}")]
struct Failed<E: std::error::Error> {
    place: String,
    error: E,
}

/// The sets, plugins and namespaces of a cluster, which decide there. A user who may not list namespaces may still read
/// `namespace`, if there is one: a role that is bound in a namespace can allow no more.
///
/// # Errors
/// Why they cannot be read, with the address that was tried.
pub fn deciding(args: &ClusterArgs, namespace: Option<&str>) -> Result<Vec<Manifest>, String> {
    asking(args, async |client, place| {
        let sets = format!("/apis/{API_VERSION}/{PLURAL}");
        let of_plugins = format!("/apis/{}/{}", plugins::API_VERSION, plugins::PLURAL);
        let of_ranges = format!("/apis/{}/{}", limits::API_VERSION, limits::PLURAL);
        let mut found = Vec::new();
        for (path, api_version, kind) in [
            (sets.as_str(), API_VERSION, KIND),
            (of_plugins.as_str(), plugins::API_VERSION, plugins::KIND),
            (of_ranges.as_str(), limits::API_VERSION, limits::KIND),
            ("/api/v1/namespaces", "v1", "Namespace"),
        ] {
            let objects = match (get(client, path).await, namespace) {
                // The cluster does not know the kind: it has no such objects.
                (Err(error), _) if code(&error) == Some(404) && [plugins::KIND, limits::KIND].contains(&kind) => {
                    continue;
                }
                (Err(error), Some(name)) if code(&error) == Some(403) && kind == "Namespace" => {
                    get(client, &format!("{path}/{name}")).await.map(|namespace| vec![namespace])
                }
                (answer, _) => answer.map(items),
            };
            let objects = objects.map_err(|error| {
                let why = said(&error);
                let role = if code(&error) == Some(403) { viewer(kind) } else { "" };
                format!("the API server at {place} does not list {kind} objects: {why}{role}")
            })?;
            found.extend(objects.into_iter().map(|item| of_cluster(item, api_version, kind)));
        }
        if found.iter().any(names_revision) {
            found.extend(revisions(client, place).await?);
        }
        Ok(found)
    })
}

/// Whether the object is a set whose new pods get an older revision.
fn names_revision(manifest: &Manifest) -> bool {
    let revision = manifest.value.pointer("/spec/injectionStrategy/revision");
    let text = |field: &str| revision.and_then(|it| it.get(field)?.as_str()).unwrap_or_default();
    RevisionRef::of(text("revisionName"), text("customVersion")).is_some()
}

/// The revisions of all sets. A user who may not list them in the cluster may still do so where Outrider usually is.
async fn revisions(client: &Client, place: &str) -> Result<Vec<Manifest>, String> {
    let path = |scope: &str| format!("/apis/apps/v1{scope}/controllerrevisions?labelSelector={SET_LABEL}");
    let list = match get(client, &path("")).await {
        Err(error) if code(&error) == Some(403) => get(client, &path(&format!("/namespaces/{OWN_NAMESPACE}"))).await,
        answer => answer,
    };
    let list = list.map_err(|error| {
        let why = said(&error);
        format!(
            "a SidecarSet has spec.injectionStrategy.revision, and the API server at {place} does not list ControllerRevision objects: \
             {why}; a RoleBinding to view in Outrider's namespace allows it"
        )
    })?;
    Ok(items(list).into_iter().map(|item| of_cluster(item, "apps/v1", "ControllerRevision")).collect())
}

/// The result of a request to the API server, which has an address.
fn asking<T>(args: &ClusterArgs, work: impl AsyncFnOnce(&Client, &str) -> Result<T, String>) -> Result<T, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let (client, place) = connect(args).await.map_err(|error| error.to_string())?;
        work(&client, &place).await
    })
}

async fn get(client: &Client, path: &str) -> Result<Value, kube::Error> {
    client.request(Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?).await
}

/// The objects of a list.
fn items(mut list: Value) -> Vec<Value> {
    match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The sets of OpenKruise in a cluster, and the `ConfigMap` with its list of allowed annotations if there is one.
///
/// # Errors
/// Why they cannot be read, with the address that was tried.
pub fn of_openkruise(args: &ClusterArgs) -> Result<Vec<Manifest>, String> {
    asking(args, async |client, place| {
        let mut found = Vec::new();
        let mut is_defined = false;
        for (path, api_version) in openkruise::lists() {
            match get(client, &path).await {
                Ok(list) => {
                    is_defined = true;
                    found.extend(items(list).into_iter().map(|item| of_cluster(item, &api_version, KIND)));
                    break;
                }
                // The version, or the whole definition, is not there.
                Err(error) if code(&error) == Some(404) => {}
                Err(error) => {
                    let (why, definition) = (said(&error), openkruise::DEFINITION);
                    let what = "OpenKruise's SidecarSets";
                    return Err(format!("the API server at {place} does not list {what} ({definition}): {why}"));
                }
            }
        }
        if !is_defined {
            let definition = openkruise::DEFINITION;
            return Err(format!("the API server at {place} has no {definition}: OpenKruise is not installed there"));
        }
        let path = openkruise::configuration_path();
        match get(client, &path).await {
            Ok(map) => found.push(of_cluster(map, "v1", "ConfigMap")),
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => {
                return Err(format!(
                    "the API server at {place} does not return OpenKruise's configuration ({path}): {}",
                    said(&error)
                ));
            }
        }
        Ok(found)
    })
}

/// Names the role that lets a user list the kind, which no role that is bound in a namespace can.
fn viewer(kind: &str) -> &'static str {
    match kind {
        KIND => "; a ClusterRoleBinding to outrider-sidecarset-viewer allows it",
        plugins::KIND => "; a ClusterRoleBinding to outrider-admissionplugin-viewer allows it",
        limits::KIND => "; a ClusterRoleBinding to outrider-clusterlimitrange-viewer allows it",
        _ => "",
    }
}

/// A pod of a cluster.
///
/// # Errors
/// Why it cannot be read, with the address that was tried.
pub fn pod_of_cluster(args: &ClusterArgs, namespace: &str, name: &str) -> Result<Manifest, String> {
    let faults = dns1123_subdomain(name);
    if !faults.is_empty() {
        return Err(format!("{name:?} cannot be the name of a pod: {}", faults.join("; ")));
    }
    asking(args, async |client, place| {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let pod = get(client, &path).await;
        let pod = pod.map_err(|error| {
            let why = said(&error);
            format!("the API server at {place} does not return pod {name:?} of namespace {namespace:?}: {why}")
        })?;
        Ok(of_cluster(pod, "v1", "Pod"))
    })
}

/// An item of a list, which does not contain its own kind, as a manifest would have it.
fn of_cluster(mut value: Value, api_version: &str, kind: &str) -> Manifest {
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
        object.insert("apiVersion".to_owned(), api_version.into());
        object.insert("kind".to_owned(), kind.into());
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    Manifest { source: "cluster".to_owned(), value, is_stored: true }
}

/// A client whose API server has answered, and what it is called.
async fn connect(args: &ClusterArgs) -> Result<(Client, String), NoAnswer> {
    let connection = Connection::select(&args.selection()).await?;
    let (client, place) = (connection.client()?, connection.place());
    // A user who may not read the version gets an answer all the same.
    match client.apiserver_version().await {
        Err(kube::Error::Api(status)) if is_page(&status.message) => Err(NoAnswer::NoApiServer { place }),
        Err(kube::Error::Api(status)) if status.code == 401 => {
            Err(NoAnswer::Unauthorized { place, why: status.message.clone() })
        }
        Err(kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => Err(NoAnswer::NoApiServer { place }),
        Ok(_) | Err(kube::Error::Api(_)) => Ok((client, place)),
        Err(error) => Err(NoAnswer::Unreachable { place, why: said(&error) }),
    }
}

/// Whether a reply is a page for people. The client takes a body that is no status as the message of one.
fn is_page(message: &str) -> bool {
    message.trim_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        for answer in ["y\n", "Y\n", "yes\n", " YES "] {
            assert!(is_yes(answer), "{answer:?}");
        }
        for answer in ["", "\n", "n\n", "yes please\n", "ye"] {
            assert!(!is_yes(answer), "{answer:?}");
        }
    }
}
