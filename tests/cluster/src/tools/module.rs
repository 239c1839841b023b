//! The Go modules that the programs are built in: the pinned ones of this repository, or one made for another release.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::Go;
use crate::Error;

/// Part of every key: a change in how programs are built must not find those built before. Raise it then.
const RECIPE: &str = "1";

/// A module of this repository, in a folder of its own so that a change in one builds only its programs anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pinned {
    name: &'static str,
    /// The module whose version is that of its programs.
    versioned_by: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    /// A main package of our own.
    main: Option<&'static str>,
    tags: &'static str,
    /// Variables that the linker sets. `{version}` is the version, `{minor}` the minor one of Kubernetes.
    stamps: &'static [&'static str],
}

/// Without these the programs report v0.0.0, and clients take them for ancient.
const KUBERNETES_STAMPS: [&str; 3] = [
    "k8s.io/component-base/version.gitVersion={version}",
    "k8s.io/component-base/version.gitMajor=1",
    "k8s.io/component-base/version.gitMinor={minor}",
];

macro_rules! pinned {
    ($folder:literal) => {
        Pinned {
            name: $folder,
            versioned_by: "",
            go_mod: include_str!(concat!("../../tools/", $folder, "/go.mod")),
            go_sum: include_str!(concat!("../../tools/", $folder, "/go.sum")),
            main: None,
            tags: "",
            stamps: &[],
        }
    };
}

pub(super) static KUBERNETES: Pinned =
    Pinned { versioned_by: "k8s.io/kubernetes", stamps: &KUBERNETES_STAMPS, ..pinned!("kubernetes") };

pub(super) static HELM: Pinned = Pinned {
    versioned_by: "helm.sh/helm/v3",
    // The version of the cluster for `helm template` and `helm lint`; 1.20 by default.
    stamps: &[
        "helm.sh/helm/v3/internal/version.version={version}",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={minor}",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={minor}",
    ],
    ..pinned!("helm")
};

pub(super) static PROMTOOL: Pinned = Pinned {
    versioned_by: "github.com/prometheus/prometheus",
    // Finding targets in clouds, which takes longer to build than everything else here together.
    tags: "remove_all_sd",
    ..pinned!("promtool")
};

pub(super) static CONTAINERD: Pinned = Pinned {
    versioned_by: "github.com/containerd/containerd/v2",
    // Snapshotters that want C libraries or are of no use here.
    tags: "no_btrfs,no_devmapper,no_zfs",
    stamps: &["github.com/containerd/containerd/v2/version.Version={version}"],
    ..pinned!("containerd")
};

pub(super) static CERT_MANAGER: Pinned = Pinned {
    versioned_by: "github.com/cert-manager/cert-manager",
    main: Some(include_str!("../../tools/cert-manager/main.go")),
    ..pinned!("cert-manager")
};

impl Pinned {
    /// As in `v1.36.3`.
    pub(super) fn version(&self) -> &'static str {
        let required = |line: &'static str| line.trim().strip_prefix(self.versioned_by)?.strip_prefix(' ');
        let rest = self.go_mod.lines().find_map(required).unwrap_or_default();
        rest.split_whitespace().next().unwrap_or("v0.0.0")
    }
}

/// A Go module that builds programs of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// As in `v1.36.3`.
    pub(super) version: String,
    key: String,
    of: &'static Pinned,
    /// Whether `version` is another than the one pinned in this repository.
    other: bool,
}

impl Module {
    /// One whose go.mod and go.sum are in this repository.
    pub(super) fn pinned(of: &'static Pinned) -> Self {
        let version = of.version().to_owned();
        let parts = [RECIPE, of.go_mod, of.go_sum, of.main.unwrap_or_default()];
        let key = format!("{}-{version}-{:08x}", of.name, fnv1a(&parts));
        Self { version, key, of, other: false }
    }

    /// The one for a Kubernetes release, with or without its `v`.
    ///
    /// # Errors
    /// If `release` is no version.
    pub(super) fn release(release: &str) -> Result<Self, Error> {
        let numbers = release.strip_prefix('v').unwrap_or(release);
        let parts: Vec<Result<u32, _>> = numbers.split('.').map(str::parse).collect();
        let [Ok(1), Ok(_), Ok(_)] = parts[..] else {
            return Err(Error::Version(release.to_owned()));
        };
        let version = format!("v{numbers}");
        if version == KUBERNETES.version() {
            return Ok(Self::pinned(&KUBERNETES));
        }
        let key = format!("{}-{version}-{:08x}", KUBERNETES.name, fnv1a(&[RECIPE]));
        Ok(Self { version, key, of: &KUBERNETES, other: true })
    }

    /// Where its programs are kept.
    pub(super) fn dir(&self, cache: &Path) -> PathBuf {
        cache.join(&self.key)
    }

