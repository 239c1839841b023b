//! Whether a process answers for a webhook, and is trusted.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::ServiceReference;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use crate::doctor::certificates::{CaCertificate, days_until, read_bundle, soon};
use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::{Facts, Handshake};
use crate::doctor::reach::Reach;
use crate::doctor::report::{Check, Finding, Severity, counted};
use crate::names::SERVICE_NAME_LABEL;

const DEFAULT_PORT: i32 = 443;
const INJECTOR: &str = "cert-manager.io/inject-";

/// What keeps the API server from an answer, or soon will.
pub fn examine(entry: &ConfigurationEntry<'_>, reach: &Reach, facts: &Facts, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some((found, remedy)) = entry.client.service.as_ref().and_then(|service| unanswered(service, entry, facts)) {
        findings.push(broken(entry, reach, Check::NobodyAnswers, &found, &remedy));
    }
    if let Some(Handshake::Unreachable(why)) = facts.handshakes.get(&entry.key()) {
        let url = entry.client.url.as_deref().unwrap_or_default();
        // The API server may reach it all the same; a lock that is missed costs more than one look too many.
        let found = format!("no answer from {url} to this machine: {why}");
        let remedy = "check that the process runs and that the API server can reach it";
        findings.push(broken(entry, reach, Check::NobodyAnswers, &found, remedy));
    }
    if let Some(Handshake::Misnamed(what)) = facts.handshakes.get(&entry.key()) {
        let found = format!("the certificate that is served {what}");
        findings.push(broken(entry, reach, Check::NotTrusted, &found, "have it issued for that name"));
    }
    if let Some(what) = facts.unconverted.get(&entry.key()) {
        let remedy = match entry.own_kind() {
            Some(kind) => format!(
                "if the kind was turned off, turn it on again (--enable-kinds {kind}), or release its objects: \
                 outrider uninstall --kind {kind}"
            ),
            None => "read the log of the process that answers there".to_owned(),
        };
        findings.push(broken(entry, reach, Check::NobodyAnswers, &format!("its conversion webhook {what}"), &remedy));
    }
    match trust(entry, facts, now) {
        Ok(bundle) => findings.extend(ends(entry, &bundle, now)),
        Err(found) => findings.push(broken(entry, reach, Check::NotTrusted, &found, &repair_trust(entry))),
    }
    findings
}

/// A webhook that cannot answer now: critical where pods wait for it.
fn broken(entry: &ConfigurationEntry<'_>, reach: &Reach, check: Check, found: &str, remedy: &str) -> Finding {
    let waits = entry.fails_closed && (reach.pods || !reach.vital.is_empty());
    let severity = if waits || entry.converts() { Severity::Critical } else { Severity::Warning };
    let (effect, way_out) = if entry.converts() {
        let effect = "objects of this kind cannot be read or written in another version than the stored one, and deleting a namespace \
                      may wait for that";
        (effect.to_owned(), format!("; {}", entry.way_out()))
    } else if entry.fails_closed {
        let what = if reach.pods { "new pods" } else { "what its rules match" };
        (format!("failurePolicy is Fail: the API server refuses {what}"), format!("; until then: {}", entry.way_out()))
    } else {
        ("failurePolicy is Ignore: requests pass without it".to_owned(), String::new())
    };
    entry.finding(severity, check, &format!("{found}; {effect}"), &format!("{remedy}{way_out}"))
}

/// Why no pod answers behind a Service, and what to do.
fn unanswered(reference: &ServiceReference, entry: &ConfigurationEntry<'_>, facts: &Facts) -> Option<(String, String)> {
    let ServiceReference { namespace, name, .. } = reference;
    if facts.lacks("services") {
        return None;
    }
    let Some(service) = facts.service(namespace, name) else {
        return Some((
            format!("there is no Service {namespace}/{name}"),
            if entry.converts() {
                format!("install what belongs to it in namespace {namespace}")
            } else {
                format!(
                    "install what belongs to it in namespace {namespace}, or delete the configuration if it was left behind"
                )
            },
        ));
    };
    let port = reference.port.unwrap_or(DEFAULT_PORT);
    let ports = || service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()).map(|port| port.port);
    // An ExternalName has no endpoints.
    if service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName") {
        return None;
    }
    if !ports().any(|found| found == port) {
        return Some((
            format!("Service {namespace}/{name} has no port {port}"),
            "make the port of the Service and of the webhook agree".to_owned(),
        ));
    }
    if facts.lacks("endpointslices") {
        return None;
    }
    let (ready, all) = endpoints(service, facts);
    if ready > 0 {
        return None;
    }
    let found = match all {
        0 => format!("Service {namespace}/{name} has no endpoints"),
        all => format!("Service {namespace}/{name} has no ready endpoint, {all} not ready"),
    };
    Some((
        found,
        format!(
            "find out why its pods do not run or are not ready: kubectl get pods -n {namespace}{}",
            selector(service)
        ),
    ))
}

