//! Sources of a projected volume (`validateProjectionSources` in `k8s.io/kubernetes/pkg/apis/core/validation`).

use std::collections::HashSet;

use admission::field::{Error, ErrorList, Path};
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::format::names::{
    LABEL_MAX_BYTES, SUBDOMAIN_MAX_BYTES, dns1123_label, dns1123_subdomain, qualified_name,
};

use super::Node;
use super::paths::check_not_reserved;
use super::volumes::{check_downward_file, check_items, check_mode};
use crate::sidecarset::validation::selectors::check_terms;

const KINDS: [&str; 6] =
    ["clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"];
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const CERTIFICATE_PATHS: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];
const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

/// Checks a projected volume.
pub fn check(projected: &Node<'_>, errors: &mut ErrorList) {
    check_mode(projected, "defaultMode", errors);
    // Each file of the volume, and the field that names it.
    let mut files = Vec::new();
    for source in projected.child("sources").items() {
        if KINDS.iter().filter(|kind| source.get(kind).is_some()).count() > 1 {
            errors.push(Error::forbidden(&source.path, "may not specify more than 1 volume type per source"));
        }
        for kind in ["secret", "configMap"] {
            if let Some(source) = source.get(kind) {
                source.require_text("name", errors);
                check_items(&source, errors);
                files.extend(source.child("items").items().map(|item| (item, "path")));
            }
        }
        if let Some(source) = source.get("downwardAPI") {
            for file in source.child("items").items() {
                check_downward_file(&file, errors);
                files.push((file, "path"));
            }
        }
        if let Some(token) = source.get("serviceAccountToken") {
            check_token(&token, errors);
        }
        if let Some(bundle) = source.get("clusterTrustBundle") {
            check_bundle(&bundle, errors);
            files.push((bundle, "path"));
        }
        if let Some(certificate) = source.get("podCertificate") {
            check_certificate(&certificate, errors);
            files.extend(CERTIFICATE_PATHS.map(|field| (certificate.clone(), field)));
        }
    }
    let mut seen = HashSet::new();
    for (file, field) in files {
        let path = file.text(field);
        if !path.is_empty() && !seen.insert(path) {
            errors.push(Error::invalid(&file.path.child(field), path, "conflicting duplicate paths"));
        }
    }
}

fn check_token(token: &Node<'_>, errors: &mut ErrorList) {
    let wrong = match token.number("expirationSeconds") {
        Some(..600) => "may not specify a duration less than 10 minutes",
        Some(4_294_967_297..) => "may not specify a duration larger than 2^32 seconds",
        _ => "",
    };
    if !wrong.is_empty() {
        let field = token.child("expirationSeconds");
        errors.push(Error::invalid(&field.path, field.value, wrong));
    }
    if token.require_text("path", errors).is_some() {
        check_not_reserved(token, "path", errors);
    }
}

fn check_bundle(bundle: &Node<'_>, errors: &mut ErrorList) {
    let (name, signer, labels) = (bundle.get("name"), bundle.get("signerName"), bundle.get("labelSelector"));
    match (name, signer) {
        (Some(_), Some(_)) => {
            errors.push(Error::invalid(&bundle.path, bundle.value, "only one of name and signerName may be used"));
        }
        (Some(_), None) => {
            if bundle.require_text("name", errors).is_some() {
                bundle.check_text("name", wrong_bundle_name, errors);
            }
            if let Some(labels) = labels {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(Error::invalid(&labels.path, labels.value, detail));
            }
        }
        (None, Some(_)) => {
            check_signer(bundle, errors);
            if let Some(labels) = labels {
                check_terms(&labels, errors);
            }
        }
        (None, None) => errors.push(Error::required(&bundle.path, "either name or signerName must be specified")),
    }
    bundle.require_text("path", errors);
    check_not_reserved(bundle, "path", errors);
}

