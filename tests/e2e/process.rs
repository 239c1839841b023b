//! The `outrider` binary as a process, on a real API server.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{panicking, sleep};
use std::time::{Duration, Instant};

use cluster::{Cluster, Output, SUPERVISOR, free_port};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// How long anything may take on a machine that is busy with several clusters.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Lines of a process's log that are shown when a test fails.
const LOG_TAIL: usize = 25;

/// Pauses between two checks of a condition, which often start a process: the longer it takes, the longer.
const POLLS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_millis(300);

/// Waits until the condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        let waited = start.elapsed();
        assert!(waited < TIMEOUT, "in {TIMEOUT:?} it did not happen that {what}");
        sleep((waited / 8).clamp(*POLLS.start(), *POLLS.end()));
    }
}

/// Reads until twice in a row the same is found, some seconds apart, and returns it: what was caused before may be on its way.
pub fn at_rest<T: PartialEq>(what: &str, mut read: impl FnMut() -> T) -> T {
    const QUIET: Duration = Duration::from_secs(3);
    let mut found = read();
    eventually(what, || {
        sleep(QUIET);
        let earlier = std::mem::replace(&mut found, read());
        found == earlier
    });
    found
}

/// Waits until the count is so high; each step may take as long as anything else.
pub fn eventually_counts(what: &str, goal: u64, mut count: impl FnMut() -> u64) {
    let mut reached = count();
    while reached < goal {
        let before = reached;
        eventually(&format!("{what}: {goal}, of which {before} were there"), || {
            reached = count();
            reached > before
        });
    }
}

/// How a client of the cluster's administrator is made. It sends each request once.
pub async fn client_config(cluster: &Cluster) -> Config {
    let file = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    config
}

/// What the API server calls a process about that is asked for in a dry run.
const PROBE: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: probe-of-webhooks}
spec:
  selector: {matchLabels: {app: probe-of-webhooks}}
  containers: [{name: probe-of-webhooks, image: 'probe:1'}]
";

/// Whether the API server takes a set that is not stored. It does not while it calls webhooks that it does not trust.
pub fn takes_a_set(cluster: &Cluster) -> bool {
    cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(PROBE)).unwrap().success()
}

/// The binary of this version.
pub const OUTRIDER: &str = env!("CARGO_BIN_EXE_outrider");

/// The binary that tests start. A benchmark measures it as it is released.
pub fn binary() -> PathBuf {
    std::env::var_os("OUTRIDER_BINARY").map_or_else(|| PathBuf::from(OUTRIDER), PathBuf::from)
}

/// What the command prints.
pub fn outrider(args: &[&str]) -> String {
    printed_by(Path::new(OUTRIDER), args)
}

/// What the command of another version prints.
pub fn printed_by(binary: &Path, args: &[&str]) -> String {
    let output = Command::new(binary).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command against a cluster.
pub fn outrider_on(kubeconfig: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(OUTRIDER);
    let output = command.args(args).arg("--kubeconfig").arg(kubeconfig).env_remove("POD_NAMESPACE").output().unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Installs the CRDs.
pub fn install(cluster: &Cluster) {
    install_of(cluster, &[]);
}

/// The same for a deployment with these flags.
pub fn install_of(cluster: &Cluster, flags: &[&str]) {
    let crds = outrider(&[&["manifests", "crds"], flags].concat());
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&crds)).unwrap();
    cluster.wait_for_definitions().unwrap();
}

/// Makes the namespace, the roles and the policies of a deployment; the kubeconfig has these rights and no others.
pub fn service_account(cluster: &Cluster) -> PathBuf {
    service_account_of(cluster, &[])
}

/// The same for a deployment with these flags.
pub fn service_account_of(cluster: &Cluster, flags: &[&str]) -> PathBuf {
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    for part in ["rbac", "policies"] {
        let part = outrider(&[&["manifests", part], flags].concat());
        cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&part)).unwrap();
    }
    let groups = ["system:serviceaccounts", "system:serviceaccounts:outrider-system", "system:authenticated"];
    cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider", &groups).unwrap()
}

/// A running `outrider serve`.
pub struct Outrider {
    supervisor: Child,
    log: PathBuf,
    /// Where it serves webhooks.
    pub webhooks: SocketAddr,
    health: SocketAddr,
    metrics: SocketAddr,
}

