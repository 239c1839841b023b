//! Whether every replica that answers the API server goes by a generation of a set: the leader asks each one.
//!
//! Who answers is what the `EndpointSlice`s of our Service say, as the API server itself goes by them. A replica that becomes ready
//! later has read every set by then, so that what was once true of a generation stays so. The replicas are asked over plain HTTP
//! where their probes are: no right on the API server is needed, nothing is written, and what they say is no secret.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::HOST;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::answers::{REPLICA_TIMEOUT, answer_within};
use crate::controller::Own;
use crate::names::{MUTATING, SERVICE, SERVICE_NAME_LABEL};
use crate::sidecarset::controller::locks::locked;
use crate::watch::read_model::ReadModel;
use engine::sidecarset::api::PLURAL;
use engine::snapshot::sets::SetRecord;

/// The path under which replicas answer.
const KNOWN: &str = "/known/";
/// A port of an `EndpointSlice` by this name is that of the probes; else it is our own.
const HEALTH_PORT: &str = "health";
/// How long a replica that could not be reached is not called again, for whichever set.
const SKIPPED_FOR: Duration = Duration::from_secs(5);
/// How long a list of replicas is good for: a burst of sets asks once.
const LIST_FRESH: Duration = Duration::from_millis(500);
/// More than a uid and a number.
const ANSWER_MAX: usize = 256;
const AT_ONCE: usize = 8;

/// What is known of the replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knowledge {
    /// So many replicas go by the generation, and that is all of them.
    All(usize),
    /// All of them, as the status says already.
    AsTold,
    /// This one does not yet.
    Lacking(String),
    /// The API server does not call any of them: there is no webhook configuration with the entry for pods.
    NotRegistered,
    /// It is not known; why.
    Unknown(String),
}

impl Knowledge {
    /// Whether every replica goes by the generation.
    pub const fn is_of_all(&self) -> bool {
        matches!(self, Self::All(_) | Self::AsTold)
    }

    /// Why not every replica does, as far as is known.
    pub fn doubt(self) -> Option<String> {
        match self {
            Self::All(_) | Self::AsTold => None,
            Self::Lacking(replica) => Some(format!("the replica at {replica} does not know this generation")),
            Self::NotRegistered => {
                Some("the webhook configuration outrider-mutating has no entry for pods any more".to_owned())
            }
            Self::Unknown(why) => Some(why),
        }
    }
}

/// Asks replicas.
pub struct Replicas {
    slices: Api<EndpointSlice>,
    configurations: Api<MutatingWebhookConfiguration>,
    own: Own,
    listed: Mutex<Option<(Instant, Option<Vec<String>>)>>,
    unreachable: Mutex<HashMap<String, (Instant, String)>>,
}

impl Replicas {
    /// Of the deployment that is here.
    pub fn new(client: Client, own: Own) -> Self {
        Self {
            slices: Api::namespaced(client.clone(), &own.namespace),
            configurations: Api::all(client),
            own,
            listed: Mutex::default(),
            unreachable: Mutex::default(),
        }
    }

    /// What the replicas know of the generation of the set that this one has compiled.
    pub async fn knowledge(&self, set: &SetRecord, model: &ReadModel) -> Knowledge {
        if !model.knows(&set.name, &set.uid, set.compiled_generation) {
            return Knowledge::Lacking("this process".to_owned());
        }
        let replicas = match self.replicas().await {
            Ok(Some(replicas)) => replicas,
            Ok(None) => return Knowledge::NotRegistered,
            Err(why) => return Knowledge::Unknown(why),
        };
        // Outside a cluster, where the API server calls this process by its address.
        if replicas.is_empty() {
            return Knowledge::All(1);
        }
        let questions: Vec<_> = replicas.iter().map(|replica| self.ask(replica, set)).collect();
        let answers: Vec<Result<bool, String>> = futures::stream::iter(questions).buffered(AT_ONCE).collect().await;
        let lacking = replicas.iter().zip(&answers).find(|(_, answer)| **answer == Ok(false));
        if let Some((replica, _)) = lacking {
            return Knowledge::Lacking(replica.clone());
        }
        match answers.into_iter().find_map(Result::err) {
            Some(why) => Knowledge::Unknown(why),
            None => Knowledge::All(replicas.len()),
        }
    }

