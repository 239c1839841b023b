//! The throw-away certificate authority of one cluster, and the kubeconfig files that its certificates go into.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// A client's certificate and key.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// Its private key, PKCS#8 PEM.
    pub key_pem: String,
}

/// Signs every certificate of one cluster.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one, which no client knows.
    pub(crate) fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "outrider test cluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// The authority's own certificate, PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a server that is reached under `names` (DNS names and addresses).
    pub(crate) fn server(&self, names: &[&str]) -> Result<Credentials, Error> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        self.sign(CertificateParams::new(names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A certificate that the API server takes as the user `name` in `groups`
    /// (common name and organizations, as in Kubernetes' X.509 client certificate authentication).
    pub(crate) fn client(&self, name: &str, groups: &[&str]) -> Result<Credentials, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Credentials, Error> {
        let key = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let certificate_pem = params.signed_by(&key, &self.0)?.pem();
        Ok(Credentials { certificate_pem, key_pem: key.serialize_pem() })
    }
}

/// Writes `<dir>/<name>.crt` and `<dir>/<name>.key`; the key is for the owner's eyes only.
pub(crate) fn write_pair(dir: &Path, name: &str, credentials: &Credentials) -> Result<(PathBuf, PathBuf), Error> {
    let certificate = dir.join(format!("{name}.crt"));
    let key = dir.join(format!("{name}.key"));
    fs::write(&certificate, &credentials.certificate_pem).map_err(|e| Error::io("write", &certificate, e))?;
    write_private(&key, &credentials.key_pem)?;
    Ok((certificate, key))
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| Error::io("write", path, e))
}

/// A kubeconfig that names its certificates by absolute path. JSON, which is YAML too, so that no path needs quoting rules.
pub(crate) fn kubeconfig(server: &str, ca: &Path, certificate: &Path, key: &Path) -> String {
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "outrider", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "outrider", "user": {"client-certificate": certificate, "client-key": key}}],
        "contexts": [{"name": "outrider", "context": {"cluster": "outrider", "user": "outrider"}}],
        "current-context": "outrider",
    });
    format!("{config:#}\n")
}
