//! The programs that a cluster is made of: found, or built once into a cache outside the checkout.

use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

mod build;
mod module;

use module::Module;

/// Takes one line of progress at a time.
pub type Progress<'a> = &'a dyn Fn(&str);

/// Writes `line` to stderr, past the capturing of test output: who waits for minutes must see why.
pub fn progress_on_stderr(line: &str) {
    // Nobody is there to be told that stderr is closed.
    drop(writeln!(std::io::stderr(), "cluster: {line}"));
}

/// A program, and the Go package that it is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tool {
    name: &'static str,
    package: &'static str,
    /// Released with Kubernetes, so `KUBE_VERSION` chooses its version.
    kubernetes: bool,
}

/// The order in which they are built: small ones first, so that trouble with the toolchain shows early.
const TOOLS: [Tool; 6] = [
    Tool { name: "etcd", package: "go.etcd.io/etcd/server/v3", kubernetes: false },
    Tool { name: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok", kubernetes: false },
    Tool { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl", kubernetes: true },
    Tool { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver", kubernetes: true },
    Tool { name: "kube-scheduler", package: "k8s.io/kubernetes/cmd/kube-scheduler", kubernetes: true },
    Tool {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        kubernetes: true,
    },
];

/// What a folder named by `KUBEBUILDER_ASSETS` must hold: setup-envtest puts these three into it.
const ASSETS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];

/// Where everything that a cluster needs is.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The API server's version, as in `v1.36.3`.
    pub version: String,
    /// kwok's own stages for nodes and pods.
    pub kwok_stages: Vec<PathBuf>,
    programs: BTreeMap<&'static str, PathBuf>,
}

impl Tools {
    /// Finds the programs in the folder `KUBEBUILDER_ASSETS`, if it is set, else in the cache, and builds what is in
    /// neither (`KUBE_VERSION` chooses another Kubernetes release). Two processes that do so at once build once.
    ///
    /// # Errors
    /// If the folder lacks a program, `KUBE_VERSION` is no release, or `go` is missing or fails.
    pub fn locate(progress: Progress) -> Result<Self, Error> {
        let setting = |name| env::var_os(name).filter(|value| !value.is_empty());
        let release = setting("KUBE_VERSION").map(|value| value.to_string_lossy().into_owned());
        let assets = setting("KUBEBUILDER_ASSETS").map(PathBuf::from);
        Self::locate_in(&cache_root()?, assets.as_deref(), release.as_deref(), progress)
    }

    fn locate_in(
        cache: &Path,
        assets: Option<&Path>,
        release: Option<&str>,
        progress: Progress,
    ) -> Result<Self, Error> {
        let pinned = Module::pinned();
        let kubernetes = match release {
            Some(release) => Module::release(release)?,
            None => pinned.clone(),
        };
        let mut programs = assets.map_or_else(|| Ok(BTreeMap::new()), assets_in)?;
        let version = match programs.get("kube-apiserver") {
            Some(apiserver) => version_of(apiserver)?,
            None => kubernetes.version.clone(),
        };
        let mut missing = Vec::new();
        for tool in TOOLS {
            if programs.contains_key(tool.name) {
                continue;
            }
            let module = if tool.kubernetes { &kubernetes } else { &pinned };
            let path = module.dir(cache).join(tool.name);
            if !path.is_file() {
                missing.push((tool, module));
            }
            programs.insert(tool.name, path);
        }
        build::build(cache, &missing, progress)?;
        let kwok_stages = build::kwok_stages(cache, &pinned);
        Ok(Self { version, kwok_stages, programs })
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
    for tool in TOOLS {
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

    /// A cache in which everything of `module` has been built.
    fn fill(cache: &Path, module: &Module) {
        let dir = module.dir(cache);
        for tool in TOOLS {
            put(&dir, tool.name);
        }
        for stage in build::KWOK_STAGES {
            put(&dir.join("kwok-stages"), stage.rsplit_once('/').unwrap().1);
        }
    }

    #[test]
    fn what_was_built_is_found_without_go() {
        let cache = tempfile::tempdir().unwrap();
        let pinned = Module::pinned();
        fill(cache.path(), &pinned);
        let tools = Tools::locate_in(cache.path(), None, None, &|line| panic!("{line}")).unwrap();
        assert_eq!(tools.version, pinned.version);
        assert_eq!(tools.program("kwok"), pinned.dir(cache.path()).join("kwok"));
        assert_eq!(tools.kwok_stages.len(), build::KWOK_STAGES.len());
    }

    #[test]
    fn assets_come_before_the_cache_and_tell_the_version() {
        let cache = tempfile::tempdir().unwrap();
        let assets = tempfile::tempdir().unwrap();
        let pinned = Module::pinned();
        fill(cache.path(), &pinned);
        for name in ASSETS {
            put(assets.path(), name);
        }
        let tools = Tools::locate_in(cache.path(), Some(assets.path()), None, &|line| panic!("{line}")).unwrap();
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
        let (pinned, other) = (Module::pinned(), Module::release("1.35.2").unwrap());
        fill(cache.path(), &pinned);
        fill(cache.path(), &other);
        let tools = Tools::locate_in(cache.path(), None, Some("1.35.2"), &|line| panic!("{line}")).unwrap();
        assert_eq!(tools.version, "v1.35.2");
        assert_eq!(tools.program("kubectl"), other.dir(cache.path()).join("kubectl"));
        assert_eq!(tools.program("etcd"), pinned.dir(cache.path()).join("etcd"));
    }
}
