//! What puts the identity of a workload into every container of a pod: the `ServiceAccount` plugin of the API server, and the
//! identity webhooks of EKS and Azure.
//!
//! They are recognised by value. The name of a volume or variable proves nothing: the author of the pod may choose it.

use std::sync::LazyLock;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::variables::{Free, Variables};
use super::{Around, paths};
use crate::sidecarset::api::{RawObject, text};
use crate::sidecarset::canonical::strict_volume;

/// Whose mount it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountOf {
    /// The API server's own plugin `ServiceAccount`.
    ServiceAccount,
    /// IAM roles for service accounts (`aws/amazon-eks-pod-identity-webhook`).
    EksRole,
    /// EKS pod identity, by the same webhook.
    EksPodIdentity,
    /// Azure workload identity (`Azure/azure-workload-identity`).
    Azure,
}

/// Where all tokens are.
const SECRETS: &str = "/run/secrets";

/// A mount by its path, and the audiences and the file of the token in its volume.
struct Token {
    of: MountOf,
    mount_path: &'static str,
    audiences: &'static [&'static str],
    file: &'static str,
}

const TOKENS: [Token; 4] = [
    Token {
        of: MountOf::ServiceAccount,
        mount_path: "/var/run/secrets/kubernetes.io/serviceaccount",
        audiences: &[],
        file: "token",
    },
    Token {
        of: MountOf::EksRole,
        mount_path: "/var/run/secrets/eks.amazonaws.com/serviceaccount",
        audiences: &["sts.amazonaws.com", "sts.amazonaws.com.cn"],
        file: "token",
    },
    Token {
        of: MountOf::EksPodIdentity,
        mount_path: "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount",
        audiences: &["pods.eks.amazonaws.com"],
        file: "eks-pod-identity-token",
    },
    Token {
        of: MountOf::Azure,
        mount_path: "/var/run/secrets/azure/tokens",
        audiences: &["api://AzureADTokenExchange"],
        file: "azure-identity-token",
    },
];

impl MountOf {
    /// Whose mount belongs at the path.
    pub(super) fn path(path: &str) -> Option<Self> {
        Token::at(path).map(|token| token.of)
    }

    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Token {
    fn at(path: &str) -> Option<&'static Self> {
        TOKENS.iter().find(|token| token.mount_path == path)
    }

    /// Whether its mount would hide the set's at this path, or be hidden by it.
    ///
    /// Above and below the path of the service account's token the API server mounts it by itself, and above `/run/secrets` the
    /// webhooks of clouds do; runtimes mount the shorter path first.
    fn covers(&self, path: &[&str]) -> bool {
        let own = paths::resolved(self.mount_path);
        match self.of {
            MountOf::ServiceAccount => paths::is_same(&own, path),
            _ => {
                path.len() >= paths::resolved(SECRETS).len() && paths::is_within(&own, path)
                    || paths::is_within(path, &own)
            }
        }
    }
}

/// What a set's container leaves to identities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room {
    mounts: u8,
    variables: Free,
}

impl Room {
    /// That of a container as its set has it.
    pub(super) fn of(ours: &RawObject) -> Self {
        let paths: Vec<_> =
            elements(ours, "volumeMounts").map(|mount| paths::resolved(text(mount, "mountPath"))).collect();
        let is_free = |token: &&Token| !paths.iter().any(|path| token.covers(path));
        let mounts = TOKENS.iter().filter(is_free).fold(0, |mounts, token| mounts | token.of.bit());
        Self { mounts, variables: Free::of(ours) }
    }

    /// Whether the mount is the one of the plugin `ServiceAccount`, and where the set has none.
    pub(super) fn is_service_account(self, mount: &Value, pod: &Around<'_>) -> bool {
        self.token(mount, pod) == Some(MountOf::ServiceAccount)
    }

    /// Whose mount it is.
    fn token(self, mount: &Value, pod: &Around<'_>) -> Option<MountOf> {
        let token = Token::at(text(mount, "mountPath"))?;
        (self.mounts & token.of.bit() != 0 && is_token_mount(mount, token, pod)).then_some(token.of)
    }
}

/// The identities that a container has beside what its set gives it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Identities {
    mounts: u8,
    variables: Free,
}

