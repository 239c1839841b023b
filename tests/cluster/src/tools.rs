//! The programs that a cluster is made of: found, or built once into a cache outside the checkout.

use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

mod build;
mod module;

use module::{CERT_MANAGER, CONTAINERD, HELM, KUBERNETES, Module, PROMTOOL, Pinned};

/// Takes one line of progress at a time.
pub type Progress<'a> = &'a dyn Fn(&str);

/// Writes `line` to stderr, past the capturing of test output: who waits for minutes must see why.
pub fn progress_on_stderr(line: &str) {
    // If that fails, stderr is closed.
    drop(writeln!(std::io::stderr(), "cluster: {line}"));
}

/// A program, and the Go package that it is built from.
#[derive(Clone, Debug)]
struct Tool {
    name: &'static str,
    package: &'static str,
    /// `KUBE_VERSION` chooses the version of those of `KUBERNETES` that Kubernetes releases.
    module: &'static Pinned,
    released_with_kubernetes: bool,
    /// Only a whole node needs it.
    node: bool,
    files: Option<Files>,
}

/// Files of a Go module that are kept beside a program, because it has none built in.
#[derive(Clone, Debug)]
struct Files {
    module: &'static str,
    from: &'static str,
    names: &'static [&'static str],
    /// Where they are kept, beside the program.
    folder: &'static str,
}

const fn tool(name: &'static str, package: &'static str, module: &'static Pinned) -> Tool {
    Tool { name, package, module, released_with_kubernetes: false, node: false, files: None }
}

const fn kubernetes(name: &'static str, package: &'static str) -> Tool {
    Tool { released_with_kubernetes: true, ..tool(name, package, &KUBERNETES) }
}

/// Those that make nodes stay Ready and pods Ready, Succeeded (of Jobs) and gone, as soon as they can be.
const KWOK_STAGES: Files = Files {
    module: "sigs.k8s.io/kwok",
    from: "kustomize/stage",
    names: &[
        "node/fast/node-initialize.yaml",
        "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "pod/fast/pod-ready.yaml",
        "pod/fast/pod-complete.yaml",
        "pod/fast/pod-delete.yaml",
    ],
    folder: "kwok-stages",
};

const CERT_MANAGER_CRDS: Files = Files {
    module: "github.com/cert-manager/cert-manager",
    from: "deploy/crds",
    names: &[
        "acme.cert-manager.io_challenges.yaml",
        "acme.cert-manager.io_orders.yaml",
        "cert-manager.io_certificaterequests.yaml",
        "cert-manager.io_certificates.yaml",
        "cert-manager.io_clusterissuers.yaml",
        "cert-manager.io_issuers.yaml",
    ],
    folder: "cert-manager-crds",
};

/// The order in which they are built: small ones first, so that trouble with the toolchain shows early.
static TOOLS: [Tool; 14] = [
    tool("etcd", "go.etcd.io/etcd/server/v3", &KUBERNETES),
    Tool { files: Some(KWOK_STAGES), ..tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", &KUBERNETES) },
    tool("helm", "helm.sh/helm/v3/cmd/helm", &HELM),
    tool("promtool", "github.com/prometheus/prometheus/cmd/promtool", &PROMTOOL),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Tool { node: true, ..kubernetes("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy") },
    Tool { node: true, ..kubernetes("kubelet", "k8s.io/kubernetes/cmd/kubelet") },
    Tool { node: true, ..tool("containerd", "github.com/containerd/containerd/v2/cmd/containerd", &CONTAINERD) },
    Tool {
        node: true,
        ..tool(
            "containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            &CONTAINERD,
        )
    },
    Tool { node: true, ..tool("ctr", "github.com/containerd/containerd/v2/cmd/ctr", &CONTAINERD) },
    Tool { node: true, files: Some(CERT_MANAGER_CRDS), ..tool("cert-manager", ".", &CERT_MANAGER) },
];

/// What a folder named by `KUBEBUILDER_ASSETS` must hold: setup-envtest puts these three into it.
const ASSETS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// How much to locate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    ControlPlane,
    Node,
}

/// Where everything that a cluster needs is.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The API server's version, as in `v1.36.3`.
    pub version: String,
    programs: BTreeMap<&'static str, PathBuf>,
    files: BTreeMap<&'static str, Vec<PathBuf>>,
}

