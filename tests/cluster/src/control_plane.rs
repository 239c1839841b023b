//! Starting, watching and ending the control plane.

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::certificates::{self, Authority, Credentials};
use crate::component::{self, Component, Janitor};
use crate::kubectl::{self, Output};
use crate::{Error, Namespace, Tools, progress_on_stderr};

mod arguments;
mod manifests;
mod waiting;

use arguments::{Files, Ports};
use waiting::listening;

/// Stages by which kwok also does what a kubelet does in a running pod: it restarts containers whose image changes, and reports the resources
/// that they have, without which the API server refuses every resize. Not for tests that play the kubelet themselves.
pub const POD_CHANGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stages/pod-changes.yaml");

/// What kind of cluster to start. The default is a whole one.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keep an audit log (level Metadata, one event a request), for tests that count requests.
    pub audit: bool,
    /// Feature gates of the API server, as in `MutatingAdmissionPolicy=true`.
    pub feature_gates: Vec<String>,
    /// More arguments for the API server; the last of two equal ones wins.
    pub extra_apiserver_args: Vec<String>,
    /// Run the scheduler, and kwok with two nodes on which every pod becomes Ready.
    pub kwok: bool,
    /// Files with more stages for kwok, such as [`POD_CHANGES`].
    pub kwok_stages: Vec<PathBuf>,
    /// Address of a node that the caller makes: the API server can then be reached there and by its pods, and the scheduler
    /// runs also without kwok.
    pub node_address: Option<Ipv4Addr>,
    /// Run the controller-manager. Without it there are no service accounts, so create Deployments but no pods.
    pub controller_manager: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            audit: false,
            feature_gates: Vec::new(),
            extra_apiserver_args: Vec::new(),
            kwok: true,
            kwok_stages: Vec::new(),
            node_address: None,
            controller_manager: true,
        }
    }
}

/// A running cluster. Dropping it ends all its processes and removes its directory; so does the end of this process,
/// whatever ends it.
pub struct Cluster {
    dir: PathBuf,
    tools: Tools,
    apiserver_port: u16,
    authority: Authority,
    admin: Credentials,
    audit: bool,
    namespaces: AtomicU32,
    components: Vec<Component>,
    janitor: Option<Janitor>,
}

impl Cluster {
    /// Starts a whole cluster; see [`Cluster::start_with`].
    ///
    /// # Errors
    /// As [`Cluster::start_with`].
    pub fn start() -> Result<Self, Error> {
        Self::start_with(&Options::default())
    }

    /// Builds what is missing (minutes, the first time; progress on stderr), starts the cluster and waits until it can be
    /// used: the API server and the nodes are ready and the `default` service account exists.
    ///
    /// # Errors
    /// If a program cannot be built, ends by itself twice (the second time with other ports), or is not ready in time.
    pub fn start_with(options: &Options) -> Result<Self, Error> {
        let locate = if options.node_address.is_some() { Tools::locate_for_node } else { Tools::locate };
        let tools = locate(&progress_on_stderr)?;
        match Self::start_once(options, tools.clone()) {
            // Ports are chosen by binding and releasing, so another process may have taken one in between.
            Err(Error::Ended { .. }) => Self::start_once(options, tools),
            started => started,
        }
    }