fn selector(service: &Service) -> String {
    let labels = service.spec.iter().flat_map(|spec| spec.selector.iter().flatten());
    let terms: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    if terms.is_empty() { String::new() } else { format!(" -l {}", terms.join(",")) }
}

/// How many endpoints of a Service are ready, and how many there are.
fn endpoints(service: &Service, facts: &Facts) -> (usize, usize) {
    let of_service = |slice: &&EndpointSlice| {
        let label = slice.metadata.labels.as_ref().and_then(|labels| labels.get(SERVICE_NAME_LABEL));
        slice.metadata.namespace == service.metadata.namespace && label == service.metadata.name.as_ref()
    };
    let all: Vec<&Endpoint> =
        facts.endpoint_slices.iter().filter(of_service).flat_map(|slice| slice.endpoints.iter().flatten()).collect();
    (all.iter().filter(|endpoint| is_ready(endpoint)).count(), all.len())
}

/// "A nil value should be interpreted as true" (`k8s.io/api/discovery/v1`, `EndpointConditions.Ready`).
pub fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready.unwrap_or(true))
}

/// The authorities that the API server trusts, or why it trusts none that could answer.
fn trust(entry: &ConfigurationEntry<'_>, facts: &Facts, now: Timestamp) -> Result<Vec<CaCertificate>, String> {
    let pem = entry.client.ca_bundle.as_ref().map(|ByteString(pem)| pem.as_slice()).unwrap_or_default();
    if pem.is_empty() {
        // With an address outside, the certificates of the system may do.
        let by_service = entry.client.service.is_some();
        return if by_service {
            Err("caBundle is empty: the API server trusts no certificate".to_owned())
        } else {
            Ok(Vec::new())
        };
    }
    let bundle = read_bundle(pem).map_err(|why| format!("caBundle cannot be read: {why}"))?;
    let last = bundle.iter().max_by_key(|certificate| certificate.not_after);
    if let Some(last) = last.filter(|last| last.not_after < now) {
        return Err(format!("caBundle holds no valid certificate: {} ended at {}", last.subject, last.not_after));
    }
    if let Some(Handshake::Untrusted(why)) = facts.handshakes.get(&entry.key()) {
        return Err(format!("the certificate that is served is not trusted by caBundle: {why}"));
    }
    let signs =
        facts.ca_secret.as_ref().filter(|_| entry.is_ours()).and_then(|secret| secret.data.as_ref()?.get("tls.crt"));
    let signs = signs.and_then(|ByteString(pem)| read_bundle(pem).ok()).unwrap_or_default();
    let is_there = |wanted: &CaCertificate| bundle.iter().any(|found| found.der == wanted.der);
    match signs.first().filter(|signing| !is_there(signing)) {
        // A replica with certificates from files leaves the Secret of an earlier mode behind; the handshake knows better.
        Some(_) if matches!(facts.handshakes.get(&entry.key()), Some(Handshake::Trusted { .. })) => Ok(bundle),
        Some(_) => Err(format!(
            "caBundle does not hold the authority in Secret {}/{}, with which replicas sign their certificates",
            facts.namespace,
            crate::names::CA_SECRET
        )),
        None => Ok(bundle),
    }
}

fn repair_trust(entry: &ConfigurationEntry<'_>) -> String {
    let annotations = entry.metadata.annotations.iter().flatten();
    match annotations.into_iter().find(|(key, _)| key.starts_with(INJECTOR)) {
        Some((key, value)) => {
            format!("cert-manager's cainjector fills caBundle ({key}: {value}); check its log and that Certificate")
        }
        None if entry.is_ours() => {
            "with --certificates self the leader writes caBundle within 15 s: check that a replica is ready and \
             leads; with certificates from files check cert-manager's annotation on the configuration"
                .to_owned()
        }
        None => "put into caBundle the authority that signed the serving certificate".to_owned(),
    }
}

fn ends(entry: &ConfigurationEntry<'_>, bundle: &[CaCertificate], now: Timestamp) -> Option<Finding> {
    let last = bundle.iter().max_by_key(|certificate| certificate.not_after)?;
    if !soon(last.not_after, now) {
        return None;
    }
    let found = format!(
        "the last certificate in caBundle, {}, ends at {}, in {}",
        last.subject,
        last.not_after,
        counted(days_until(last.not_after, now).unsigned_abs(), "day")
    );
    Some(entry.finding(Severity::Warning, Check::CertificateEnds, &found, &repair_trust(entry)))
}
