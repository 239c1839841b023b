//! A certificate authority of our own, and the leaves it signs.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::pair::{PairError, ServingPair};

/// Certificates begin this long before they are made: the clocks of two nodes differ.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

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
}

/// A certificate authority: a P-256 key and a certificate signed with it.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
}

impl Authority {
    /// Makes a new authority that ends `lifetime` after `now`.
    ///
    /// # Errors
    /// [`AuthorityError`] when there is no randomness or the time does not fit.
    pub fn create(common_name: &str, lifetime: Duration, now: Timestamp) -> Result<Self, AuthorityError> {
        let mut params = params(Vec::new(), common_name, lifetime, now)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate_pem })
    }

    /// Reads an authority back from what [`Authority::certificate_pem`] and [`Authority::key_pem`] gave.
    ///
    /// # Errors
    /// [`AuthorityError::Write`] when either cannot be read. Whether they belong together shows when a leaf is verified.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(certificate, KeyPair::from_pem(key)?)?;
        Ok(Self { issuer, certificate_pem: certificate.to_owned() })
    }

    /// The certificate, as a `caBundle` or a file for `curl --cacert` holds it.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
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

    fn issue(
        &self,
        names: Vec<String>,
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<(rcgen::Certificate, KeyPair), AuthorityError> {
        let common_name = names.first().cloned().unwrap_or_default();
        let mut params = params(names, &common_name, lifetime, now)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate, key))
    }
}

fn params(
    names: Vec<String>,
    common_name: &str,
    lifetime: Duration,
    now: Timestamp,
) -> Result<CertificateParams, AuthorityError> {
    let seconds = u64::try_from(now.as_second()).map_err(|_| AuthorityError::Time(now))?;
    let moment = rcgen::date_time_ymd(1970, 1, 1)
        .checked_add(Duration::from_secs(seconds).try_into().map_err(|_| AuthorityError::Time(now))?)
        .ok_or(AuthorityError::Time(now))?;
    let mut params = CertificateParams::new(names)?;
    params.not_before = moment - CLOCK_SKEW;
    params.not_after = moment + lifetime;
    params.distinguished_name = DistinguishedName::new();
    // A common name is limited to 64 characters (RFC 5280, ub-common-name); service names may be longer.
    params.distinguished_name.push(DnType::CommonName, common_name.chars().take(64).collect::<String>());
    Ok(params)
}