    /// The cluster that all tests of one test binary share; it ends with the process.
    ///
    /// # Errors
    /// As [`Cluster::start`]; every caller gets the same error.
    pub fn shared() -> Result<&'static Self, &'static Error> {
        static SHARED: OnceLock<Result<Cluster, Error>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    fn start_once(options: &Options, tools: Tools) -> Result<Self, Error> {
        let temporary = std::env::temp_dir();
        let dir = tempfile::Builder::new()
            .prefix("outrider-cluster-")
            .tempdir()
            .map_err(|e| Error::io("create a directory in", &temporary, e))?;
        let janitor = Janitor::start(dir.path())?;
        let authority = Authority::new()?;
        let admin = authority.client("admin", &["system:masters"])?;
        let ports = Ports::choose()?;
        let mut cluster = Self {
            dir: dir.keep(),
            tools,
            apiserver_port: ports.apiserver,
            authority,
            admin,
            audit: options.audit,
            namespaces: AtomicU32::new(0),
            components: Vec::new(),
            janitor: Some(janitor),
        };
        cluster.bring_up(options, ports)?;
        Ok(cluster)
    }

    fn bring_up(&mut self, options: &Options, ports: Ports) -> Result<(), Error> {
        let files = Files::write(&self.dir, &self.authority, options.node_address)?;
        self.write_kubeconfig("admin", &self.admin)?;
        self.run("etcd", &arguments::etcd(&self.dir, ports))?;
        self.wait_for("etcd to listen", || Ok(listening(ports.etcd_client)))?;
        self.run("kube-apiserver", &arguments::kube_apiserver(&self.dir, &files, ports, options))?;
        self.wait_for("kube-apiserver to listen", || Ok(listening(ports.apiserver)))?;
        self.wait_for_kubectl("the API server to be ready", &["get", "--raw=/readyz"], "ok")?;
        if options.controller_manager {
            let kubeconfig = self.kubeconfig_for("system:kube-controller-manager", &[])?;
            self.run("kube-controller-manager", &arguments::kube_controller_manager(&kubeconfig, &files))?;
        }
        if options.kwok || options.node_address.is_some() {
            let kubeconfig = self.kubeconfig_for("system:kube-scheduler", &[])?;
            self.run("kube-scheduler", &arguments::kube_scheduler(&kubeconfig))?;
        }
        if options.kwok {
            let kubeconfig = self.kubeconfig_for("kwok", &["system:masters"])?;
            let stages = [self.tools.kwok_stages(), &options.kwok_stages].concat();
            self.run("kwok", &arguments::kwok(&kubeconfig, &stages))?;
            self.kubectl_ok(&["create", "-f", "-"], Some(&manifests::nodes()))?;
            let ready = "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}";
            self.wait_for_kubectl("the nodes to be Ready", &["get", "nodes", ready], "True True")?;
        }
        if options.controller_manager {
            self.wait_for_service_account("default")?;
        }
        Ok(())
    }

    /// Starts one more program of [`Cluster::tools`] that belongs to the cluster: it is watched and ended like the others.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&mut self, name: &'static str, args: &[String]) -> Result<(), Error> {
        let component = Component::start(name, self.tools.program(name), args, &self.dir)?;
        self.components.push(component);
        Ok(())
    }

    /// The directory that holds everything of this cluster: `logs/`, `kubeconfig/`, certificates and data.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The programs that it is made of.
    pub const fn tools(&self) -> &Tools {
        &self.tools
    }

    /// The version of the API server, as in `v1.36.3`.
    pub fn version(&self) -> &str {
        &self.tools.version
    }

    /// As [`Tools::minor_version`].
    pub fn minor_version(&self) -> u32 {
        self.tools.minor_version()
    }

    /// The API server's address, `https://127.0.0.1:<port>`.
    pub fn apiserver_url(&self) -> String {
        arguments::loopback("https", self.apiserver_port)
    }

    /// The certificate that signs the API server's and all clients' certificates, PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    /// The credentials of `admin`, in the group `system:masters`.
    pub const fn admin_credentials(&self) -> &Credentials {
        &self.admin
    }

