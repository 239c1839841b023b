//! What kubelets and the controller of `EndpointSlices` do: probe `/readyz`, and write who is ready into the Service's slice.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A short readiness probe; a kubelet looks as often for containers that ended (`plegRelistPeriod` in k8s.io/kubernetes/pkg/kubelet).
const PERIOD: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(1);
const FAILURE_THRESHOLD: u32 = 3;

/// The first minor version whose API server looks for the endpoints of a webhook's Service in `EndpointSlices`
/// (`NewEndpointServiceResolver` in k8s.io/kube-aggregator).
const READS_SLICES: u32 = 34;

/// One replica as its kubelet knows it.
struct Pod {
    address: Ipv4Addr,
    health: SocketAddr,
    is_ready: bool,
    is_terminating: bool,
    failures: u32,
}

enum Probe {
    Ready,
    NotReady,
    /// There is no listener: what a kubelet learns of a container that ended, from the container runtime.
    Gone,
}

/// All kubelets. Clones share their pods.
#[derive(Clone)]
pub struct Kubelets {
    pods: Arc<Mutex<Vec<Pod>>>,
    slices: Api<EndpointSlice>,
    /// Where the API server reads these instead.
    endpoints: Option<Api<Endpoints>>,
    /// The slice as it was written last; null before.
    written: Arc<Mutex<Value>>,
}

impl Kubelets {
    /// Without pods. Works for as long as [`Kubelets::run`] is polled.
    pub fn new(client: Client, minor_version: u32) -> Self {
        let slices = Api::namespaced(client.clone(), "outrider-system");
        let endpoints = (minor_version < READS_SLICES).then(|| Api::namespaced(client, "outrider-system"));
        Self { pods: Arc::default(), slices, endpoints, written: Arc::default() }
    }

    /// A pod whose container was started.
    pub fn add(&self, address: Ipv4Addr, health: SocketAddr) {
        let pod = Pod { address, health, is_ready: false, is_terminating: false, failures: 0 };
        self.pods.lock().unwrap().push(pod);
    }

    /// A pod that was deleted, whose container still runs.
    pub fn terminating(&self, address: Ipv4Addr) {
        for pod in self.pods.lock().unwrap().iter_mut().filter(|pod| pod.address == address) {
            pod.is_terminating = true;
            pod.is_ready = false;
        }
    }

    /// A pod that is gone.
    pub fn remove(&self, address: Ipv4Addr) {
        self.pods.lock().unwrap().retain(|pod| pod.address != address);
    }

    /// Whether the slice names this address as ready.
    pub fn is_endpoint(&self, address: Ipv4Addr) -> bool {
        let (written, addresses) = (self.written.lock().unwrap(), json!([address]));
        let is_ready = |endpoint: &Value| endpoint["addresses"] == addresses && endpoint["conditions"]["ready"] == true;
        written["endpoints"].as_array().is_some_and(|endpoints| endpoints.iter().any(is_ready))
    }

    /// Probes and writes until it is dropped.
    pub async fn run(self) {
        loop {
            self.probe_all().await;
            let slice = self.slice();
            if *self.written.lock().unwrap() != slice {
                self.write(slice).await;
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn probe_all(&self) {
        let targets: Vec<SocketAddr> = self.pods.lock().unwrap().iter().map(|pod| pod.health).collect();
        let probes = futures::future::join_all(targets.iter().map(|health| probe(*health))).await;
        for (health, probe) in targets.into_iter().zip(probes) {
            for pod in self.pods.lock().unwrap().iter_mut().filter(|pod| pod.health == health) {
                pod.learn(&probe);
            }
        }
    }

    async fn write(&self, slice: Value) {
        let parameters = PatchParams::apply("endpointslice-controller").force();
        let mut written = self.slices.patch("outrider-webhook-1", &parameters, &Patch::Apply(&slice)).await.map(drop);
        if let Some(endpoints) = self.endpoints.as_ref().filter(|_| written.is_ok()) {
            let same = Patch::Apply(endpoints_of(&slice));
            written = endpoints.patch("outrider-webhook", &parameters, &same).await.map(drop);
        }
        match written {
            Ok(()) => *self.written.lock().unwrap() = slice,
            Err(error) => eprintln!("the endpoints were not written: {error}"),
        }
    }

    fn slice(&self) -> Value {
        let endpoint = |pod: &Pod| {
            let (ready, terminating) = (pod.is_ready, pod.is_terminating);
            json!({
                "addresses": [pod.address],
                "conditions": {"ready": ready, "serving": ready || terminating, "terminating": terminating},
            })
        };
        let endpoints: Vec<Value> = self.pods.lock().unwrap().iter().map(endpoint).collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "outrider-webhook-1", "labels": {"kubernetes.io/service-name": "outrider-webhook"}},
            "ports": [{"name": "webhook", "port": 9443, "protocol": "TCP"}],
            "endpoints": endpoints,
        })
    }
}

/// The same as older API servers read it.
fn endpoints_of(slice: &Value) -> Value {
    let ready =
        slice["endpoints"].as_array().unwrap().iter().filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let addresses: Vec<Value> = ready.map(|endpoint| json!({"ip": endpoint["addresses"][0]})).collect();
    let subset = json!({"addresses": addresses, "ports": slice["ports"]});
    json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "outrider-webhook"},
        "subsets": if addresses.is_empty() { json!([]) } else { json!([subset]) },
    })
}

impl Pod {
    fn learn(&mut self, probe: &Probe) {
        self.failures = if matches!(probe, Probe::Ready) { 0 } else { self.failures + 1 };
        self.is_ready = match probe {
            Probe::Ready => !self.is_terminating,
            Probe::NotReady => self.is_ready && self.failures < FAILURE_THRESHOLD,
            Probe::Gone => false,
        };
    }
}

async fn probe(health: SocketAddr) -> Probe {
    let asking = async {
        let mut stream = TcpStream::connect(health).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await?;
        Ok::<_, std::io::Error>(reply)
    };
    match timeout(TIMEOUT, asking).await {
        Ok(Ok(reply)) if reply.contains(" 200 ") => Probe::Ready,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Probe::Gone,
        _ => Probe::NotReady,
    }
}
