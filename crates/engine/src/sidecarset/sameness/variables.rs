//! Variables that identities bring into containers, by name and value.

use serde_json::Value;

use super::identities::{MountOf, elements};
use crate::sidecarset::api::{RawObject, text};

/// The variables of the table that may come, by position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Free(u16);

impl Free {
    /// Those that change nothing of what the set's container says. They would win over the set's `envFrom`, and a `$(NAME)` in
    /// the set's texts stays as it is until there is a variable of that name.
    pub(super) fn of(ours: &RawObject) -> Self {
        if elements(ours, "envFrom").next().is_some() {
            return Self::default();
        }
        let is_free = |name: &str| {
            let reference = format!("$({name})");
            !elements(ours, "env").any(|variable| text(variable, "name") == name)
                && !ours.values().any(|value| says(value, &reference))
        };
        let free = VARIABLES.iter().enumerate().filter(|(_, variable)| is_free(variable.name));
        Self(free.fold(0, |free, (bit, _)| free | (1 << bit)))
    }
}

fn says(value: &Value, part: &str) -> bool {
    match value {
        Value::String(text) => text.contains(part),
        Value::Array(list) => list.iter().any(|value| says(value, part)),
        Value::Object(map) => map.values().any(|value| says(value, part)),
        _ => false,
    }
}

/// Variables that identities bring, each once.
pub(super) struct Variables {
    // Of the identities that the container has.
    mounts: u8,
    free: Free,
}

impl Variables {
    pub(super) const fn new(mounts: u8, free: Free) -> Self {
        Self { mounts, free }
    }

    /// Whether the variable comes with an identity that the container has.
    pub(super) fn take(&mut self, name: &str, variable: &Value) -> bool {
        let Some(bit) = VARIABLES.iter().position(|known| known.name == name) else { return false };
        let (Some(known), Some(text)) = (VARIABLES.get(bit), plain_text(variable)) else { return false };
        let is_its_own =
            self.free.0 & (1 << bit) != 0 && self.mounts & known.mounts != 0 && (known.has_its_value)(text);
        self.free.0 &= !(1 << bit);
        is_its_own
    }
}

struct KnownVariable {
    name: &'static str,
    mounts: u8,
    has_its_value: fn(&str) -> bool,
}

const EKS: u8 = MountOf::EksRole.bit() | MountOf::EksPodIdentity.bit();

const VARIABLES: [KnownVariable; 11] = [
    KnownVariable { name: "AWS_ROLE_ARN", mounts: MountOf::EksRole.bit(), has_its_value: is_role },
    KnownVariable {
        name: "AWS_WEB_IDENTITY_TOKEN_FILE",
        mounts: MountOf::EksRole.bit(),
        has_its_value: |value| value == "/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
    },
    KnownVariable {
        name: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        mounts: MountOf::EksPodIdentity.bit(),
        has_its_value: |value| value == "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token",
    },
    KnownVariable {
        name: "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        mounts: MountOf::EksPodIdentity.bit(),
        // The link-local addresses of the agent on the node.
        has_its_value: |value| {
            matches!(value, "http://169.254.170.23/v1/credentials" | "http://[fd00:ec2::23]/v1/credentials")
        },
    },
    KnownVariable { name: "AWS_REGION", mounts: EKS, has_its_value: is_region },
    KnownVariable { name: "AWS_DEFAULT_REGION", mounts: EKS, has_its_value: is_region },
    KnownVariable {
        name: "AWS_STS_REGIONAL_ENDPOINTS",
        mounts: EKS,
        has_its_value: |value| matches!(value, "regional" | "legacy"),
    },
    KnownVariable { name: "AZURE_CLIENT_ID", mounts: MountOf::Azure.bit(), has_its_value: is_uuid },
    KnownVariable { name: "AZURE_TENANT_ID", mounts: MountOf::Azure.bit(), has_its_value: is_uuid },
    KnownVariable {
        name: "AZURE_FEDERATED_TOKEN_FILE",
        mounts: MountOf::Azure.bit(),
        has_its_value: |value| value == "/var/run/secrets/azure/tokens/azure-identity-token",
    },
    KnownVariable {
        name: "AZURE_AUTHORITY_HOST",
        mounts: MountOf::Azure.bit(),
        // The clouds of Azure: the public one, that of the US government, and China's.
        has_its_value: |value| {
            matches!(
                value.strip_suffix('/').unwrap_or(value),
                "https://login.microsoftonline.com"
                    | "https://login.microsoftonline.us"
                    | "https://login.chinacloudapi.cn"
                    | "https://login.partner.microsoftonline.cn"
            )
        },
    },
];

/// `arn:aws:iam::111122223333:role/path/name`; partitions are `aws`, `aws-cn` and others of that kind.
fn is_role(text: &str) -> bool {
    let mut parts = text.splitn(6, ':');
    let mut next = || parts.next().unwrap_or_default();
    let (arn, partition, service, region, account, resource) = (next(), next(), next(), next(), next(), next());
    let is_partition = partition.starts_with("aws") && is_region(partition);
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    // A path of 512 characters and a name of 64 (IAM's reference of `CreateRole`).
    let is_name = |name: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_-/".contains(&byte);
        (1..=576).contains(&name.len()) && name.bytes().all(is_known)
    };
    arn == "arn"
        && is_partition
        && service == "iam"
        && region.is_empty()
        && is_account
        && resource.strip_prefix("role/").is_some_and(is_name)
}

fn is_region(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_known)
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// The value of a variable that has a name and a value and nothing else.
fn plain_text(variable: &Value) -> Option<&str> {
    variable.as_object().filter(|fields| fields.len() == 2)?.get("value")?.as_str()
}
