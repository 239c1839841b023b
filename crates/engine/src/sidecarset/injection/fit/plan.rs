//! What of a set's container depends on the pod, read when the set changes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sidecarset::api::{SidecarContainer, list, text};
use crate::sidecarset::vocabulary::SHARE_ENABLED;

/// What a container takes from the pod around it.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Variables of other containers, in the order of `transferEnv`.
    pub transfers: Vec<Transfer>,
    /// `shareVolumePolicy`
    pub shares_mounts: bool,
    /// `shareVolumeDevicePolicy`
    pub shares_devices: bool,
    /// `shareServiceAccountToken`
    pub shares_token: bool,
    /// How many variables of the container follow those that it takes.
    pub last: usize,
}

/// One entry of `transferEnv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Which container the variables are of.
    pub source: Source,
    /// Names of variables, sorted, each once.
    pub names: Vec<String>,
}

/// Where the name of a container comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The set names it.
    Name(String),
    /// The value of the pod's label of this key.
    Label(String),
    /// The value of the pod's annotation of this key.
    Annotation(String),
}

impl Plan {
    /// That of a container, whose last variables follow those that it takes; `None` where nothing of it depends on the pod.
    pub fn of(container: &SidecarContainer, last: usize) -> Option<Self> {
        let shares =
            |policy: &str| container.0.get(policy).and_then(|it| it.get("type")).is_some_and(|it| it == SHARE_ENABLED);
        let plan = Self {
            shares_mounts: shares("shareVolumePolicy"),
            shares_devices: shares("shareVolumeDevicePolicy"),
            shares_token: container.0.get("shareServiceAccountToken").is_some_and(|it| *it == true),
            transfers: list(container.0.get("transferEnv")).filter_map(Transfer::read).collect(),
            last,
        };
        let takes = !plan.transfers.is_empty() || plan.shares_mounts || plan.shares_devices || plan.shares_token;
        takes.then_some(plan)
    }
}

impl Transfer {
    fn read(entry: &Value) -> Option<Self> {
        let reference = entry.get("sourceContainerNameFrom").and_then(|from| from.get("fieldRef"));
        let source = match reference {
            Some(reference) => Source::field(text(reference, "fieldPath"))?,
            None => Source::Name(text(entry, "sourceContainerName").to_owned()),
        };
        let listed = list(entry.get("envNames")).filter_map(Value::as_str);
        let names: BTreeSet<&str> = listed.chain([text(entry, "envName")]).filter(|name| !name.is_empty()).collect();
        Some(Self { source, names: names.into_iter().map(str::to_owned).collect() })
    }
}

impl Source {
    /// `metadata.labels['<key>']` or `metadata.annotations['<key>']`.
    fn field(path: &str) -> Option<Self> {
        let (map, key) = path.strip_suffix("']")?.split_once("['")?;
        match map {
            "metadata.labels" => Some(Self::Label(key.to_owned())),
            "metadata.annotations" => Some(Self::Annotation(key.to_owned())),
            _ => None,
        }
    }
}
