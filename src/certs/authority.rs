//! A certificate authority of our own, and the leaves it signs.

use std::time::Duration;

use admission::bounded::first_chars;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::pair::{PairError, ServingPair};
use super::trust_anchor::TrustAnchor;

/// Certificates begin this long before they are made: the clocks of two nodes differ.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Why an authority could not be made, read, or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// The library that writes certificates refused.
    #[error("cannot write the certificate: {0}")]
    Write(#[from] rcgen::Error),
    /// The certificate was written but cannot serve.
    #[error("the signed certificate cannot serve: {0}")]
    Unusable(#[from] PairError),
    /// The moment does not fit into a certificate.
    #[error("the time {0} does not fit into a certificate")]
    Time(Timestamp),
    /// The certificate is not one, or may not sign.
    #[error("no certificate of an authority: {0}")]
    Certificate(String),
    /// The key cannot be read.
    #[error("no usable private key ({0}); expected PEM with a key in PKCS #8")]
    Key(rcgen::Error),
    /// The two do not belong together.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

/// A certificate authority: a key and a certificate signed with it.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    anchor: TrustAnchor,
}

impl Authority {
    /// Makes a new authority with a P-256 key that ends `lifetime` after `now`.
    ///
    /// # Errors
    /// [`AuthorityError`] when there is no randomness or the time does not fit.
    pub fn create(common_name: &str, lifetime: Duration, now: Timestamp) -> Result<Self, AuthorityError> {
        let (begin, end) = life(lifetime, now)?;
        let mut params = params(Vec::new(), common_name, begin, end)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let anchor = TrustAnchor::read(certificate.der()).map_err(AuthorityError::Certificate)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate_pem: certificate.pem(), anchor })
    }

    /// Reads an authority back from what [`Authority::certificate_pem`] and [`Authority::key_pem`] gave.
    ///
    /// # Errors
    /// [`AuthorityError`] when either cannot be read, they do not belong together, or the certificate may not sign others.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let anchor = TrustAnchor::read_all(certificate.as_bytes()).into_iter().next();
        let anchor = anchor.ok_or_else(|| AuthorityError::Certificate("expected PEM".to_owned()))?;
        if !anchor.is_authority() {
            return Err(AuthorityError::Certificate("it may not sign others (basic constraints)".to_owned()));
        }
        let key = KeyPair::from_pem(key).map_err(AuthorityError::Key)?;
        if key.subject_public_key_info() != anchor.public_key() {
            return Err(AuthorityError::Mismatch);
        }
        let issuer = Issuer::from_ca_cert_pem(certificate, key)?;
        Ok(Self { issuer, certificate_pem: certificate.to_owned(), anchor })
    }

    /// The certificate, as a `caBundle` or a file for `curl --cacert` holds it.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The certificate, as clients are to trust it.
    pub const fn anchor(&self) -> &TrustAnchor {
        &self.anchor
    }

    /// The private key. Keep it in a Secret or in memory.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Signs a server certificate for `names` (DNS names and IP addresses) with a new P-256 key.
    ///
    /// # Errors
    /// [`AuthorityError`] when a name is not one, or the time does not fit.
    pub fn sign(&self, names: Vec<String>, lifetime: Duration, now: Timestamp) -> Result<ServingPair, AuthorityError> {
        let (chain, key) = self.issue(names, lifetime, now)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(ServingPair::from_der(vec![chain.der().clone()], &key, now)?)
    }

    /// As [`Authority::sign`], as the PEM of `tls.crt` and `tls.key`.
    ///
    /// # Errors
    /// As [`Authority::sign`].
    pub fn sign_pem(
        &self,
        names: Vec<String>,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(String, String), AuthorityError> {
        let (certificate, key) = self.issue(names, lifetime, now)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// A certificate within the life of the authority: clients check both.
    fn issue(
        &self,
        names: Vec<String>,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(rcgen::Certificate, KeyPair), AuthorityError> {
        let common_name = names.first().cloned().unwrap_or_default();
        let (begin, end) = life(lifetime, now)?;
        let (begin, end) = (begin.max(self.anchor.not_before()), end.min(self.anchor.not_after()));
        let mut params = params(names, &common_name, begin, end)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate, key))
    }
}

/// Begin and end of a certificate that is made now.
fn life(lifetime: Duration, now: Timestamp) -> Result<(Timestamp, Timestamp), AuthorityError> {
    let begin = now.checked_sub(CLOCK_SKEW).map_err(|_| AuthorityError::Time(now))?;
    let end = now.checked_add(lifetime).map_err(|_| AuthorityError::Time(now))?;
    Ok((begin, end))
}

fn params(
    names: Vec<String>,
    common_name: &str,
    begin: Timestamp,
    end: Timestamp,
) -> Result<CertificateParams, AuthorityError> {
    let moment = |moment: Timestamp| {
        let seconds = u64::try_from(moment.as_second()).map_err(|_| AuthorityError::Time(moment))?;
        rcgen::date_time_ymd(1970, 1, 1)
            .checked_add(Duration::from_secs(seconds).try_into().map_err(|_| AuthorityError::Time(moment))?)
            .ok_or(AuthorityError::Time(moment))
    };
    let mut params = CertificateParams::new(names)?;
    (params.not_before, params.not_after) = (moment(begin)?, moment(end)?);
    params.distinguished_name = DistinguishedName::new();
    // A common name is limited to 64 characters (RFC 5280, ub-common-name); service names may be longer.
    params.distinguished_name.push(DnType::CommonName, first_chars(common_name, 64));
    Ok(params)
}
