//! The `outrider` binary as a process, on a real API server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::Cluster;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "in {PATIENCE:?} it did not happen that {what}");
        sleep(Duration::from_millis(100));
    }
}

/// What the command prints.
pub fn outrider(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_outrider")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Installs the CRDs.
pub fn install(cluster: &Cluster) {
    let crds = outrider(&["manifests", "crds"]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&crds)).unwrap();
    cluster.kubectl_ok(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], None).unwrap();
}

/// Makes the namespace and the roles of a deployment; the kubeconfig has these rights and no others.
pub fn service_account(cluster: &Cluster) -> PathBuf {
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    let rbac = outrider(&["manifests", "rbac"]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&rbac)).unwrap();
    let groups = ["system:serviceaccounts", "system:serviceaccounts:outrider-system", "system:authenticated"];
    cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider", &groups).unwrap()
}

/// A running `outrider serve`.
pub struct Outrider {
    process: Child,
    health: SocketAddr,
    metrics: SocketAddr,
}

impl Outrider {
    /// With the webhooks registered by URL.
    pub fn registered(cluster: &Cluster) -> Self {
        let address = free_address();
        let (url, bind) = (format!("https://{address}"), format!("--webhook-bind-address={address}"));
        Self::start(
            &cluster.kubeconfig(),
            &["--certificates=self", "--register-webhooks", "--webhook-url", &url, &bind],
        )
    }

    /// With this kubeconfig and these flags.
    pub fn start(kubeconfig: &Path, flags: &[&str]) -> Self {
        let (health, metrics) = (free_address(), free_address());
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
        command.args(["serve", "--drain-delay=0s", "--log-level=info,outrider=debug", "--log-format=text"]);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.arg(format!("--health-probe-bind-address={health}"));
        command.arg(format!("--metrics-bind-address={metrics}"));
        if !flags.iter().any(|flag| flag.starts_with("--webhook-bind-address")) {
            command.arg(format!("--webhook-bind-address={}", free_address()));
        }
        let process = command.args(flags).stdin(Stdio::null()).spawn().unwrap();
        Self { process, health, metrics }
    }

    /// Waits until `/readyz` says so.
    pub fn ready(&self) {
        eventually("the process is ready", || get(self.health, "/readyz").is_some_and(|reply| reply.contains(" 200 ")));
    }

    /// Whether it holds the lease.
    pub fn leads(&self) -> bool {
        get(self.metrics, "/metrics").is_some_and(|reply| reply.lines().any(|line| line == "outrider_leader 1"))
    }

    /// Ends the process as the kubelet does, and sees that it ends well.
    pub fn end(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut status = None;
        eventually("the process ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }

    /// Ends the process without giving it time for anything.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Outrider {
    fn drop(&mut self) {
        // Already ended where the test came to its end.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    Some(reply)
}
