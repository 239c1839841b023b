//! Volumes: their types, paths of nodes, and drivers.

use std::collections::BTreeSet;

use admission::field::{Error, ErrorList, Path};
use serde_json::Value;

use super::api::{HostPath, ProfileSpec};
use super::compiled::{Least, bounded};
use super::context::{elements, member, text};
use super::faults::ProfileFaults;
use super::pod::Pod;
use crate::plugins::work;

/// The word for any.
const ANY: &str = "*";
const SECRET: &str = "secret";
const PROJECTED: &str = "projected";

/// The types of Kubernetes 1.24, and those that came later.
const TYPES: [&str; 31] = [
    ANY,
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephFS",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    PROJECTED,
    "quobyte",
    "rbd",
    "scaleIO",
    SECRET,
    "storageos",
    "vsphereVolume",
];

/// Which volumes pods may have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct VolumeRule {
    types: BTreeSet<String>,
    host_paths: Vec<HostPath>,
    flex: BTreeSet<String>,
    csi: BTreeSet<String>,
}

impl VolumeRule {
    /// What a profile says, and what is wrong with it.
    pub fn read(spec: &ProfileSpec, path: &Path, errors: &mut ErrorList) -> Self {
        let volumes = path.child("volumes");
        for one in bounded(&spec.volumes, &volumes, Least::None, errors) {
            if !TYPES.contains(&one.as_str()) {
                errors.push(Error::not_supported(&volumes, one, &TYPES));
            }
        }
        let paths = path.child("allowedHostPaths");
        for (index, one) in bounded(&spec.allowed_host_paths, &paths, Least::None, errors).iter().enumerate() {
            let at = paths.index(index);
            if one.path_prefix.is_empty() {
                errors.push(Error::required(&at, "is required"));
            } else if one.path_prefix.split('/').any(|part| part == "..") {
                errors.push(Error::invalid(&at, &one.path_prefix, "must not contain '..'"));
            }
        }
        let flex: Vec<String> = spec.allowed_flex_volumes.iter().map(|one| one.driver.clone()).collect();
        let csi: Vec<String> = spec.allowed_csi_drivers.iter().map(|one| one.name.clone()).collect();
        for (field, member, drivers) in [("allowedFlexVolumes", "driver", &flex), ("allowedCSIDrivers", "name", &csi)] {
            let path = path.child(field);
            for (index, _) in
                bounded(drivers, &path, Least::None, errors).iter().enumerate().filter(|(_, driver)| driver.is_empty())
            {
                errors.push(Error::required(&path.index(index).child(member), "must specify a driver"));
            }
        }
        Self {
            types: spec.volumes.iter().cloned().collect(),
            host_paths: spec.allowed_host_paths.clone(),
            flex: flex.into_iter().collect(),
            csi: csi.into_iter().collect(),
        }
    }

    /// Checks the volumes of a pod, and mounts of those that must be read-only.
    pub fn check(&self, pod: &Pod<'_>, faults: &mut ProfileFaults) {
        let (volumes, mut read_only) = (Path::new("spec").child("volumes"), BTreeSet::new());
        for (index, volume) in pod.volumes().iter().enumerate() {
            work::done(1);
            let path = || volumes.index(index);
            for (type_, source) in sources(volume) {
                if !self.allows(type_, source) {
                    let detail = format!("{type_} volumes are not allowed to be used");
                    faults.add(|| Error::invalid(&path(), type_, detail));
                    continue;
                }
                match type_ {
                    "hostPath" => match self.host_path(text(Some(source), "path").unwrap_or_default()) {
                        Use::Any => {}
                        Use::ReadOnly => {
                            read_only.insert(text(Some(volume), "name").unwrap_or_default());
                        }
                        Use::None => faults.add(|| {
                            let found = text(Some(source), "path").unwrap_or_default();
                            Error::invalid(
                                &path().child("hostPath").child("pathPrefix"),
                                found,
                                "is not allowed to be used",
                            )
                        }),
                    },
                    "flexVolume" => driver(&self.flex, source, faults, |found| {
                        Error::invalid(&path().child("driver"), found, "Flexvolume driver is not allowed to be used")
                    }),
                    "csi" => driver(&self.csi, source, faults, |found| {
                        let detail = "Inline CSI driver is not allowed to be used";
                        Error::invalid(&path().child("csi").child("driver"), found, detail)
                    }),
                    _ => {}
                }
            }
        }
        if !read_only.is_empty() {
            check_mounts(&read_only, pod, faults);
        }
    }