impl Identities {
    /// Those of the container `found`, which is the set's but for what was added.
    pub(super) fn of(room: Room, found: &RawObject, pod: &Around<'_>) -> Self {
        let mounts = elements(found, "volumeMounts").filter_map(|mount| room.token(mount, pod));
        Self { mounts: mounts.fold(0, |mounts, of| mounts | of.bit()), variables: room.variables }
    }

    /// Whether a mount at this identity's path is its mount. Each is so once.
    pub(super) const fn take_mount(&mut self, of: MountOf) -> bool {
        let is_there = self.mounts & of.bit() != 0;
        self.mounts &= !of.bit();
        is_there
    }

    /// The variables that come with these identities.
    pub(super) const fn variables(self) -> Variables {
        Variables::new(self.mounts, self.variables)
    }
}

/// Whether the mount is read-only, of the whole volume, and the volume holds the token and nothing else.
fn is_token_mount(mount: &Value, token: &Token, pod: &Around<'_>) -> bool {
    let is_plain =
        mount.get("readOnly") == Some(&Value::Bool(true)) && mount.as_object().is_some_and(|it| it.len() == 3);
    is_plain && pod.token(text(mount, "name")) == Some(token.of)
}

/// Longest text of a volume that holds a token, in bytes; those that the webhooks write are a tenth of it.
const TOKEN_VOLUME_MAX: usize = 8 * 1024;

/// Whose token the volume holds, and nothing else with it.
pub(super) fn token_in(raw: &RawValue) -> Option<MountOf> {
    if raw.get().len() > TOKEN_VOLUME_MAX {
        return None;
    }
    let volume = strict_volume(serde_json::from_str(raw.get()).ok()?);
    TOKENS.iter().find(|token| holds_token(&volume, token)).map(|token| token.of)
}

fn holds_token(volume: &RawObject, token: &Token) -> bool {
    let Some(Value::Object(projected)) = volume.get("projected") else { return false };
    let Some(Value::Array(sources)) = projected.get("sources") else { return false };
    let has_nothing_else = volume.len() == 2 && projected.len() == 1;
    let is_whole = match token.of {
        MountOf::ServiceAccount => OF_SERVICE_ACCOUNT.iter().any(|expected| sources == expected),
        _ => matches!(&**sources, [source] if is_token_source(source, token)),
    };
    has_nothing_else && is_whole
}

/// The sources of the volume that the plugin adds (`TokenVolumeSource` in `plugin/pkg/admission/serviceaccount`), without
/// defaults: that of Kubernetes, and that of `OpenShift`, which has one more. A volume that lacks a part of it is the author's own:
/// without `ca.crt` a client cannot know the API server.
static OF_SERVICE_ACCOUNT: LazyLock<[Vec<Value>; 2]> = LazyLock::new(|| {
    let config_map = |name: &str, key: &str| json!({"configMap": {"name": name, "items": [{"key": key, "path": key}]}});
    let namespace = json!({"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}});
    let of_kubernetes = vec![
        // `WarnOnlyBoundTokenExpirationSeconds` of `pkg/serviceaccount`.
        json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}),
        config_map("kube-root-ca.crt", "ca.crt"),
        json!({"downwardAPI": {"items": [namespace]}}),
    ];
    let mut of_openshift = of_kubernetes.clone();
    of_openshift.push(config_map("openshift-service-ca.crt", "service-ca.crt"));
    [of_kubernetes, of_openshift]
});

/// What the webhooks of clouds ask for. For how long the token is good their users say, in an annotation.
fn is_token_source(source: &Value, token: &Token) -> bool {
    let Some(Value::Object(fields)) = only_member(source, "serviceAccountToken") else { return false };
    let is_known = |field: &String| matches!(field.as_str(), "path" | "audience" | "expirationSeconds");
    fields.keys().all(is_known)
        && fields.get("path").is_some_and(|path| path == token.file)
        && fields.get("audience").and_then(Value::as_str).is_some_and(|audience| token.audiences.contains(&audience))
        && fields.get("expirationSeconds").is_none_or(Value::is_u64)
}

fn only_member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object().filter(|fields: &&Map<String, Value>| fields.len() == 1)?.get(name)
}

pub(super) fn elements<'c>(container: &'c RawObject, list: &str) -> impl Iterator<Item = &'c Value> + use<'c> {
    container.get(list).and_then(Value::as_array).into_iter().flatten()
}