    /// Arguments of `go build` that are the same for all its programs.
    pub(super) fn flags(&self) -> Vec<String> {
        // go.mod and go.sum are taken as they are, or completed by `go`.
        let modules = if self.other { "-mod=mod" } else { "-mod=readonly" };
        let minor = if self.of == &KUBERNETES { &self.version } else { KUBERNETES.version() };
        let minor = minor.split('.').nth(1).unwrap_or_default();
        let stamp =
            |stamp: &&str| format!(" -X {}", stamp.replace("{version}", &self.version).replace("{minor}", minor));
        let stamps: String = self.of.stamps.iter().map(stamp).collect();
        vec![modules.to_owned(), format!("-tags={}", self.of.tags), format!("-ldflags=-s -w{stamps}")]
    }

    /// Writes go.mod, go.sum, and the main package if there is one, into `dir`.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let (go_mod, go_sum) =
            if self.other { (self.go_mod_of_release(dir)?, "") } else { (self.of.go_mod.to_owned(), self.of.go_sum) };
        let main = self.of.main.map(|main| ("main.go", main));
        for (name, text) in [("go.mod", go_mod.as_str()), ("go.sum", go_sum)].into_iter().chain(main) {
            let path = dir.join(name);
            fs::write(&path, text).map_err(|e| Error::io("write", &path, e))?;
        }
        Ok(())
    }

    fn go_mod_of_release(&self, dir: &Path) -> Result<String, Error> {
        let path = dir.join("go.mod");
        fs::write(&path, "module outrider.dev/cluster-tools\n").map_err(|e| Error::io("write", &path, e))?;
        let wanted = format!("k8s.io/kubernetes@{}", self.version);
        let text = Go::new(dir).output(&["mod", "download", "-json", &wanted])?;
        let downloaded: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let upstream = PathBuf::from(downloaded.get("GoMod").and_then(|path| path.as_str()).unwrap_or_default());
        let upstream = fs::read_to_string(&upstream).map_err(|e| Error::io("read", &upstream, e))?;
        Ok(go_mod(&self.version, &upstream))
    }
}

/// A module that requires one Kubernetes release. `k8s.io/kubernetes` requires its siblings as v0.0.0 and replaces them by
/// directories of its own checkout; their releases are published as v0.X.Y for v1.X.Y.
fn go_mod(version: &str, upstream: &str) -> String {
    let go = upstream.lines().find(|line| line.starts_with("go ")).unwrap_or("go 1.24.0");
    let sibling_version = version.replacen("v1.", "v0.", 1);
    let sibling = |line: &str| {
        let (name, path) = line.trim().trim_start_matches("replace ").split_once(" => ")?;
        path.starts_with("./staging/").then(|| format!("replace {name} => {name} {sibling_version}\n"))
    };
    let siblings: String = upstream.lines().filter_map(sibling).collect();
    format!("module outrider.dev/cluster-tools\n\n{go}\n\nrequire k8s.io/kubernetes {version}\n\n{siblings}")
}

/// FNV-1a, 32 bits: the standard library's hasher may change with the compiler, and a changed key means minutes of building.
fn fnv1a(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_pinned_modules_know_their_versions() {
        for of in [&KUBERNETES, &HELM, &PROMTOOL, &CONTAINERD, &CERT_MANAGER] {
            let line = format!("\t{} {}", of.versioned_by, of.version());
            assert!(of.go_mod.contains(&line) && of.version() != "v0.0.0", "{line}");
        }
        let pinned = Module::pinned(&KUBERNETES);
        assert_eq!(Module::release(&pinned.version).unwrap(), pinned);
    }

    #[test]
    fn only_a_release_is_a_version() {
        for (release, version) in [("v1.35.2", "v1.35.2"), ("1.35.2", "v1.35.2"), ("v1.30.0", "v1.30.0")] {
            assert_eq!(Module::release(release).unwrap().version, version);
        }
        for release in ["", "v", "v1.35", "1", "latest", "v2.0.0", "v1.35.2-rc.1", "v1.35.2.1", "v1.-3.2", "vv1.35.2"] {
            assert!(Module::release(release).is_err(), "{release}");
        }
    }

    #[test]
    fn another_release_replaces_the_siblings_that_it_names() {
        let upstream = "module k8s.io/kubernetes\n\ngo 1.25.0\n\nrequire (\n\tk8s.io/api v0.0.0\n\tk8s.io/utils v0.0.1\n)\n\n\
                        replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tother => other v1\n)\n";
        let expected = "module outrider.dev/cluster-tools\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v1.35.2\n\n\
                        replace k8s.io/api => k8s.io/api v0.35.2\n";
        assert_eq!(go_mod("v1.35.2", upstream), expected);
    }

    #[test]
    fn the_linker_stamps_versions() {
        let flags = |module: &Module| module.flags().join(" ");
        let kubernetes = flags(&Module::release("v1.35.2").unwrap());
        for wanted in ["gitVersion=v1.35.2", "gitMajor=1", "gitMinor=35"] {
            assert!(kubernetes.contains(wanted), "{kubernetes}");
        }
        let helm = flags(&Module::pinned(&HELM));
        let minor = KUBERNETES.version().split('.').nth(1).unwrap();
        for wanted in [format!("version.version={}", HELM.version()), format!("chartutil.k8sVersionMinor={minor}")] {
            assert!(helm.contains(&wanted), "{helm}");
        }
    }
}
