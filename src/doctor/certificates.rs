//! Certificates: what a bundle holds, and when things end.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::doctor::entries::ConfigurationEntry;
use crate::doctor::facts::{Facts, Handshake};
use crate::doctor::report::Age;
use crate::names::CA_SECRET;

/// An authority that ends within this time should have been replaced.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// A certificate of a caBundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaCertificate {
    /// Its distinguished name, for messages.
    pub subject: String,
    /// When it ends.
    pub not_after: Timestamp,
    /// The certificate.
    pub der: Vec<u8>,
}

/// The certificates in PEM.
///
/// # Errors
/// In words, when there are none or one cannot be read.
pub fn read_bundle(pem: &[u8]) -> Result<Vec<CaCertificate>, String> {
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("it holds no certificate in PEM".to_owned());
    }
    certificates.iter().map(|der| read(der)).collect()
}

/// Reads one certificate.
///
/// # Errors
/// In words.
pub fn read(der: &[u8]) -> Result<CaCertificate, String> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    let not_after =
        Timestamp::from_second(certificate.validity().not_after.timestamp()).map_err(|error| error.to_string())?;
    Ok(CaCertificate { subject: certificate.subject().to_string(), not_after, der: der.to_vec() })
}

/// Whether it ends soon.
pub fn soon(end: Timestamp, now: Timestamp) -> bool {
    end.duration_since(now) < SOON
}

/// Whole days until then; negative when it is past.
pub fn days_until(end: Timestamp, now: Timestamp) -> i64 {
    end.duration_since(now).as_hours().div_euclid(24)
}

/// The certificates of ours, the first to end first.
pub fn ages(entries: &[ConfigurationEntry<'_>], facts: &Facts, now: Timestamp) -> Vec<Age> {
    let age = |of: String, not_after| Age { of, not_after, days_left: days_until(not_after, now) };
    let mut ages = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_ours()) {
        let pem = entry.client.ca_bundle.as_ref().map(|ByteString(pem)| pem.as_slice()).unwrap_or_default();
        for certificate in read_bundle(pem).unwrap_or_default() {
            ages.push(age(
                format!("in the caBundle of {} ({})", entry.object(), certificate.subject),
                certificate.not_after,
            ));
        }
        if let Some(Handshake::Trusted { not_after }) = facts.handshakes.get(&entry.key()) {
            ages.push(age(format!("served for {}", entry.object()), *not_after));
        }
    }
    let secret = facts.ca_secret.as_ref().and_then(|secret| secret.data.as_ref()?.get("tls.crt"));
    for certificate in secret.and_then(|ByteString(pem)| read_bundle(pem).ok()).unwrap_or_default() {
        ages.push(age(format!("in Secret {}/{CA_SECRET}", facts.namespace), certificate.not_after));
    }
    ages.sort_by(|a, b| (a.not_after, &a.of).cmp(&(b.not_after, &b.of)));
    // All entries of one configuration have the same.
    ages.dedup();
    ages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_bundle_is_told() {
        for (pem, expected) in [
            ("", "it holds no certificate in PEM"),
            ("no pem", "it holds no certificate in PEM"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "Parsing"),
        ] {
            let error = read_bundle(pem.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn days_are_whole_and_negative_after_the_end() {
        let now: Timestamp = "2026-01-10T12:00:00Z".parse().unwrap();
        for (end, days, is_soon) in [
            ("2026-01-10T13:00:00Z", 0, true),
            ("2026-01-12T12:00:00Z", 2, true),
            ("2026-01-10T11:00:00Z", -1, true),
            ("2026-01-24T12:00:01Z", 14, false),
        ] {
            let end = end.parse().unwrap();
            assert_eq!((days_until(end, now), soon(end, now)), (days, is_soon), "{end}");
        }
    }
}