    fn allows(&self, type_: &str, source: &Value) -> bool {
        let has = |type_: &str| self.types.contains(type_);
        has(ANY) || has(type_) || (type_ == PROJECTED && has(SECRET) && is_of_service_account(source))
    }

    fn host_path(&self, path: &str) -> Use {
        if self.host_paths.is_empty() {
            return Use::Any;
        }
        let mut within = self.host_paths.iter().filter(|allowed| is_within(path, &allowed.path_prefix)).peekable();
        if within.peek().is_none() {
            Use::None
        } else if within.all(|allowed| allowed.read_only) {
            Use::ReadOnly
        } else {
            Use::Any
        }
    }
}

/// How a path of the node may be used.
enum Use {
    Any,
    ReadOnly,
    None,
}

/// What a volume is made of, by the words of profiles. The API server stores volumes with one source only.
fn sources(volume: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = volume.as_object().into_iter().flatten();
    let sources = members.filter(|(key, source)| *key != "name" && !source.is_null());
    sources.map(|(key, source)| (if key == "cephfs" { "cephFS" } else { key.as_str() }, source))
}

fn driver(allowed: &BTreeSet<String>, source: &Value, faults: &mut ProfileFaults, error: impl FnOnce(&str) -> Error) {
    let found = text(Some(source), "driver").unwrap_or_default();
    if !allowed.is_empty() && !allowed.contains(found) {
        faults.add(|| error(found));
    }
}

/// Whether a path is another or below it, whatever slashes they end with.
fn is_within(path: &str, prefix: &str) -> bool {
    let (path, prefix) = (trimmed(path), trimmed(prefix));
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn trimmed(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

fn check_mounts(read_only: &BTreeSet<&str>, pod: &Pod<'_>, faults: &mut ProfileFaults) {
    for container in pod.containers() {
        for (index, mount) in elements(Some(container.value), "volumeMounts").iter().enumerate() {
            work::done(1);
            let is_read_only = member(Some(mount), "readOnly").and_then(Value::as_bool).unwrap_or(false);
            if !is_read_only && text(Some(mount), "name").is_some_and(|name| read_only.contains(name)) {
                let path = || container.path().child("volumeMounts").index(index).child("readOnly");
                faults.add(|| Error::invalid(&path(), false, "must be read-only"));
            }
        }
    }
}

/// Whether a projected volume is that of a service account's token, and nothing else.
fn is_of_service_account(projected: &Value) -> bool {
    elements(Some(projected), "sources").iter().all(|source| {
        let part = |key: &str| member(Some(source), key);
        let (token, map, downward) = (part("serviceAccountToken"), part("configMap"), part("downwardAPI"));
        let is_namespace = |item: &Value| {
            let field = member(Some(item), "fieldRef");
            text(Some(item), "path") == Some("namespace")
                && text(field, "apiVersion") == Some("v1")
                && text(field, "fieldPath") == Some("metadata.namespace")
        };
        (token.is_some() || map.is_some() || downward.is_some())
            && token.is_none_or(|token| {
                text(Some(token), "path") == Some("token")
                    && text(Some(token), "audience").unwrap_or_default().is_empty()
            })
            && map.is_none_or(|map| text(Some(map), "name") == Some("kube-root-ca.crt"))
            && elements(downward, "items").iter().all(is_namespace)
    })
}
