//! The Secret with the serving certificate that the pods mount: whether a replica can serve with it.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::certs::files::{DEFAULT_DIR, listed};
use crate::certs::{PairError, ServingPair};
use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::Facts;
use crate::doctor::replica::{ReplicaContainer, ReplicaPod, ReplicaSpec, flag};
use crate::doctor::report::{Check, Finding, Severity};
use crate::manager::registration::host;

/// Name of the Secret that the pods mount where `outrider serve` reads its certificate.
pub fn secret_name(pods: &[ReplicaPod]) -> Option<&str> {
    pods.iter().filter_map(|pod| pod.spec.as_ref()).find_map(|spec| {
        let serving = spec.containers.iter().find_map(mount)?;
        secret_of(spec, serving)
    })
}

/// Name of the volume that holds the certificate of this container.
fn mount(container: &ReplicaContainer) -> Option<&str> {
    let dir = flag(container.serve_args()?, "--cert-dir").unwrap_or(DEFAULT_DIR).trim_end_matches('/');
    container
        .volume_mounts
        .iter()
        .find(|mount| mount.mount_path.trim_end_matches('/') == dir)
        .map(|mount| mount.name.as_str())
}

fn secret_of<'a>(spec: &'a ReplicaSpec, volume: &str) -> Option<&'a str> {
    spec.volumes.iter().find(|found| found.name == volume)?.secret.as_ref()?.secret_name.as_deref()
}

/// What keeps replicas that start with the Secret from getting ready.
pub fn examine(facts: &Facts, now: Timestamp) -> Option<Finding> {
    let name = secret_name(&facts.pods)?;
    let entries: Vec<ConfigurationEntry<'_>> =
        ConfigurationEntry::all(facts).into_iter().filter(ConfigurationEntry::is_ours).collect();
    let (check, found, remedy) = match &facts.serving_secret {
        Some(secret) => unusable(secret, &entries, now)?,
        None if facts.lacks("secrets") => return None,
        None => (
            Check::Missing,
            "it does not exist, and pods that mount it do not start".to_owned(),
            "find out why it is not created: kubectl describe certificates -n NAMESPACE",
        ),
    };
    // It may be that replicas go on with the one that they had.
    let severity = if entries.iter().any(|entry| entry.fails_closed) { Severity::Critical } else { Severity::Warning };
    Some(Finding {
        severity,
        check,
        object: format!("secret/{name}"),
        webhook: None,
        found,
        remedy: remedy.replace("NAMESPACE", &facts.namespace),
    })
}

fn unusable(
    secret: &Secret,
    entries: &[ConfigurationEntry<'_>],
    now: Timestamp,
) -> Option<(Check, String, &'static str)> {
    let file = |name: &str| {
        let found = secret.data.as_ref().and_then(|data| data.get(name));
        found.map(|ByteString(bytes)| bytes.as_slice()).unwrap_or_default()
    };
    let effect = "a replica that starts with it does not become ready";
    match ServingPair::from_pem(file("tls.crt"), file("tls.key"), now) {
        Ok(pair) => {
            let asked = entries.iter().filter_map(asked).find(|name| !pair.is_for(name))?;
            let found =
                format!("tls.crt is for {}, and the API server asks for {asked}: {effect}", listed(pair.names()));
            Some((Check::NotTrusted, found, "put a certificate there that is issued for that name"))
        }
        Err(error) => {
            let ended = matches!(error, PairError::Expired(_));
            let check = if ended { Check::CertificateEnds } else { Check::NotTrusted };
            let remedy = "correct the certificate's issuer: kubectl describe certificates -n NAMESPACE";
            Some((check, format!("{error}: {effect}"), remedy))
        }
    }
}

/// The name that the API server asks for.
fn asked(entry: &ConfigurationEntry<'_>) -> Option<String> {
    match &entry.client.service {
        Some(service) => Some(format!("{}.{}.svc", service.name, service.namespace)),
        None => host(entry.client.url.as_deref()?),
    }
}
