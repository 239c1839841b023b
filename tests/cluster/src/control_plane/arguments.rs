//! The command lines of the components.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;

use super::{Options, manifests};
use crate::Error;
use crate::certificates::{self, Authority};
use crate::ports::free_port;

/// The first address of the range is the `kubernetes` Service.
const SERVICE_RANGE: &str = "10.0.0.0/16";
const SERVICE_ADDRESS: &str = "10.0.0.1";
const POD_RANGE: &str = "10.1.0.0/16";

/// Loopback ports that were free a moment ago.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) etcd_client: u16,
    etcd_peer: u16,
    pub(super) apiserver: u16,
}

impl Ports {
    pub(super) fn choose() -> Result<Self, Error> {
        let free = || {
            free_port().map_err(|source| Error::Io { what: "cannot find a free port on 127.0.0.1".to_owned(), source })
        };
        Ok(Self { etcd_client: free()?, etcd_peer: free()?, apiserver: free()? })
    }
}

/// The files that several components read.
pub(super) struct Files {
    ca: PathBuf,
    serving: (PathBuf, PathBuf),
    service_account_key: PathBuf,
    service_account_public_key: PathBuf,
    audit_policy: PathBuf,
}

impl Files {
    /// Makes the directory's layout and writes them.
    pub(super) fn write(dir: &Path, authority: &Authority, node: Option<Ipv4Addr>) -> Result<Self, Error> {
        for name in ["logs", "kubeconfig"] {
            let path = dir.join(name);
            fs::create_dir(&path).map_err(|e| Error::io("create", &path, e))?;
        }
        let node = node.unwrap_or(Ipv4Addr::LOCALHOST).to_string();
        let names = [
            "127.0.0.1",
            "localhost",
            SERVICE_ADDRESS,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            &node,
        ];
        let service_account = KeyPair::generate()?;
        let files = Self {
            ca: ca_file(dir),
            serving: certificates::write_pair(dir, "apiserver", &authority.server(&names)?)?,
            service_account_key: dir.join("service-account.key"),
            service_account_public_key: dir.join("service-account.pub"),
            audit_policy: dir.join("audit-policy.yaml"),
        };
        certificates::write_private(&files.service_account_key, &service_account.serialize_pem())?;
        let public = [
            (&files.ca, authority.pem()),
            (&files.service_account_public_key, service_account.public_key_pem()),
            (&files.audit_policy, manifests::AUDIT_POLICY.to_owned()),
        ];
        for (path, text) in public {
            fs::write(path, text).map_err(|e| Error::io("write", path, e))?;
        }
        Ok(files)
    }
}

/// Where the authority's certificate is.
pub(crate) fn ca_file(dir: &Path) -> PathBuf {
    dir.join("ca.crt")
}

/// Where the API server writes audit events.
pub(super) fn audit_log(dir: &Path) -> PathBuf {
    dir.join("logs/audit.log")
}

pub(super) fn loopback(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn flags(fixed: &[&str]) -> Vec<String> {
    fixed.iter().map(ToString::to_string).collect()
}

/// Its data is thrown away with the cluster, so nothing waits for the disk.
pub(super) fn etcd(dir: &Path, ports: Ports) -> Vec<String> {
    let (client, peer) = (loopback("http", ports.etcd_client), loopback("http", ports.etcd_peer));
    let mut args = flags(&["--name=etcd", "--unsafe-no-fsync", "--log-level=warn"]);
    args.extend([
        flag("data-dir", &dir.join("etcd")),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=etcd={peer}"),
    ]);
    args
}

pub(super) fn kube_apiserver(dir: &Path, files: &Files, ports: Ports, options: &Options) -> Vec<String> {
    let mut args = flags(&[
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--profiling=false",
        "--service-account-issuer=https://kubernetes.default.svc",
    ]);
    args.extend([
        format!("--etcd-servers={}", loopback("http", ports.etcd_client)),
        format!("--secure-port={}", ports.apiserver),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        flag("client-ca-file", &files.ca),
        flag("tls-cert-file", &files.serving.0),
        flag("tls-private-key-file", &files.serving.1),
        flag("service-account-key-file", &files.service_account_public_key),
        flag("service-account-signing-key-file", &files.service_account_key),
    ]);
    match options.node_address {
        Some(address) => {
            args.push("--bind-address=0.0.0.0".to_owned());
            args.push(format!("--advertise-address={address}"));
            // For `kubectl logs` and `exec`; the name of the node does not resolve.
            args.push("--kubelet-preferred-address-types=InternalIP".to_owned());
            args.push(flag("kubelet-client-certificate", &dir.join("admin.crt")));
            args.push(flag("kubelet-client-key", &dir.join("admin.key")));
        }
        // A loopback address cannot be an endpoint of the `kubernetes` Service, and nothing here uses that Service.
        None => args.extend(flags(&[
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
        ])),
    }
    if options.audit {
        args.push(flag("audit-policy-file", &files.audit_policy));
        args.push(flag("audit-log-path", &audit_log(dir)));
        // In megabytes; the log must not be rotated away under a test that counts.
        args.push("--audit-log-maxsize=100000".to_owned());
    }
    if !options.feature_gates.is_empty() {
        args.push(format!("--feature-gates={}", options.feature_gates.join(",")));
    }
    args.extend(options.extra_apiserver_args.iter().cloned());
    args
}

/// No port of its own: its health and metrics are not read. Its client limits are for real clusters; here they would
/// only slow tests down.
pub(super) fn kube_controller_manager(kubeconfig: &Path, files: &Files) -> Vec<String> {
    let mut args = flags(&[
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]);
    args.extend([
        flag("kubeconfig", kubeconfig),
        flag("root-ca-file", &files.ca),
        flag("service-account-private-key-file", &files.service_account_key),
    ]);
    args
}

pub(super) fn kube_scheduler(kubeconfig: &Path) -> Vec<String> {
    let mut args = flags(&["--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"]);
    args.push(flag("kubeconfig", kubeconfig));
    args
}

/// It ends with "no stages found" unless it is given some: the configuration that is built in has none. Without leases the
/// nodes would be lost after node-monitor-grace-period (50 s), and the controller-manager would make their pods unready.
pub(super) fn kwok(kubeconfig: &Path, stages: &[PathBuf]) -> Vec<String> {
    let mut args = flags(&["--manage-all-nodes", "--node-lease-duration-seconds=40"]);
    args.push(format!("--cidr={POD_RANGE}"));
    args.push(flag("kubeconfig", kubeconfig));
    args.extend(stages.iter().map(|stage| flag("config", stage)));
    args
}