    /// The kubeconfig file of `admin`. It names its certificates by absolute path.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_path("admin")
    }

    /// Writes a kubeconfig file for another user, for tests of RBAC, and gives its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        self.write_kubeconfig(user, &self.authority.client(user, groups)?)
    }

    fn write_kubeconfig(&self, user: &str, credentials: &Credentials) -> Result<PathBuf, Error> {
        let (certificate, key) = certificates::write_pair(&self.dir, &file_name(user), credentials)?;
        let text = certificates::kubeconfig(&self.apiserver_url(), &arguments::ca_file(&self.dir), &certificate, &key);
        let path = self.kubeconfig_path(user);
        certificates::write_private(&path, &text)?;
        Ok(path)
    }

    fn kubeconfig_path(&self, user: &str) -> PathBuf {
        self.dir.join("kubeconfig").join(file_name(user))
    }

    /// Runs kubectl as `admin`, with `stdin` as its standard input.
    ///
    /// # Errors
    /// Only if it cannot be run: its own failure is in the [`Output`].
    pub fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<Output, Error> {
        let program = self.tools.program("kubectl");
        let mut command = self.command(program);
        command.args(args);
        kubectl::run(command, stdin).map_err(|error| Error::io("run", program, error))
    }

    /// A program that uses the cluster as `admin`: kubectl, or what runs it. kubectl keeps its discovery cache with the
    /// cluster; it would otherwise keep it under the home directory by host and port, where a later cluster on the same port
    /// would find another cluster's API.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", self.kubeconfig()).env("KUBECACHEDIR", self.dir.join("kubectl-cache"));
        component::spare_the_processor(&mut command);
        command
    }

    /// Runs kubectl as `admin` and gives its standard output.
    ///
    /// # Errors
    /// If it fails; the error holds its standard error.
    pub fn kubectl_ok(&self, args: &[&str], stdin: Option<&str>) -> Result<String, Error> {
        kubectl::must_succeed(args, self.kubectl(args, stdin)?)
    }

    /// Creates a namespace `<prefix>-<number>` of this cluster's, in which pods can be created at once.
    ///
    /// # Errors
    /// If the API server refuses it.
    pub fn namespace(&self, prefix: &str) -> Result<Namespace<'_>, Error> {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        self.kubectl_ok(&["create", "namespace", &name], None)?;
        let namespace = Namespace::new(self, name);
        if self.components.iter().any(|component| component.name() == "kube-controller-manager") {
            self.wait_for_service_account(namespace.name())?;
        }
        Ok(namespace)
    }

    /// Stops a component in the middle of what it does, as a disk or a machine that hangs would.
    ///
    /// # Errors
    /// If there is no such component, or it has ended.
    pub fn pause(&self, component: &str) -> Result<(), Error> {
        self.component(component)?.signal("STOP")
    }

    /// Lets a component go on that was paused.
    ///
    /// # Errors
    /// As [`Cluster::pause`].
    pub fn resume(&self, component: &str) -> Result<(), Error> {
        self.component(component)?.signal("CONT")
    }

    /// Kills a component, starts it again, and waits until the API server is ready.
    ///
    /// # Errors
    /// If there is no such component, or the API server is not ready in time.
    pub fn restart(&self, component: &str) -> Result<(), Error> {
        self.component(component)?.restart()?;
        self.wait_for_kubectl("the API server to be ready", &["get", "--raw=/readyz"], "ok")
    }

    fn component(&self, name: &str) -> Result<&Component, Error> {
        let found = self.components.iter().find(|component| component.name() == name);
        found.ok_or_else(|| Error::NoComponent(name.to_owned()))
    }

    /// All audit events so far (`audit.k8s.io/v1 Event`), oldest first; needs [`Options::audit`].
    ///
    /// # Errors
    /// If the cluster keeps no audit log, or it cannot be read.
    pub fn audit_events(&self) -> Result<Vec<serde_json::Value>, Error> {
        if !self.audit {
            return Err(Error::Audit("none is kept: start the cluster with Options { audit: true, .. }".to_owned()));
        }
        let path = arguments::audit_log(&self.dir);
        let text = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, e))?;
        // What follows the last line break is still being written.
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let events = complete.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        events.map_err(|error| Error::Audit(format!("{}: {error}", path.display())))
    }

    /// The ends of all components' logs, for a failure message.
    pub fn log_tails(&self) -> String {
        let tail = |component: &Component| format!("--- {}\n{}\n", component.name(), component.log_tail());
        self.components.iter().map(tail).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log_tails());
        }
        self.components.iter().for_each(Component::stop);
        self.components.iter().for_each(Component::wait);
        // Only now nothing writes into the directory any more.
        drop(self.janitor.take());
    }
}

/// User names may hold characters that file names may not, such as the `/` of a SPIFFE identity.
fn file_name(user: &str) -> String {
    user.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
