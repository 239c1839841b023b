//! Whether what belongs to Outrider is there, of one version, and in force.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource as _;
use serde::Serialize;

use crate::doctor::certificates::{days_until, read_bundle, soon};
use crate::doctor::facts::Facts;
use crate::doctor::report::{Check, Finding, Severity, counted};
use crate::kind::Kind;
use crate::kinds;
use crate::manager::break_glass::{ANNOTATION, BreakGlassRecord, since};
use crate::manager::failure_policies::{IGNORE, policies};
use crate::names::CA_SECRET;
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};
use engine::snapshot::EXCLUDE_LABEL;

pub fn examine(facts: &Facts, now: Timestamp) -> Vec<Finding> {
    let mut findings = configurations(facts);
    findings.extend(kinds::product().filter_map(|kind| definition(facts, kind)));
    findings.extend(replicas(facts));
    findings.extend(authority(facts, now));
    findings.extend(facts.excluded_by_no.iter().map(excluded));
    findings
}

/// One selector can require that a label exists or not, or which values it may have, but not both.
fn excluded(namespace: &Namespace) -> Finding {
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let value = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(EXCLUDE_LABEL));
    let found = format!(
        "its pods are left alone: the label {EXCLUDE_LABEL} excludes a namespace whatever its value, also {:?}",
        value.map(String::as_str).unwrap_or_default()
    );
    let remedy = format!("if its pods are to be injected: kubectl label namespace {name} {EXCLUDE_LABEL}-");
    finding(Check::ExcludedByNo, format!("namespace/{name}"), found, &remedy)
}

fn finding(check: Check, object: String, found: String, remedy: &str) -> Finding {
    Finding { severity: Severity::Warning, check, object, webhook: None, found, remedy: remedy.to_owned() }
}

fn configurations(facts: &Facts) -> Vec<Finding> {
    let mutating = facts.mutating.iter().map(|found| (&found.metadata, refusing(found)));
    let validating = facts.validating.iter().map(|found| (&found.metadata, refusing(found)));
    let ours = [
        (
            format!("mutatingwebhookconfiguration/{MUTATING}"),
            "mutatingwebhookconfigurations",
            named(mutating.clone(), MUTATING),
        ),
        (
            format!("validatingwebhookconfiguration/{VALIDATING}"),
            "validatingwebhookconfigurations",
            named(validating.clone(), VALIDATING),
        ),
    ];
    // Without entries nothing is asked by them, so they may be missing.
    let on_demand = [
        (format!("mutatingwebhookconfiguration/{ON_DEMAND_MUTATING}"), named(mutating, ON_DEMAND_MUTATING)),
        (format!("validatingwebhookconfiguration/{ON_DEMAND_VALIDATING}"), named(validating, ON_DEMAND_VALIDATING)),
    ];
    let mut findings = Vec::new();
    for (object, found) in on_demand {
        findings.extend(found.and_then(|(metadata, refusing)| break_glass(object, metadata, &refusing)));
    }
    for (object, resource, found) in ours {
        match found {
            Some((metadata, refusing)) => findings.extend(break_glass(object, metadata, &refusing)),
            None if facts.lacks(resource) => {}
            None => findings.push(finding(
                Check::Missing,
                object,
                "it does not exist: the API server does not call Outrider, and pods are created without their \
                 sets"
                    .to_owned(),
                "apply the chart, or: outrider manifests webhooks | kubectl apply --server-side -f -",
            )),
        }
    }
    findings
}

fn named<'a>(
    mut configurations: impl Iterator<Item = (&'a ObjectMeta, Vec<String>)>,
    name: &str,
) -> Option<(&'a ObjectMeta, Vec<String>)> {
    configurations.find(|(metadata, _)| metadata.name.as_deref() == Some(name))
}

/// Webhooks of a configuration that refuse requests while no replica answers.
fn refusing<C: Serialize>(configuration: &C) -> Vec<String> {
    let configuration = serde_json::json!(configuration);
    policies(&configuration).filter(|(_, policy)| *policy != IGNORE).map(|(name, _)| name.to_owned()).collect()
}

