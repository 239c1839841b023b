//! Our pods, as far as they are examined.

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use crate::watch::partial::Partial;

/// A pod of ours.
pub type ReplicaPod = Partial<Pod, ReplicaSpec>;

/// What it runs, and under which service account.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSpec {
    /// The API server sets it where a template has none.
    pub service_account_name: Option<String>,
    /// Those of others, such as a mesh's proxy, are among them.
    pub containers: Vec<ReplicaContainer>,
    /// Its volumes, which containers mount by name.
    pub volumes: Vec<ReplicaVolume>,
}

/// What it runs, from where and with which arguments.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaContainer {
    /// Name of the container.
    pub name: String,
    /// The image that it runs.
    pub image: Option<String>,
    /// Arguments of the process: the flags of `outrider serve`.
    pub args: Option<Vec<String>>,
    /// Where it has which volume.
    pub volume_mounts: Vec<ReplicaMount>,
}

impl ReplicaContainer {
    /// Its arguments, if it runs `outrider serve`.
    pub fn serve_args(&self) -> Option<&[String]> {
        self.args.as_deref().filter(|args| args.first().is_some_and(|command| command == "serve"))
    }
}

/// The value of a flag, written `--flag=value` or `--flag value`.
pub fn flag<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix(name)? {
        "" => args.get(at.checked_add(1)?).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

/// Where a volume is in it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaMount {
    /// Name of the volume.
    pub name: String,
    /// The directory of the mount.
    pub mount_path: String,
}

/// A volume of the pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ReplicaVolume {
    /// Name of the volume.
    pub name: String,
    /// If it is one of a Secret.
    pub secret: Option<ReplicaSecret>,
}

/// The Secret of a volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSecret {
    /// In the namespace of the pod.
    pub secret_name: Option<String>,
}
