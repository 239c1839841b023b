//! A certificate chain with its key, checked before anybody relies on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring::default_provider;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::trust_anchor::{TrustAnchor, validity};

/// Why a pair cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// No readable certificate.
    #[error("no usable certificate: {0}; expected PEM with the leaf first, then its intermediates")]
    Certificate(String),
    /// No readable key.
    #[error("no usable private key: {0}; expected PEM with an ECDSA, RSA or Ed25519 key (PKCS #8, PKCS #1 or SEC1)")]
    Key(String),
    /// The two do not belong together.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
    /// The certificate has ended.
    #[error("the certificate ended at {0}")]
    Expired(Timestamp),
    /// The certificate has not begun.
    #[error("the certificate is not valid before {0}; is the clock right?")]
    NotYetValid(Timestamp),
}

/// A certificate chain and its private key that fit together and are valid now.
#[derive(Debug)]
pub struct ServingPair {
    certified_key: Arc<CertifiedKey>,
    not_before: Timestamp,
    not_after: Timestamp,
    names: Vec<String>,
}

impl ServingPair {
    /// Reads a chain (leaf first) and a key.
    ///
    /// # Errors
    /// [`PairError`] when anything about the pair would make a handshake fail at `now`.
    pub fn from_pem(chain: &[u8], key: &[u8], now: Timestamp) -> Result<Self, PairError> {
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| PairError::Certificate(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| PairError::Key(error.to_string()))?;
        Self::from_der(chain, &key, now)
    }

    /// As [`ServingPair::from_pem`], from what the PEM holds.
    ///
    /// # Errors
    /// As [`ServingPair::from_pem`].
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'_>,
        now: Timestamp,
    ) -> Result<Self, PairError> {
        let leaf = chain.first().ok_or_else(|| PairError::Certificate("the file holds none".to_owned()))?;
        let CertificateFacts { not_before, not_after, names } = facts(leaf)?;
        if now < not_before {
            return Err(PairError::NotYetValid(not_before));
        }
        if now > not_after {
            return Err(PairError::Expired(not_after));
        }
        let signing_key = any_supported_type(key).map_err(|error| PairError::Key(error.to_string()))?;
        let certified_key = CertifiedKey::new(chain, signing_key);
        certified_key.keys_match().map_err(|_| PairError::Mismatch)?;
        Ok(Self { certified_key: Arc::new(certified_key), not_before, not_after, names })
    }

    /// What rustls serves.
    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified_key)
    }

    /// When the leaf begins.
    pub const fn not_before(&self) -> Timestamp {
        self.not_before
    }

    /// When the leaf ends.
    pub const fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// The DNS names and addresses that the leaf is for.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether an API server that asks for this DNS name or address takes the leaf for it. It takes what rustls does not, such as
    /// `*.internal` for `hook.internal`, and names with bytes that no DNS name has.
    pub fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| is_same_name(pattern, name))
    }

    /// Whether clients that trust these authorities, and no others, trust the chain.
    pub fn is_trusted_by(&self, anchors: &[TrustAnchor], now: Timestamp) -> bool {
        self.verify(&roots(anchors), now).is_ok()
    }

    /// Whether clients that trust these authorities, and no others, are sure to refuse the chain: another library than ours may
    /// take what this one does not. Where there are none, nothing is known of what clients trust.
    pub fn is_foreign_to(&self, anchors: &[TrustAnchor], now: Timestamp) -> bool {
        use CertificateError as E;
        let roots = roots(anchors);
        // Go takes a certificate that is trusted itself (`crypto/x509`, `Certificate.Verify`).
        let is_anchor = |leaf: &CertificateDer<'_>| anchors.iter().any(|anchor| anchor.der() == leaf.as_ref());
        if anchors.is_empty() || roots.len() < anchors.len() || self.certified_key.cert.first().is_none_or(is_anchor) {
            return false;
        }
        matches!(self.verify(&roots, now), Err(rustls::Error::InvalidCertificate(E::UnknownIssuer | E::BadSignature)))
    }

    fn verify(&self, roots: &RootCertStore, now: Timestamp) -> Result<(), rustls::Error> {
        let (leaf, intermediates) =
            self.certified_key.cert.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        let leaf = ParsedCertificate::try_from(leaf)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()));
        let algorithms = default_provider().signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&leaf, roots, intermediates, now, algorithms)
    }
}

/// Whether a name of a certificate is the one that is asked for, as Go compares them (`crypto/x509`, `Certificate.VerifyHostname`).
pub fn is_same_name(pattern: &str, name: &str) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        return pattern.parse() == Ok(address);
    }
    let host = name.strip_suffix('.').unwrap_or(name);
    let beyond_label = |name| str::split_once(name, '.').map(|(_, rest)| rest);
    let by_wildcard = || pattern.strip_prefix("*.").zip(beyond_label(host));
    pattern.eq_ignore_ascii_case(host) || by_wildcard().is_some_and(|(rest, host)| rest.eq_ignore_ascii_case(host))
}

