//! What puts the identity of a workload into every container of a pod: the `ServiceAccount` plugin of the API server, and the
//! identity webhooks of EKS and Azure.
//!
//! They are recognised by value. The name of a volume or variable proves nothing: the author of the pod may choose it.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Around;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::canonical_volume;

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
        audiences: &[""],
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

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Token {
    fn at(path: &str) -> Option<&'static Self> {
        TOKENS.iter().find(|token| token.mount_path == path)
    }
}

/// The identities that a container has beside what its set gives it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Identities {
    mounts: u8,
    // Variables of the table that the set does not have itself.
    free: u16,
}

impl Identities {
    /// Those of the container `found`, which is `ours` but for what was added.
    pub(super) fn of(ours: &RawObject, found: &RawObject, pod: &Around<'_>) -> Self {
        let own_path = |path: &str| elements(ours, "volumeMounts").any(|mount| text(mount, "mountPath") == path);
        let mut seen = 0;
        let mut mounts = 0;
        for mount in elements(found, "volumeMounts") {
            let Some(token) = Token::at(text(mount, "mountPath")) else { continue };
            // Once a path at most, however often the path is there.
            let is_new = seen & token.of.bit() == 0;
            seen |= token.of.bit();
            if is_new && !own_path(token.mount_path) && is_token_mount(mount, token, pod) {
                mounts |= token.of.bit();
            }
        }
        let mut free = 0;
        for (bit, variable) in VARIABLES.iter().enumerate() {
            if !elements(ours, "env").any(|ours| text(ours, "name") == variable.name) {
                free |= 1 << bit;
            }
        }
        Self { mounts, free }
    }

    /// Whether a mount at this identity's path is its mount. Each is so once.
    pub(super) const fn take_mount(&mut self, of: MountOf) -> bool {
        let is_there = self.mounts & of.bit() != 0;
        self.mounts &= !of.bit();
        is_there
    }

    /// The variables that come with these identities.
    pub(super) const fn variables(self) -> Variables {
        Variables(self)
    }
}

/// Variables that identities bring, each once.
pub(super) struct Variables(Identities);

impl Variables {
    /// Whether the variable comes with an identity that the container has.
    pub(super) fn take(&mut self, name: &str, variable: &Value) -> bool {
        let Some(bit) = VARIABLES.iter().position(|known| known.name == name) else { return false };
        let (Some(known), Some(text)) = (VARIABLES.get(bit), plain_text(variable)) else { return false };
        let is_its_own =
            self.0.free & (1 << bit) != 0 && self.0.mounts & known.mounts != 0 && (known.has_its_value)(text);
        self.0.free &= !(1 << bit);
        is_its_own
    }
}

struct Variable {
    name: &'static str,
    mounts: u8,
    has_its_value: fn(&str) -> bool,
}

const EKS: u8 = MountOf::EksRole.bit() | MountOf::EksPodIdentity.bit();

