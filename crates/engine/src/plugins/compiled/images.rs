//! The section of `ImagePolicyWebhook`, with the ranges of the API server's own configuration
//! (`k8s.io/kubernetes/plugin/pkg/admission/imagepolicy/config.go`).

use admission::field::{Error, ErrorList, Path};
use admission::format::names::dns1123_label;
use admission::question::ImageBackend;
use admission::registry::Rule;

use super::Settings;
use crate::plugins::api::PluginSpec;
use crate::plugins::image_policy::{ImagePolicy, KUBECONFIG};
use crate::plugins::shortened;

/// Seconds for which an answer counts: the default of a yes and of a no, and the most.
const ALLOW_TTL: u32 = 300;
const DENY_TTL: u32 = 30;
const MAX_TTL: u32 = 30 * 60;
/// Milliseconds before the second try: the default, and the most.
const RETRY_BACKOFF: u32 = 500;
const MAX_BACKOFF: u32 = 5 * 60 * 1000;
/// Longest key of a Secret.
const KEY: usize = 253;

pub(super) fn image_policy(spec: &PluginSpec, path: &Path, errors: &mut ErrorList) -> Settings {
    let section = spec.image_policy_webhook.clone().unwrap_or_default();
    let name = section.kube_config_key.unwrap_or_else(|| KUBECONFIG.to_owned());
    if !is_key(&name) {
        let detail = "must be a key of a Secret: letters, digits, '-', '_' and '.', at most 253 of them";
        errors.push(Error::invalid(&path.child("kubeConfigKey"), shortened(&name), detail));
    }
    for fault in section.backend_namespace.iter().flat_map(|namespace| dns1123_label(namespace)) {
        let found = section.backend_namespace.as_deref().unwrap_or_default();
        errors.push(Error::invalid(&path.child("backendNamespace"), shortened(found), fault));
    }
    let mut normalised =
        |field: &'static str, value: Option<i64>, default: u32, max: u32, unit: &str| match value.unwrap_or_default() {
            0 => default,
            -1 => 0,
            other => u32::try_from(other).ok().filter(|found| (1..=max).contains(found)).unwrap_or_else(|| {
                let detail = format!("must be between 1 and {max} {unit}, 0 for {default}, or -1 for none");
                errors.push(Error::invalid(&path.child(field), other, detail));
                default
            }),
        };
    let allow_ttl = normalised("allowTTL", section.allow_ttl, ALLOW_TTL, MAX_TTL, "seconds");
    let deny_ttl = normalised("denyTTL", section.deny_ttl, DENY_TTL, MAX_TTL, "seconds");
    let retry_backoff = normalised("retryBackoff", section.retry_backoff, RETRY_BACKOFF, MAX_BACKOFF, "milliseconds");
    // One that is out of range is reported with the field.
    let timeout_seconds = spec.timeout_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let timeout_seconds = timeout_seconds.unwrap_or_else(|| Rule::TIMEOUT_SECONDS.into());
    Settings::ImagePolicy(ImagePolicy {
        backend: ImageBackend { name, allow_ttl, deny_ttl, retry_backoff, timeout_seconds },
        default_allow: section.default_allow.unwrap_or_default(),
    })
}

fn is_key(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= KEY && name.bytes().all(is_allowed) && name != "." && !name.starts_with("..")
}