    /// Where the probes of the replicas are that answer the API server. `None` if it calls no replica.
    async fn replicas(&self) -> Result<Option<Vec<String>>, String> {
        if let Some((at, listed)) = &*locked(&self.listed)
            && at.elapsed() < LIST_FRESH
        {
            return Ok(listed.clone());
        }
        let found = answer_within(REPLICA_TIMEOUT, self.configurations.get_opt(MUTATING)).await;
        let found = found.map_err(|error| format!("The webhook configuration is not known: {error}"))?;
        let Some(entry) = found.as_ref().and_then(entry) else { return Ok(self.listed(None)) };
        let is_by_service = entry.client_config.service.is_some();
        let of_service = ListParams::default().labels(&format!("{SERVICE_NAME_LABEL}={SERVICE}"));
        let slices = answer_within(REPLICA_TIMEOUT, self.slices.list(&of_service)).await;
        let slices = slices.map_err(|error| format!("The replicas are not known: {error}"))?;
        let of_slices = slices.items.iter().map(|slice| self.of_slice(slice)).collect::<Result<Vec<_>, _>>()?;
        let mut replicas: Vec<String> = of_slices.into_iter().flatten().collect();
        // The API server calls a Service, and who answers for it is not known.
        if replicas.is_empty() && (is_by_service || !slices.items.is_empty()) {
            return Err(format!("No replica is ready behind the Service {SERVICE}."));
        }
        replicas.sort();
        replicas.dedup();
        Ok(self.listed(Some(replicas)))
    }

    /// Keeps what was found for the sets that come next.
    fn listed(&self, replicas: Option<Vec<String>>) -> Option<Vec<String>> {
        *locked(&self.listed) = Some((Instant::now(), replicas.clone()));
        replicas
    }

    fn of_slice(&self, slice: &EndpointSlice) -> Result<Vec<String>, String> {
        let named = slice.ports.iter().flatten().find(|port| port.name.as_deref() == Some(HEALTH_PORT));
        let port = named.and_then(|port| u16::try_from(port.port?).ok()).or(self.own.health_port);
        let answers =
            |endpoint: &&Endpoint| endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
        let mut addresses = slice
            .endpoints
            .iter()
            .flatten()
            .filter(answers)
            .filter_map(|endpoint| endpoint.addresses.first())
            .peekable();
        if addresses.peek().is_none() {
            return Ok(Vec::new());
        }
        let port = port.ok_or(
            "The replicas do not report their state: the probes are off, and no port of the Service is named \
             health.",
        )?;
        let with_port = |address: &String| {
            if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
        };
        Ok(addresses.map(with_port).collect())
    }

    /// Whether the replica goes by the generation.
    async fn ask(&self, replica: &str, set: &SetRecord) -> Result<bool, String> {
        let skipped = locked(&self.unreachable).get(replica).cloned();
        if let Some((_, why)) = skipped.filter(|(at, _)| at.elapsed() < SKIPPED_FOR) {
            return Err(why);
        }
        // Not a request to the API server, for which the helper's error would name it.
        let answer = timeout(REPLICA_TIMEOUT, get(replica, &format!("{KNOWN}{PLURAL}/{}", set.name))).await;
        let why = match answer {
            Ok(Ok(text)) => {
                locked(&self.unreachable).remove(replica);
                return Ok(text.is_some_and(|text| is_known(&text, set)));
            }
            Ok(Err(error)) => format!("The replica at {replica} does not report its state: {error}"),
            Err(_) => {
                format!(
                    "The replica at {replica} does not report its state: no answer within {} s",
                    REPLICA_TIMEOUT.as_secs()
                )
            }
        };
        let mut unreachable = locked(&self.unreachable);
        unreachable.retain(|_, (at, _)| at.elapsed() < SKIPPED_FOR);
        unreachable.insert(replica.to_owned(), (Instant::now(), why.clone()));
        Err(why)
    }
}

/// The webhook that the API server calls for new pods.
fn entry(configuration: &MutatingWebhookConfiguration) -> Option<&MutatingWebhook> {
    configuration.webhooks.iter().flatten().find(|webhook| webhook.name == engine::pod::ENTRY)
}

/// Whether an answer is about this set and its generation, or a later one.
fn is_known(answer: &str, set: &SetRecord) -> bool {
    let known = answer.trim().split_once(' ');
    known.is_some_and(|(uid, generation)| {
        uid == set.uid && generation.parse::<i64>().is_ok_and(|generation| generation >= set.compiled_generation)
    })
}