/// A bundle of a signer is named after it, with colons for its slash: `example.com:signer:name`.
fn wrong_bundle_name(name: &str) -> Vec<String> {
    let own = match name.rsplit_once(':') {
        Some((signer, _)) if signer.contains('/') => {
            let prefix = signer.replace('/', ":");
            let detail = format!(
                "ClusterTrustBundle for signerName {} must be named with prefix {prefix}:",
                signer.replace(':', "/")
            );
            return vec![format!("not a valid clustertrustbundlename: {detail}")];
        }
        Some((_, own)) => own,
        None => name,
    };
    dns1123_subdomain(own).into_iter().map(|message| format!("not a valid clustertrustbundlename: {message}")).collect()
}

fn check_certificate(certificate: &Node<'_>, errors: &mut ErrorList) {
    check_signer(certificate, errors);
    check_annotations(&certificate.child("userAnnotations"), errors);
    if certificate.require_text("keyType", errors).is_some() {
        certificate.check_word("keyType", &KEY_TYPES, errors);
    }
    let signer = certificate.text("signerName");
    let host = signer.split_once('/').map_or(signer, |(host, _)| host);
    let is_kubernetes = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    let most = if is_kubernetes { DAY } else { 91 * DAY };
    let seconds = certificate.child("maxExpirationSeconds");
    let wrong = match seconds.value.as_i64() {
        Some(..HOUR) => Some(format!("if provided, maxExpirationSeconds must be >= {HOUR}")),
        Some(number) if number > most => Some(format!("if provided, maxExpirationSeconds must be <= {most}")),
        _ => None,
    };
    errors.extend(wrong.map(|detail| Error::invalid(&seconds.path, seconds.value, detail)));
    if CERTIFICATE_PATHS.iter().all(|field| certificate.text(field).is_empty()) {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(Error::required(&certificate.path, detail));
    }
    for field in CERTIFICATE_PATHS {
        check_not_reserved(certificate, field, errors);
    }
}

/// `ValidateUserAnnotations`: every key has a domain in front.
fn check_annotations(annotations: &Node<'_>, errors: &mut ErrorList) {
    let mut bytes = 0_usize;
    for (key, value) in annotations.entries() {
        bytes = bytes.saturating_add(key.len()).saturating_add(value.value.as_str().unwrap_or_default().len());
        let lower = key.to_lowercase();
        let mut wrong = qualified_name(&lower);
        if wrong.is_empty() && !key.contains('/') {
            wrong.push("must be a domain-prefixed key (such as \"acme.io/foo\")".to_owned());
        }
        errors.extend(wrong.into_iter().map(|message| Error::invalid(&annotations.path, key, message)));
    }
    if bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(&annotations.path, ANNOTATIONS_MAX_BYTES));
    }
}

/// `ValidateSignerName`: a domain of at least two labels, a slash, and a path of subdomains.
fn check_signer(source: &Node<'_>, errors: &mut ErrorList) {
    const LENGTH_MAX: usize = SUBDOMAIN_MAX_BYTES + 1 + SUBDOMAIN_MAX_BYTES + LABEL_MAX_BYTES + 1;
    let Some(name) = source.require_text("signerName", errors) else { return };
    let path = source.path.child("signerName");
    let (domain, rest) = match name.split_once('/') {
        Some((domain, rest)) if !rest.contains('/') => (domain, rest),
        _ => {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            return errors.push(Error::invalid(&path, name, detail));
        }
    };
    if domain.len() > SUBDOMAIN_MAX_BYTES {
        errors.push(Error::too_long(&path, SUBDOMAIN_MAX_BYTES));
    }
    check_labels(domain, dns1123_label, &path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(&path, domain, detail));
    }
    check_labels(rest, dns1123_subdomain, &path, errors);
    if name.len() > LENGTH_MAX {
        errors.push(Error::too_long(&path, LENGTH_MAX));
    }
}

/// Adds what is wrong with the first wrong label of `text`.
fn check_labels(text: &str, rule: impl Fn(&str) -> Vec<String>, path: &Path, errors: &mut ErrorList) {
    let wrong = text.split('.').map(|label| (label, rule(label))).find(|(_, messages)| !messages.is_empty());
    if let Some((label, messages)) = wrong {
        for message in messages {
            errors.push(Error::invalid(path, text, format!("validating label {label:?}: {message}")));
        }
    }
}