impl Tools {
    /// Finds what a control plane and its users need: the programs in the folder `KUBEBUILDER_ASSETS`, if it is set, else in the cache, and builds what is in
    /// neither (`KUBE_VERSION` chooses another Kubernetes release). Two processes that do so at once build once.
    ///
    /// # Errors
    /// If the folder lacks a program, `KUBE_VERSION` is no release, or `go` is missing or fails.
    pub fn locate(progress: Progress) -> Result<Self, Error> {
        Self::locate_set(Set::ControlPlane, progress)
    }

    /// As [`Tools::locate`], with what a whole node needs: kubelet, containerd, kube-proxy, and cert-manager.
    ///
    /// # Errors
    /// As [`Tools::locate`].
    pub fn locate_for_node(progress: Progress) -> Result<Self, Error> {
        Self::locate_set(Set::Node, progress)
    }

    fn locate_set(set: Set, progress: Progress) -> Result<Self, Error> {
        let setting = |name| env::var_os(name).filter(|value| !value.is_empty());
        let release = setting("KUBE_VERSION").map(|value| value.to_string_lossy().into_owned());
        let assets = setting("KUBEBUILDER_ASSETS").map(PathBuf::from);
        Self::locate_in(&cache_root()?, set, assets.as_deref(), release.as_deref(), progress)
    }

    fn locate_in(
        cache: &Path,
        set: Set,
        assets: Option<&Path>,
        release: Option<&str>,
        progress: Progress,
    ) -> Result<Self, Error> {
        let kubernetes = release.map_or_else(|| Ok(Module::pinned(&KUBERNETES)), Module::release)?;
        let mut programs = assets.map_or_else(|| Ok(BTreeMap::new()), assets_in)?;
        let version = match programs.get("kube-apiserver") {
            Some(apiserver) => version_of(apiserver)?,
            None => kubernetes.version.clone(),
        };
        let mut files = BTreeMap::new();
        let mut missing = Vec::new();
        for tool in TOOLS.iter().filter(|tool| set == Set::Node || !tool.node) {
            let module = if tool.released_with_kubernetes { kubernetes.clone() } else { Module::pinned(tool.module) };
            let dir = module.dir(cache);
            if let Some(beside) = &tool.files {
                files.insert(tool.name, build::files_of(beside, &dir));
            }
            let path = dir.join(tool.name);
            if !programs.contains_key(tool.name) {
                if !path.is_file() {
                    missing.push((tool, module));
                }
                programs.insert(tool.name, path);
            }
        }
        build::build(cache, &missing, progress)?;
        Ok(Self { version, programs, files })
    }

    /// The API server's minor version: 36 for `v1.36.3`. 0 if its version is none.
    pub fn minor_version(&self) -> u32 {
        self.version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
    }

    /// kwok's own stages for nodes and pods.
    pub fn kwok_stages(&self) -> &[PathBuf] {
        self.files.get("kwok").map_or(&[], Vec::as_slice)
    }

    /// The definitions of cert-manager's kinds; none unless located for a node.
    pub fn cert_manager_crds(&self) -> &[PathBuf] {
        self.files.get("cert-manager").map_or(&[], Vec::as_slice)
    }

    /// The path of a program. A name that is none of a cluster's programs is its own path, so that it fails as "not found".
    pub fn program<'a>(&'a self, name: &'a str) -> &'a Path {
        self.programs.get(name).map_or_else(|| Path::new(name), PathBuf::as_path)
    }

    /// All programs by name.
    pub const fn programs(&self) -> &BTreeMap<&'static str, PathBuf> {
        &self.programs
    }
}

/// `${XDG_CACHE_HOME:-$HOME/.cache}/outrider`.
pub(crate) fn cache_home() -> Result<PathBuf, Error> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // The XDG base directory specification wants relative paths ignored.
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("outrider")).ok_or(Error::NoCache)
}

fn cache_root() -> Result<PathBuf, Error> {
    Ok(cache_home()?.join("cluster-tools"))
}

fn assets_in(dir: &Path) -> Result<BTreeMap<&'static str, PathBuf>, Error> {
    let mut programs = BTreeMap::new();
    for tool in &TOOLS {
        let path = dir.join(tool.name);
        if path.is_file() {
            programs.insert(tool.name, path);
        } else if ASSETS.contains(&tool.name) {
            return Err(Error::Assets { dir: dir.display().to_string(), tool: tool.name });
        }
    }
    Ok(programs)
}