fn break_glass(object: String, metadata: &ObjectMeta, refusing: &[String]) -> Option<Finding> {
    let text = metadata.annotations.as_ref()?.get(ANNOTATION)?;
    let (found, remedy) = match serde_json::from_str::<BreakGlassRecord>(text) {
        Ok(BreakGlassRecord { by, at, .. }) if refusing.is_empty() => (
            format!(
                "break-glass is in force since {}, by {by}: while Outrider does not answer, pods are created without \
                 their sets",
                since(&at)
            ),
            "when Outrider answers again: outrider break-glass --undo",
        ),
        Ok(BreakGlassRecord { by, at, .. }) => (
            format!(
                "break-glass is in force since {}, by {by}, but {} put back to Fail meanwhile, as an upgrade does",
                since(&at),
                match refusing {
                    [one] => format!("webhook {one} was"),
                    more => format!("webhooks {} were", more.join(", ")),
                }
            ),
            "while Outrider does not answer, run it again: outrider break-glass; when Outrider answers: outrider \
             break-glass --undo",
        ),
        Err(error) => (
            format!("the annotation {ANNOTATION} is there but cannot be read: {error}"),
            "when Outrider answers again: outrider break-glass --undo",
        ),
    };
    Some(finding(Check::BreakGlass, object, found, remedy))
}

fn definition(facts: &Facts, kind: &Kind) -> Option<Finding> {
    let shipped = kind.definition();
    let name = shipped.metadata.name.clone().unwrap_or_default();
    let object = format!("customresourcedefinition/{name}");
    let remedy = "outrider manifests crds | kubectl apply --server-side -f -";
    let Some(stored) = facts.crds.iter().find(|stored| stored.metadata.name == shipped.metadata.name) else {
        if facts.lacks("customresourcedefinitions") || kind.is_optional {
            return None;
        }
        let found = "it does not exist: no replica becomes ready without it".to_owned();
        return Some(finding(Check::Missing, object, found, remedy));
    };
    if schemas(stored) == schemas(&shipped) {
        return None;
    }
    let found = format!(
        "its schema is not that of this outrider, {}: fields that only one of the two knows are dropped or refused",
        env!("CARGO_PKG_VERSION")
    );
    Some(finding(Check::VersionSkew, object, found, remedy))
}

/// The schema of each version.
fn schemas(crd: &CustomResourceDefinition) -> BTreeMap<&str, serde_json::Value> {
    crd.spec.versions.iter().map(|version| (version.name.as_str(), serde_json::json!(version.schema))).collect()
}

/// Replicas that run different images.
fn replicas(facts: &Facts) -> Option<Finding> {
    let mut images: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let running = facts.pods.iter().filter(|pod| pod.meta().deletion_timestamp.is_none());
    for container in running.filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers) {
        images.entry(&container.name).or_default().extend(container.image.as_deref());
    }
    let (container, images) = images.into_iter().find(|(_, images)| images.len() > 1)?;
    let images: Vec<&str> = images.into_iter().collect();
    let found = format!("replicas run different images in container {container}: {}", images.join(", "));
    let remedy = "check whether a rollout is in progress or stuck: kubectl rollout status -n NAMESPACE deployment";
    let remedy = remedy.replace("NAMESPACE", &facts.namespace);
    Some(finding(Check::VersionSkew, format!("namespace/{}", facts.namespace), found, &remedy))
}

fn authority(facts: &Facts, now: Timestamp) -> Option<Finding> {
    let ByteString(pem) = facts.ca_secret.as_ref()?.data.as_ref()?.get("tls.crt")?;
    let object = format!("secret/{CA_SECRET}");
    let remedy = "a replica with --certificates self replaces it; if none runs any more, delete the Secret";
    let found = match read_bundle(pem).map(|bundle| bundle.into_iter().next()) {
        Ok(Some(certificate)) if !soon(certificate.not_after, now) => return None,
        Ok(Some(certificate)) if certificate.not_after < now => {
            format!("the certificate authority ended at {}", certificate.not_after)
        }
        Ok(Some(certificate)) => format!(
            "the certificate authority ends at {}, in {}",
            certificate.not_after,
            counted(days_until(certificate.not_after, now).unsigned_abs(), "day")
        ),
        Ok(None) => return None,
        Err(why) => format!("the certificate authority cannot be read: {why}"),
    };
    Some(finding(Check::CertificateEnds, object, found, remedy))
}