impl Outrider {
    /// With the webhooks registered by URL.
    pub fn registered(cluster: &Cluster) -> Self {
        Self::registered_as(cluster, &cluster.kubeconfig(), &[])
    }

    /// With this kubeconfig, these flags, and the webhooks registered by URL.
    pub fn registered_as(cluster: &Cluster, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::registered_binary(&binary(), cluster, kubeconfig, flags)
    }

    /// The same for another binary.
    pub fn registered_binary(binary: &Path, cluster: &Cluster, kubeconfig: &Path, flags: &[&str]) -> Self {
        let address = free_address();
        let (url, bind) = (format!("--webhook-url=https://{address}"), format!("--webhook-bind-address={address}"));
        let own = ["--certificates=self", "--register-webhooks", &url, &bind];
        Self::start_binary(binary, cluster, kubeconfig, &[&own, flags].concat())
    }

    /// With this kubeconfig and these flags. Its log is with those of the cluster.
    pub fn start(cluster: &Cluster, kubeconfig: &Path, flags: &[&str]) -> Self {
        Self::start_binary(&binary(), cluster, kubeconfig, flags)
    }

    /// The same for the binary of another version.
    pub fn start_binary(binary: &Path, cluster: &Cluster, kubeconfig: &Path, flags: &[&str]) -> Self {
        let (health, metrics) = (free_address(), free_address());
        let given = |name: &str| flags.iter().find_map(|flag| flag.strip_prefix(name));
        let webhooks = given("--webhook-bind-address=").map_or_else(free_address, |text| text.parse().unwrap());
        let log = cluster.dir().join(format!("logs/outrider-{}.log", health.port()));
        let file = File::create(&log).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "supervisor"]).arg(binary).arg("serve");
        command.args(["--log-level=info,outrider=debug", "--log-format=text"]);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.arg(format!("--health-probe-bind-address={health}"));
        command.arg(format!("--metrics-bind-address={metrics}"));
        if given("--webhook-bind-address=").is_none() {
            command.arg(format!("--webhook-bind-address={webhooks}"));
        }
        if given("--drain-delay=").is_none() {
            command.arg("--drain-delay=0s");
        }
        command.args(flags).env_remove("POD_NAMESPACE").process_group(0);
        command.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { supervisor: command.spawn().unwrap(), log, webhooks, health, metrics }
    }

    /// Waits until `/readyz` says so.
    pub fn ready(&self) {
        eventually("the process is ready", || self.is_ready());
    }

    /// Waits until the API server calls this process about sets, and so about pods: an API server learns of a configuration by a watch, a
    /// moment after it is stored, and one configuration has the entries for both.
    pub fn called(&self, cluster: &Cluster) {
        let paths = ["mutate", "validate"].map(|verb| format!("/{verb}-apps-outrider-dev-v1alpha1-sidecarset"));
        eventually("the API server calls the process", || {
            takes_a_set(cluster) && paths.iter().all(|path| self.reviews(path) > 0)
        });
    }

    /// Whether `/readyz` says so.
    pub fn is_ready(&self) -> bool {
        is_ready(self.health)
    }

    /// Where `/metrics` is.
    pub const fn metrics_address(&self) -> SocketAddr {
        self.metrics
    }

    /// Seconds of processor time that the process has used.
    pub fn cpu_seconds(&self) -> f64 {
        let flag = format!("--metrics-bind-address={}", self.metrics);
        let is_ours = |folder: &Path| {
            let arguments = fs::read(folder.join("cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0);
            // The supervisor has the same arguments.
            arguments.next() != Some(b"sh") && arguments.any(|argument| argument == flag.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let folder = processes.into_iter().find(|folder| is_ours(folder)).expect("the process is alive");
        let stat = fs::read_to_string(folder.join("stat")).unwrap();
        // Fields 14 and 15 of proc(5), in hundredths; the second one, a name, may have blanks.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }

    /// Where `/readyz` is.
    pub const fn health(&self) -> SocketAddr {
        self.health
    }

    /// What `/readyz?verbose` says.
    pub fn checks(&self) -> String {
        get(self.health, "/readyz?verbose").unwrap_or_default()
    }

    /// When the certificate that it serves ends, in seconds since 1970.
    pub fn certificate_ends(&self) -> u64 {
        let end = self.metric("outrider_certificate_not_after_timestamp_seconds");
        end.and_then(|seconds| seconds.parse().ok()).unwrap_or_default()
    }

    /// Whether it holds the lease.
    pub fn leads(&self) -> bool {
        self.metric("outrider_leader").as_deref() == Some("1")
    }

    /// The sum of the counters whose lines are meant.
    fn sum(&self, is_meant: impl Fn(&str) -> bool) -> u64 {
        let reply = get(self.metrics, "/metrics").unwrap_or_default();
        let counts = reply.lines().filter(|line| is_meant(line)).filter_map(|line| line.rsplit_once(' '));
        counts.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
    }

    /// Whether its controllers have done anything.
    pub fn has_reconciled(&self) -> bool {
        self.sum(|line| line.starts_with("outrider_reconcile_total{")) > 0
    }

    /// How often the controller reconciled, with whatever result.
    pub fn reconciles_tried(&self, controller: &str) -> u64 {
        let series = format!("outrider_reconcile_total{{controller=\"{controller}\",");
        self.sum(|line| line.starts_with(&series))
    }

    /// How often the controller reconciled with success.
    pub fn reconciles(&self, controller: &str) -> u64 {
        let line = format!("outrider_reconcile_total{{controller=\"{controller}\",result=\"success\"}} ");
        let reply = get(self.metrics, "/metrics").unwrap_or_default();
        reply.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }

    /// The value of a metric without labels.
    pub fn metric(&self, name: &str) -> Option<String> {
        let reply = get(self.metrics, "/metrics")?;
        reply.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned))
    }

    /// How often it was asked at the path.
    pub fn reviews(&self, path: &str) -> u64 {
        let series = format!("outrider_reviews_total{{path=\"{path}\",");
        self.sum(|line| line.starts_with(&series))
    }

    /// How often it got a review of an object before it was stored, at whatever path.
    pub fn admissions(&self) -> u64 {
        self.sum(|line| line.starts_with("outrider_reviews_total{") && !line.contains("/convert"))
    }

    /// Its metrics.
    pub fn metrics(&self) -> String {
        get(self.metrics, "/metrics").unwrap()
    }

    /// What plugins decided, as its metrics count it, but for exemptions.
    pub fn plugin_decisions(&self) -> Vec<String> {
        let metrics = self.metrics();
        let decisions = metrics.lines().filter(|line| line.starts_with("outrider_plugin_decisions_total{"));
        decisions.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
    }

    /// What `/readyz` answers.
    pub fn readyz(&self) -> String {
        get(self.health, "/readyz").unwrap()
    }

    /// Ends the process as the kubelet does, and sees that it ends well.
    pub fn end(mut self) {
        self.signal("TERM");
        self.ended();
    }

    /// Sends the process a signal, by its name without `SIG`.
    pub fn signal(&mut self, name: &str) {
        writeln!(self.supervisor.stdin.as_mut().unwrap(), "{name}").unwrap();
    }

    /// Waits until the process has ended, and sees that it ended well.
    pub fn ended(&mut self) {
        let mut status = None;
        eventually("the process ends", || {
            status = self.supervisor.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success(), "{status:?}");
    }

    /// Ends the process without giving it time for anything.
    pub fn kill(self) {
        drop(self);
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Lines of its log that say that it may not do what it tried.
    pub fn forbidden(&self) -> Vec<String> {
        // What it refuses itself may have the word, too.
        let forbidden = |line: &&str| line.contains("forbidden") && !line.contains("Review answered");
        self.log().lines().filter(forbidden).map(str::to_owned).collect()
    }

    /// The end of its log, for a test that fails.
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}

impl Drop for Outrider {
    fn drop(&mut self) {
        if panicking() {
            eprintln!("--- outrider\n{}", self.log_tail());
        }
        drop(self.supervisor.stdin.take());
        drop(self.supervisor.wait());
    }
}

/// Whether the process with this address of its probes can answer.
pub fn is_ready(health: SocketAddr) -> bool {
    get(health, "/readyz").is_some_and(|reply| reply.contains(" 200 "))
}

/// An address without a listener.
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port().unwrap()).into()
}

/// The reply to a request without TLS.
pub fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    Some(reply)
}
