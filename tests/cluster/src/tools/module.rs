//! The Go modules that the programs are built in: the pinned one of this repository, or one made for another release.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::Go;
use crate::Error;

const PINNED_MOD: &str = include_str!("../../tools/go.mod");
const PINNED_SUM: &str = include_str!("../../tools/go.sum");

/// Part of every key: a change in how programs are built must not find those built before. Raise it then.
const RECIPE: &str = "1";

/// A Go module that builds programs of one Kubernetes version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// As in `v1.36.3`.
    pub(super) version: String,
    key: String,
    pinned: bool,
}

impl Module {
    /// The one whose go.mod and go.sum are in this repository.
    pub(super) fn pinned() -> Self {
        let required = |line: &'static str| line.trim().strip_prefix("k8s.io/kubernetes v");
        let version = PINNED_MOD.lines().find_map(required).and_then(|rest| rest.split_whitespace().next());
        let version = format!("v{}", version.unwrap_or("0.0.0"));
        let key = format!("{version}-{:08x}", fnv1a(&[RECIPE, PINNED_MOD, PINNED_SUM]));
        Self { version, key, pinned: true }
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
        let pinned = Self::pinned();
        if version == pinned.version {
            return Ok(pinned);
        }
        let key = format!("{version}-{:08x}", fnv1a(&[RECIPE]));
        Ok(Self { version, key, pinned: false })
    }

    /// Where its programs are kept.
    pub(super) fn dir(&self, cache: &Path) -> PathBuf {
        cache.join(&self.key)
    }

    /// Whether go.mod and go.sum must be taken as they are, or may be completed by `go`.
    pub(super) const fn mod_flag(&self) -> &'static str {
        if self.pinned { "-mod=readonly" } else { "-mod=mod" }
    }

    /// Without these the programs report v0.0.0, and clients take them for ancient.
    pub(super) fn linker_flags(&self) -> String {
        let package = "k8s.io/component-base/version";
        let minor = self.version.split('.').nth(1).unwrap_or_default();
        format!("-s -w -X {package}.gitVersion={} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}", self.version)
    }

    /// Writes go.mod and go.sum into `dir`.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let (go_mod, go_sum) =
            if self.pinned { (PINNED_MOD.to_owned(), PINNED_SUM) } else { (self.go_mod_of_release(dir)?, "") };
        for (name, text) in [("go.mod", go_mod.as_str()), ("go.sum", go_sum)] {
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
    fn the_pinned_module_knows_its_kubernetes_version() {
        let pinned = Module::pinned();
        assert!(PINNED_MOD.contains(&format!("\tk8s.io/kubernetes {} ", pinned.version)), "{}", pinned.version);
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
    fn the_linker_stamps_major_minor_and_version() {
        let flags = Module::release("v1.35.2").unwrap().linker_flags();
        for wanted in ["gitVersion=v1.35.2", "gitMajor=1", "gitMinor=35"] {
            assert!(flags.contains(wanted), "{flags}");
        }
    }
}
