//! A stand-in for the API server on loopback, for what a real one cannot be made to do on demand, and a process that follows it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::client::{Client, plain_get};
use crate::process::{OUTRIDER, Process};

/// In which a failing watch is reported, and the plugin given up, on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// Says to each request that there is nothing, but a lease that somebody holds for ever and the plugins that it was given; or that the
/// credentials are no good.
pub struct ApiServer {
    address: SocketAddr,
    /// Whether it says the latter.
    pub refuses: Arc<AtomicBool>,
}

impl ApiServer {
    pub fn start() -> Self {
        Self::with_plugins(&[])
    }

    /// With plugins of these specs, which audit.
    pub fn with_plugins(specs: &[Value]) -> Self {
        let plugin = |spec: &Value| {
            let (name, mut spec) = (spec["plugin"].as_str().unwrap().to_lowercase(), spec.clone());
            spec["mode"] = "Audit".into();
            json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "spec": spec,
                "metadata": {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"}})
        };
        let plugins: Arc<Vec<Value>> = Arc::new(specs.iter().map(plugin).collect());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, refuses) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let shared = Arc::clone(&refuses);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (refuses, plugins) = (Arc::clone(&shared), Arc::clone(&plugins));
                thread::spawn(move || answer(&stream, &refuses, &plugins));
            }
        });
        Self { address, refuses }
    }

    pub fn kubeconfig(&self, folder: &Path, user: &Value) -> PathBuf {
        let path = folder.join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "u", "user": user}],
        });
        fs::write(&path, config.to_string()).unwrap();
        path
    }
}

/// Answers requests of one connection until it is closed.
fn answer(stream: &TcpStream, refuses: &AtomicBool, plugins: &[Value]) {
    let mut from = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line);
        }
        let length = |line: &String| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok();
        let body = head.iter().find_map(length).unwrap_or(0);
        drop(std::io::copy(&mut from.by_ref().take(body), &mut std::io::sink()));
        let target = head[0].split(' ').nth(1).unwrap_or_default();
        let (code, body) = match target {
            _ if refuses.load(Ordering::Relaxed) => (401, status(401, "Unauthorized")),
            _ if !head[0].starts_with("GET ") => (404, status(404, "NotFound")),
            _ if target.contains("watch=true") => {
                // It ends without an event, as each watch does from time to time.
                thread::sleep(Duration::from_secs(1));
                (200, String::new())
            }
            "/version" => (200, version()),
            _ if target.contains("/leases/") => (200, lease()),
            _ => {
                let items = if target.contains("/admissionplugins?") { plugins } else { &[] };
                let list =
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
                (200, list.to_string())
            }
        };
        let head =
            format!("HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        let reply = head + &body;
        if (&*stream).write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn version() -> String {
    let unknown = ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
    let mut version = json!({"major": "1", "minor": "34", "gitVersion": "v1.34.0"});
    for field in unknown {
        version[field] = "".into();
    }
    version.to_string()
}

fn lease() -> String {
    let metadata = json!({"name": "outrider.outrider.dev", "namespace": "outrider-system", "resourceVersion": "1"});
    let spec = json!({"holderIdentity": "somebody", "leaseDurationSeconds": i32::MAX});
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}).to_string()
}

fn status(code: u16, reason: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": reason, "reason": reason, "code": code}).to_string()
}

/// A process that follows the stand-in, with a certificate to serve reviews by.
pub struct Served {
    pub process: Process,
    webhooks: SocketAddr,
    health: SocketAddr,
    metrics: SocketAddr,
    ca: String,
    _folder: tempfile::TempDir,
}

impl Served {
    pub fn start(folder: tempfile::TempDir, kubeconfig: &Path, more: &[&str]) -> Self {
        let certs = folder.path().join("certs");
        fs::create_dir(&certs).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        fs::write(certs.join("tls.crt"), leaf.pem()).unwrap();
        fs::write(certs.join("tls.key"), key.serialize_pem()).unwrap();
        let mut command = Command::new(OUTRIDER);
        let flags = [
            "serve",
            "--log-format=json",
            "--webhook-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--certificates=files",
        ];
        command.args(flags).args(more).arg("--kubeconfig").arg(kubeconfig).arg("--cert-dir").arg(&certs);
        let mut process = Process::of(command.env_remove("POD_NAMESPACE").stdin(Stdio::null()));
        let listening = process.line("Listening");
        let address = |front: &str| listening[front].as_str().unwrap().parse().unwrap();
        let (webhooks, health, metrics) = (address("webhooks"), address("health"), address("metrics"));
        Self { process, webhooks, health, metrics, ca: leaf.pem(), _folder: folder }
    }

    /// Waits until the probe, in words, is as it should be; returns it.
    pub async fn readiness(&self, what: &str, holds: impl Fn(u16, &str) -> bool) -> String {
        let begun = std::time::Instant::now();
        loop {
            let (code, text) = plain_get(self.health, "/readyz?verbose").await;
            if holds(code, &text) {
                return text;
            }
            assert!(begun.elapsed() < TIME_LIMIT, "{what}: {code} {text}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until each watch has failed for so many seconds, as the metric has it.
    pub async fn failing(&self, watches: &[&str], holds: impl Fn(u64) -> bool) {
        let begun = std::time::Instant::now();
        loop {
            let (_, metrics) = plain_get(self.metrics, "/metrics").await;
            let seconds = |watch: &&str| -> Option<u64> {
                let series = format!("outrider_watch_failing_seconds{{watch=\"{watch}\"}} ");
                metrics.lines().find_map(|line| line.strip_prefix(series.as_str())?.parse().ok())
            };
            let others: Vec<_> =
                watches.iter().map(|watch| (watch, seconds(watch))).filter(|(_, it)| !it.is_some_and(&holds)).collect();
            if others.is_empty() {
                return;
            }
            assert!(begun.elapsed() < TIME_LIMIT, "{others:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn review(&self) -> u16 {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
        let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
        let resource = json!({"group": "", "version": "v1", "resource": "pods"});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": kind, "resource": resource, "namespace": "shop", "operation": "CREATE", "object": pod}});
        let mut client = Client::connect(self.webhooks, &self.ca).await.unwrap();
        client.post("/mutate--v1-pod", &review.to_string()).await.status
    }
}