/// Those of them that can be trusted.
fn roots(anchors: &[TrustAnchor]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(anchors.iter().map(|anchor| CertificateDer::from(anchor.der())));
    roots
}

struct CertificateFacts {
    not_before: Timestamp,
    not_after: Timestamp,
    names: Vec<String>,
}

fn facts(leaf: &CertificateDer<'_>) -> Result<CertificateFacts, PairError> {
    let unreadable = |error: &dyn std::fmt::Display| PairError::Certificate(error.to_string());
    let (_, certificate) = X509Certificate::from_der(leaf).map_err(|error| unreadable(&error))?;
    let names = certificate
        .subject_alternative_name()
        .map_err(|error| unreadable(&error))?
        .map(|extension| extension.value.general_names.iter().filter_map(name).collect())
        .unwrap_or_default();
    let (not_before, not_after) = validity(&certificate).map_err(PairError::Certificate)?;
    Ok(CertificateFacts { not_before, not_after, names })
}

fn name(general: &GeneralName<'_>) -> Option<String> {
    match general {
        // A client that connects to an address does not compare names (`crypto/x509`, `Certificate.VerifyHostname`).
        GeneralName::DNSName(name) if name.parse::<IpAddr>().is_ok() => Some(format!("DNS:{name}")),
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(octets) => Some(Ipv4Addr::from(octets).to_string()),
            Err(_) => <[u8; 16]>::try_from(*bytes).ok().map(|octets| Ipv6Addr::from(octets).to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::Authority;

    #[test]
    fn a_certificate_is_for_the_names_that_the_api_server_takes_it_for() {
        let (day, now) = (Duration::from_secs(24 * 60 * 60), Timestamp::now());
        let authority = Authority::create("authority", day, now).unwrap();
        let all = |name: &str| authority.sign(vec![name.to_owned()], day, now).unwrap();
        for (pattern, taken, refused) in [
            (
                "hook.shop.svc",
                &["hook.shop.svc", "HOOK.shop.svc", "hook.shop.svc."][..],
                &["hook.shop", "a.hook.shop.svc", ""][..],
            ),
            ("Hook.Example.com", &["hook.example.com"], &["hook.example.org"]),
            ("*.shop.svc", &["hook.shop.svc"], &["shop.svc", "a.hook.shop.svc", "hook.other.svc"]),
            ("*.internal", &["hook.internal", "hook.internal."], &["internal", "a.hook.internal", "hook.local"]),
            ("my_hook.shop.svc", &["my_hook.shop.svc"], &["my-hook.shop.svc"]),
            ("127.0.0.1", &["127.0.0.1"], &["127.0.0.2", "localhost", "::1"]),
            ("::1", &["::1", "0:0:0:0:0:0:0:1"], &["::2", "127.0.0.1"]),
        ] {
            let pair = all(pattern);
            for name in taken {
                assert!(pair.is_for(name), "{pattern} is for {name}");
            }
            for name in refused {
                assert!(!pair.is_for(name), "{pattern} is not for {name}");
            }
        }
        assert!(!authority.sign(Vec::new(), day, now).unwrap().is_for("authority"), "no subjectAltName");
    }

    #[test]
    fn what_holds_a_key_has_none_in_its_debug_output() {
        let (day, now) = (Duration::from_secs(24 * 60 * 60), Timestamp::now());
        let authority = Authority::create("authority", day, now).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::default().self_signed(&key).unwrap();
        let pair = ServingPair::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes(), now).unwrap();
        for (printed, pem) in
            [(format!("{authority:?}"), authority.key_pem()), (format!("{pair:?}"), key.serialize_pem())]
        {
            let der = rcgen::KeyPair::from_pem(&pem).unwrap().serialize_der();
            // The secret number of a P-256 key in PKCS#8.
            let secret = &der[36..68];
            let (list, hexadecimal) = (format!("{secret:?}"), format!("{secret:02x?}").replace(", ", ""));
            assert!(!printed.contains(list.trim_matches(['[', ']'])), "{printed}");
            assert!(!printed.to_lowercase().contains(hexadecimal.trim_matches(['[', ']'])), "{printed}");
            assert!(!pem.lines().any(|line| printed.contains(line)), "{printed}");
        }
    }

    #[test]
    fn an_address_that_was_issued_as_a_name_is_no_address() {
        let mut params = rcgen::CertificateParams::default();
        params.subject_alt_names = vec![rcgen::SanType::DnsName("127.0.0.1".try_into().unwrap())];
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let now = Timestamp::now();
        let pair = ServingPair::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes(), now).unwrap();
        assert!(!pair.is_for("127.0.0.1"));
        assert_eq!(pair.names(), ["DNS:127.0.0.1"]);
    }
}