/// The body of the answer; nothing for what is not found.
async fn get(address: &str, path: &str) -> Result<Option<String>, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let request = Request::builder().uri(path).header(HOST, address).body(Empty::<Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    // The sender goes with the answer, and the connection with the sender.
    let answer = async move {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await.map_err(|error| error.to_string())?;
        Ok::<_, String>((status, body.to_bytes()))
    };
    let (answer, _) = tokio::join!(answer, connection);
    let (status, body) = answer?;
    match status {
        StatusCode::OK => Ok(Some(String::from_utf8_lossy(&body).into_owned())),
        StatusCode::NOT_FOUND => Ok(None),
        other => Err(format!("it answers {other}")),
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests {
    use std::convert::Infallible;

    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tower::service_fn;

    use super::*;
    use engine::snapshot::Exclusion;
    use engine::snapshot::builder::SnapshotBuilder;

    /// A replica that answers with this status and body.
    async fn replica(answer: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let read = stream.read(&mut request).await.unwrap();
                assert!(request[..read].starts_with(b"GET /known/sidecarsets/a HTTP/1.1"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        port
    }

    fn slice(ports: &[u16], ready: Value) -> Value {
        let slice = |port: &u16| {
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": format!("s{port}")},
                "addressType": "IPv4", "ports": [{"name": "health", "port": port}],
                "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
            })
        };
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": {}, "items": ports.iter().map(slice).collect::<Vec<_>>()})
    }

    /// What is known of the set `a` of the uid `u` at generation 2, which this process knows.
    async fn known(slices: Value) -> Knowledge {
        known_with(slices, json!([{"name": "pod.outrider.dev", "clientConfig": {"url": "https://127.0.0.1:9443"}}]))
            .await
    }

    /// The same where the webhook configuration has these entries.
    async fn known_with(slices: Value, entries: Value) -> Knowledge {
        let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
        let set = json!({
            "metadata": {"name": "a", "uid": "u", "generation": 2},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "i"}]},
        });
        let model = ReadModel::of(&builder);
        builder.collections.sets.apply(&serde_json::from_value(set).unwrap());
        builder.publish(&model.snapshot);
        let service = service_fn(move |request: Request<Body>| {
            let configuration = json!({"metadata": {"name": "outrider-mutating"}, "webhooks": entries});
            let is_of_slices = request.uri().path().contains("endpointslices");
            let body = if is_of_slices { slices.to_string() } else { configuration.to_string() };
            async move { Ok::<_, Infallible>(http::Response::new(http_body_util::Full::new(Bytes::from(body)))) }
        });
        let replicas = Replicas::new(Client::new(service, "default"), Own::default());
        replicas.knowledge(&model.sets.get("a").unwrap(), &model).await
    }

    #[tokio::test]
    async fn every_replica_that_answers_the_api_server_is_asked() {
        let knows = replica("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nu 2").await;
        let knows_later = replica("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nu 3").await;
        let older = replica("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nu 1").await;
        let another = replica("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nv 2").await;
        let none = replica("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        let lacking = |port| Knowledge::Lacking(format!("127.0.0.1:{port}"));
        for (case, ports, expected) in [
            ("called by its address, so nobody but this process", vec![], Knowledge::All(1)),
            ("all know", vec![knows, knows_later], Knowledge::All(2)),
            ("one has an older generation", vec![knows, older], lacking(older)),
            ("one has another set of the name", vec![another], lacking(another)),
            ("one knows none", vec![none], lacking(none)),
        ] {
            assert_eq!(known(slice(&ports, json!(true))).await, expected, "{case}");
        }
        let by_service = json!({"service": {"name": "outrider-webhook", "namespace": "outrider-system"}});
        let entries = json!([{"name": "pod.outrider.dev", "clientConfig": by_service}]);
        let nobody = Knowledge::Unknown("No replica is ready behind the Service outrider-webhook.".to_owned());
        let why = "the API server calls a Service that nobody answers for";
        assert_eq!(known(slice(&[older], json!(false))).await, nobody, "{why}");
        assert_eq!(known_with(slice(&[], json!(true)), entries.clone()).await, nobody, "{why}, and without a slice");
        assert_eq!(known_with(slice(&[knows], json!(true)), entries).await, Knowledge::All(1));
    }

    #[tokio::test]
    async fn without_probes_that_can_be_asked_it_is_unknown() {
        let mut slices = slice(&[1], json!(true));
        slices["items"][0]["ports"][0]["name"] = "https".into();
        let Knowledge::Unknown(why) = known(slices).await else { panic!() };
        assert!(why.contains("the probes are off"), "{why}");
    }

    #[tokio::test]
    async fn without_an_entry_for_pods_no_replica_is_called() {
        assert_eq!(known_with(slice(&[], json!(true)), json!([])).await, Knowledge::NotRegistered);
        let doubt = known_with(slice(&[], json!(true)), json!([])).await.doubt().unwrap();
        assert!(doubt.contains("no entry for pods"), "{doubt}");
        assert_eq!(known(slice(&[], json!(true))).await.doubt(), None);
        let doubt = Knowledge::Lacking("r".to_owned()).doubt().unwrap();
        assert!(doubt.contains("the replica at r does not know"), "{doubt}");
    }

    #[tokio::test]
    async fn a_replica_that_does_not_report_its_state_leaves_it_unknown() {
        let closed = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().port()
        };
        let Knowledge::Unknown(why) = known(slice(&[closed], json!(true))).await else { panic!() };
        assert!(why.contains(&format!("127.0.0.1:{closed} does not report its state")), "{why}");
    }
}
