//! The one certificate that both servers use, and the client that trusts it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::{ClientConfig, RootCertStore};

use crate::error::BenchError;

/// Writes `tls.crt` and `tls.key` (the names in a Kubernetes TLS Secret) for 127.0.0.1 into `folder`.
///
/// # Errors
/// A certificate that cannot be made, a file that cannot be written.
pub fn write(folder: &Path) -> Result<Arc<ClientConfig>, BenchError> {
    let signing_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let cert = rcgen::CertificateParams::new(names)?.self_signed(&signing_key)?;
    let pair = CertifiedKey { cert, signing_key };
    for (name, text) in [("tls.crt", pair.cert.pem()), ("tls.key", pair.signing_key.serialize_pem())] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(BenchError::file(path))?;
    }
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(Arc::new(
        ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth(),
    ))
}
