//! A certificate that clients are to trust, as a caBundle holds it.

use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

/// When a certificate begins and ends; in words, when such a time cannot be written.
pub(super) fn validity(certificate: &X509Certificate<'_>) -> Result<(Timestamp, Timestamp), String> {
    let moment = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
    let validity = certificate.validity();
    Ok((moment(validity.not_before.timestamp())?, moment(validity.not_after.timestamp())?))
}

/// A certificate that clients are to trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustAnchor {
    der: Vec<u8>,
    fingerprint: String,
    not_before: Timestamp,
    not_after: Timestamp,
    public_key: Vec<u8>,
    is_authority: bool,
}

impl TrustAnchor {
    /// Reads a certificate.
    ///
    /// # Errors
    /// In words, when it is not one.
    pub fn read(der: &[u8]) -> Result<Self, String> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let (not_before, not_after) = validity(&certificate)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Ok(Self {
            der: der.to_vec(),
            fingerprint: format!("{:016x}", u64::from_be_bytes(first)),
            not_before,
            not_after,
            public_key: certificate.public_key().raw.to_vec(),
            is_authority: certificate.is_ca(),
        })
    }

    /// Every certificate in the PEM that can be read, each once. Other content is of no use to a client either.
    pub fn read_all(pem: &[u8]) -> Vec<Self> {
        let mut anchors: Vec<Self> = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem).map_while(Result::ok) {
            if let Ok(anchor) = Self::read(&der)
                && !anchors.contains(&anchor)
            {
                anchors.push(anchor);
            }
        }
        anchors
    }

    /// One `CERTIFICATE` block, with the line ends of Unix.
    pub fn pem(&self) -> String {
        let config = EncodeConfig::new().set_line_ending(LineEnding::LF);
        pem::encode_config(&Pem::new("CERTIFICATE", self.der.as_slice()), config)
    }

    /// The certificate itself.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The first 16 hexadecimal digits of its SHA-256: enough to distinguish the certificates of one cluster.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// When it begins.
    pub const fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// When it ends.
    pub const fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Its public key, as a `SubjectPublicKeyInfo`.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Whether it may sign others.
    pub const fn is_authority(&self) -> bool {
        self.is_authority
    }
}

/// Sends the bundle to the registration of webhooks, if it changed.
pub fn publish(listeners: &watch::Sender<Option<String>>, anchors: &[TrustAnchor]) {
    let news = Some(bundle(anchors));
    listeners.send_if_modified(|bundle| {
        let changed = *bundle != news;
        *bundle = news;
        changed
    });
}

/// All of them, as a caBundle holds them.
pub fn bundle(anchors: &[TrustAnchor]) -> String {
    anchors.iter().map(TrustAnchor::pem).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certs::Authority;

    #[test]
    fn a_bundle_is_read_back_as_it_was_written_and_each_certificate_once() {
        let made: Vec<Authority> =
            ["a", "b"].map(|name| Authority::create(name, Duration::from_secs(3600), Timestamp::now()).unwrap()).into();
        let pem = made.iter().map(Authority::certificate_pem).collect::<String>();
        let anchors = TrustAnchor::read_all(pem.as_bytes());
        assert_eq!(anchors.len(), 2);
        assert!(anchors.iter().all(TrustAnchor::is_authority));
        assert_eq!(TrustAnchor::read_all((pem.clone() + &pem).as_bytes()), anchors);
        assert_eq!(TrustAnchor::read_all(bundle(&anchors).as_bytes()), anchors);
        assert!(anchors.iter().all(|anchor| anchor.fingerprint().len() == 16));
    }

    #[test]
    fn what_is_no_certificate_is_passed_over() {
        for text in ["", "no pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert_eq!(TrustAnchor::read_all(text.as_bytes()), [], "{text}");
        }
    }
}