/// `kube-apiserver --version` prints `Kubernetes v1.36.3`.
fn version_of(apiserver: &Path) -> Result<String, Error> {
    let output = Command::new(apiserver).arg("--version").output().map_err(|e| Error::io("run", apiserver, e))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim().trim_start_matches("Kubernetes ").to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(dir: &Path, name: &str) {
        fs::create_dir_all(dir).unwrap();
        let path = dir.join(name);
        fs::write(&path, "#!/bin/sh\necho Kubernetes v1.33.1\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A cache in which all programs have been built, those of Kubernetes in the version of `kubernetes`.
    fn fill(cache: &Path, kubernetes: &Module) {
        for tool in &TOOLS {
            let module = Module::pinned(tool.module);
            put(&if tool.released_with_kubernetes { kubernetes } else { &module }.dir(cache), tool.name);
        }
    }

    #[test]
    fn what_was_built_is_found_without_go() {
        let cache = tempfile::tempdir().unwrap();
        let pinned = Module::pinned(&KUBERNETES);
        fill(cache.path(), &pinned);
        let tools = Tools::locate_in(cache.path(), Set::ControlPlane, None, None, &|line| panic!("{line}")).unwrap();
        assert_eq!(tools.version, pinned.version);
        assert_eq!(tools.program("kwok"), pinned.dir(cache.path()).join("kwok"));
        assert_eq!(tools.kwok_stages().len(), KWOK_STAGES.names.len());
    }

    #[test]
    fn a_node_needs_more_than_a_control_plane() {
        let cache = tempfile::tempdir().unwrap();
        fill(cache.path(), &Module::pinned(&KUBERNETES));
        let located = |set| Tools::locate_in(cache.path(), set, None, None, &|line| panic!("{line}")).unwrap();
        let (control_plane, node) = (located(Set::ControlPlane), located(Set::Node));
        for name in ["kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr", "cert-manager"] {
            assert!(!control_plane.programs().contains_key(name) && node.program(name).is_file(), "{name}");
        }
        assert_eq!(node.cert_manager_crds().len(), CERT_MANAGER_CRDS.names.len());
        assert!(control_plane.cert_manager_crds().is_empty());
    }

    #[test]
    fn assets_come_before_the_cache_and_tell_the_version() {
        let cache = tempfile::tempdir().unwrap();
        let assets = tempfile::tempdir().unwrap();
        let pinned = Module::pinned(&KUBERNETES);
        fill(cache.path(), &pinned);
        for name in ASSETS {
            put(assets.path(), name);
        }
        let tools =
            Tools::locate_in(cache.path(), Set::ControlPlane, Some(assets.path()), None, &|line| panic!("{line}"))
                .unwrap();
        assert_eq!(tools.version, "v1.33.1");
        assert_eq!(tools.program("etcd"), assets.path().join("etcd"));
        assert_eq!(tools.program("kube-scheduler"), pinned.dir(cache.path()).join("kube-scheduler"));
    }

    #[test]
    fn assets_without_a_program_are_refused_by_its_name() {
        let assets = tempfile::tempdir().unwrap();
        put(assets.path(), "etcd");
        let error = assets_in(assets.path()).unwrap_err().to_string();
        assert!(error.contains("holds no `kubectl`"), "{error}");
    }

    #[test]
    fn another_release_has_programs_of_its_own_but_shares_etcd_and_kwok() {
        let cache = tempfile::tempdir().unwrap();
        let (pinned, other) = (Module::pinned(&KUBERNETES), Module::release("1.35.2").unwrap());
        fill(cache.path(), &pinned);
        fill(cache.path(), &other);
        let tools =
            Tools::locate_in(cache.path(), Set::ControlPlane, None, Some("1.35.2"), &|line| panic!("{line}")).unwrap();
        assert_eq!(tools.version, "v1.35.2");
        assert_eq!(tools.program("kubectl"), other.dir(cache.path()).join("kubectl"));
        assert_eq!(tools.program("etcd"), pinned.dir(cache.path()).join("etcd"));
    }
}
