//! Starting the node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use cluster::{Cluster, Options};

use crate::host::ADDRESS;
use crate::{Image, settings};

/// The node's name.
pub(crate) const NAME: &str = "node-0";

/// A running node with its control plane, and cert-manager's controllers. Dropping it ends them.
pub struct Node {
    cluster: Cluster,
}

impl Node {
    /// Starts everything, brings the images in, and waits until the node is Ready. Only inside [`crate::isolated`].
    ///
    /// # Panics
    /// If something does not start; the ends of the logs are shown.
    pub fn start(images: &[Image]) -> Self {
        let address = ADDRESS.parse().expect("an address");
        let options = Options { kwok: false, node_address: Some(address), ..Options::default() };
        let mut cluster = Cluster::start_with(&options).unwrap_or_else(|error| panic!("{error}"));
        let dir = cluster.dir().to_owned();
        let socket = containerd(&mut cluster, &dir);
        let apps = Image::apps(&dir.join("app"));
        for image in images.iter().chain(&apps) {
            import(&cluster, &socket, image);
        }
        kubelet(&mut cluster, &dir, &socket);
        let kubeconfig = cluster.kubeconfig_for("system:kube-proxy", &[]).expect("a kubeconfig");
        let minor = cluster.version().split('.').nth(1).and_then(|minor| minor.parse().ok()).expect("a release");
        run(&mut cluster, "kube-proxy", &settings::kube_proxy(&kubeconfig, minor));
        cert_manager(&mut cluster);
        let ready = ["get", "node", NAME, "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}"];
        let ready = cluster.wait_for_kubectl("the node to be Ready", &ready, "True");
        ready.and_then(|()| cluster.check()).unwrap_or_else(|error| panic!("{error}"));
        // The kubelet does not measure local storage here, and without this no pod that requests some can be scheduled. It leaves
        // capacities that it does not know as they are (`MachineInfo` in `pkg/kubelet/nodestatus`).
        let storage =
            r#"{"status":{"capacity":{"ephemeral-storage":"10Gi"},"allocatable":{"ephemeral-storage":"10Gi"}}}"#;
        let patch = ["patch", "node", NAME, "--subresource=status", "--patch", storage];
        cluster.kubectl_ok(&patch, None).unwrap_or_else(|error| panic!("{error}"));
        Self { cluster }
    }

    /// Its control plane, with all that runs beside it.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Runs helm as the administrator.
    ///
    /// # Panics
    /// If it cannot be run.
    pub fn helm(&self, args: &[&str]) -> Output {
        let mut helm = Command::new(self.cluster.tools().program("helm"));
        let home = self.cluster.dir().join("helm");
        helm.args(args).env("KUBECONFIG", self.cluster.kubeconfig()).env("HOME", &home);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            helm.env(variable, &home);
        }
        helm.output().unwrap_or_else(|error| panic!("cannot run helm: {error}"))
    }
}

fn run(cluster: &mut Cluster, name: &'static str, args: &[String]) {
    cluster.run(name, args).unwrap_or_else(|error| panic!("{error}"));
}

fn write(path: &Path, text: &str) {
    let dir = path.parent().unwrap_or_else(|| Path::new("/"));
    let written = fs::create_dir_all(dir).and_then(|()| fs::write(path, text));
    written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Gives its socket, once it answers.
fn containerd(cluster: &mut Cluster, dir: &Path) -> PathBuf {
    // Short: a socket's path has 108 bytes at most.
    let socket = PathBuf::from("/run/containerd.sock");
    let (config, cni) = (dir.join("containerd.toml"), dir.join("cni"));
    write(&cni.join("10-pods.conflist"), &settings::cni());
    write(&config, &settings::containerd(dir, &cni, &socket));
    run(cluster, "containerd", &[format!("--config={}", config.display())]);
    let answers = || {
        let output = ctr(cluster, &socket).args(["version"]).output();
        Ok(output
            .ok()
            .filter(|output| !output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    cluster.wait_for("containerd to answer", answers).unwrap_or_else(|error| panic!("{error}"));
    socket
}

fn ctr(cluster: &Cluster, socket: &Path) -> Command {
    let mut ctr = Command::new(cluster.tools().program("ctr"));
    ctr.arg("--address").arg(socket).args(["--namespace", "k8s.io"]);
    ctr
}

fn import(cluster: &Cluster, socket: &Path, image: &Image) {
    let file = image.file();
    let output = ctr(cluster, socket).args(["images", "import", "--local", "--snapshotter=native"]).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run ctr: {error}"));
    assert!(output.status.success(), "cannot import {}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
}

fn kubelet(cluster: &mut Cluster, dir: &Path, socket: &Path) {
    let user = format!("system:node:{NAME}");
    let kubeconfig = cluster.kubeconfig_for(&user, &["system:nodes"]).unwrap_or_else(|error| panic!("{error}"));
    let config = dir.join("kubelet.json");
    write(&config, &settings::kubelet(&dir.join("ca.crt"), socket));
    let args = [
        format!("--config={}", config.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={ADDRESS}"),
        format!("--root-dir={}", dir.join("kubelet").display()),
    ];
    run(cluster, "kubelet", &args);
}

fn cert_manager(cluster: &mut Cluster) {
    let files: Vec<String> =
        cluster.tools().cert_manager_crds().iter().map(|file| file.display().to_string()).collect();
    let mut apply = vec!["apply", "--server-side"];
    for file in &files {
        apply.extend(["-f", file]);
    }
    let applied = cluster.kubectl_ok(&apply, None).and_then(|_| cluster.wait_for_definitions());
    applied.unwrap_or_else(|error| panic!("{error}"));
    let kubeconfig = cluster.kubeconfig().display().to_string();
    run(cluster, "cert-manager", &[kubeconfig]);
}

impl Drop for Node {
    fn drop(&mut self) {
        if thread::panicking() {
            for args in [
                &["get", "pods", "--all-namespaces", "--output=wide"][..],
                &["get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"],
                &["logs", "--namespace=outrider-system", "--selector=app.kubernetes.io/name=outrider", "--tail=15"],
            ] {
                let output = self.cluster.kubectl_ok(args, None).unwrap_or_else(|error| error.to_string());
                eprintln!("--- kubectl {}\n{output}", args.join(" "));
            }
        }
    }
}