const VARIABLES: [Variable; 11] = [
    Variable {
        name: "AWS_ROLE_ARN",
        mounts: MountOf::EksRole.bit(),
        has_its_value: |value| value.starts_with("arn:aws") && value.contains(":role/"),
    },
    Variable {
        name: "AWS_WEB_IDENTITY_TOKEN_FILE",
        mounts: MountOf::EksRole.bit(),
        has_its_value: |value| value == "/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
    },
    Variable {
        name: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        mounts: MountOf::EksPodIdentity.bit(),
        has_its_value: |value| value == "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token",
    },
    Variable {
        name: "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        mounts: MountOf::EksPodIdentity.bit(),
        // The link-local addresses of the agent on the node.
        has_its_value: |value| {
            matches!(value, "http://169.254.170.23/v1/credentials" | "http://[fd00:ec2::23]/v1/credentials")
        },
    },
    Variable { name: "AWS_REGION", mounts: EKS, has_its_value: is_region },
    Variable { name: "AWS_DEFAULT_REGION", mounts: EKS, has_its_value: is_region },
    Variable {
        name: "AWS_STS_REGIONAL_ENDPOINTS",
        mounts: EKS,
        has_its_value: |value| matches!(value, "regional" | "legacy"),
    },
    Variable { name: "AZURE_CLIENT_ID", mounts: MountOf::Azure.bit(), has_its_value: is_uuid },
    Variable { name: "AZURE_TENANT_ID", mounts: MountOf::Azure.bit(), has_its_value: is_uuid },
    Variable {
        name: "AZURE_FEDERATED_TOKEN_FILE",
        mounts: MountOf::Azure.bit(),
        has_its_value: |value| value == "/var/run/secrets/azure/tokens/azure-identity-token",
    },
    Variable {
        name: "AZURE_AUTHORITY_HOST",
        mounts: MountOf::Azure.bit(),
        // The clouds of Azure: the public one, that of the US government, and China's.
        has_its_value: |value| {
            matches!(
                value.trim_end_matches('/'),
                "https://login.microsoftonline.com"
                    | "https://login.microsoftonline.us"
                    | "https://login.chinacloudapi.cn"
                    | "https://login.partner.microsoftonline.cn"
            )
        },
    },
];

fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The value of a variable that has a name and a value and nothing else.
fn plain_text(variable: &Value) -> Option<&str> {
    variable.as_object().filter(|fields| fields.len() == 2)?.get("value")?.as_str()
}

/// Whether the mount is the one of the plugin `ServiceAccount`, beside those of the set.
pub(super) fn is_service_account(mount: &Value, ours: &[Value], pod: &Around<'_>) -> bool {
    let path = text(mount, "mountPath");
    let token = Token::at(path).filter(|token| token.of == MountOf::ServiceAccount);
    token.is_some_and(|token| {
        !ours.iter().any(|ours| text(ours, "mountPath") == path) && is_token_mount(mount, token, pod)
    })
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
    let volume = canonical_volume(&serde_json::from_str::<RawObject>(raw.get()).ok()?);
    TOKENS.iter().find(|token| holds_token(&volume, token)).map(|token| token.of)
}

fn holds_token(volume: &RawObject, token: &Token) -> bool {
    let Some(Value::Object(projected)) = volume.get("projected") else { return false };
    let sources = projected.get("sources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_token = |source: &Value| is_token_source(source, token);
    let is_expected =
        |source: &Value| is_token(source) || (token.of == MountOf::ServiceAccount && is_beside_token(source));
    volume.len() == 2 && projected.len() == 1 && sources.iter().any(is_token) && sources.iter().all(is_expected)
}

fn is_token_source(source: &Value, token: &Token) -> bool {
    let Some(Value::Object(fields)) = only_member(source, "serviceAccountToken") else { return false };
    let is_known = |field: &String| matches!(field.as_str(), "path" | "audience" | "expirationSeconds");
    let text = |field: &str| fields.get(field).map_or(Some(""), Value::as_str);
    fields.keys().all(is_known)
        && text("path") == Some(token.file)
        && text("audience").is_some_and(|audience| token.audiences.contains(&audience))
}

/// What the plugin `ServiceAccount` puts beside the token; the second is that of `OpenShift`.
fn is_beside_token(source: &Value) -> bool {
    let config_map = |name: &str, key: &str| json!({"configMap": {"name": name, "items": [{"key": key, "path": key}]}});
    let namespace = json!({"downwardAPI": {"items": [
        {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
    ]}});
    [config_map("kube-root-ca.crt", "ca.crt"), config_map("openshift-service-ca.crt", "service-ca.crt"), namespace]
        .contains(source)
}

fn only_member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.as_object().filter(|fields: &&Map<String, Value>| fields.len() == 1)?.get(name)
}

fn elements<'c>(container: &'c RawObject, list: &str) -> impl Iterator<Item = &'c Value> + use<'c> {
    container.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
