//! The one TLS configuration of the process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The authorities of clients cannot be read.
    #[error("cannot read the client CA file {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read, but it holds no usable authority.
    #[error("the client CA file {path} is not usable: {why}", path = path.display())]
    ClientCa {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The library refused its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// How connections are secured from the next one on.
#[derive(Clone)]
pub struct Acceptor(Arc<ArcSwap<ServerConfig>>);

impl Acceptor {
    /// Begins with this configuration.
    pub fn new(config: ServerConfig) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(config)))
    }

    /// Uses this configuration from the next connection on. Sessions of another are not resumed: what they were admitted by may be
    /// gone.
    pub fn swap(&self, config: ServerConfig) {
        self.0.store(Arc::new(config));
    }

    /// Begins the handshake.
    pub fn accept(&self, stream: TcpStream) -> Accept<TcpStream> {
        TlsAcceptor::from(self.0.load_full()).accept(stream)
    }
}

/// Authorities of clients, as they were read.
#[derive(Debug, Clone, Copy)]
pub struct ClientCa<'a> {
    /// Where.
    pub path: &'a Path,
    /// One or more `CERTIFICATE` blocks.
    pub pem: &'a [u8],
}

/// TLS 1.2 and newer; certificates from `resolver`. With `client_ca`, clients must show a certificate that it signed.
///
/// The provider is named, not looked up: with two providers among the dependencies, the look-up panics at run time.
///
/// # Errors
/// [`TlsError`] when `client_ca` cannot be used.
pub fn server_config(
    resolver: Arc<dyn ResolvesServerCert>,
    client_ca: Option<ClientCa<'_>>,
    enable_http2: bool,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&TLS13, &TLS12])?;
    let mut config = match client_ca {
        None => builder.with_no_client_auth(),
        Some(client_ca) => {
            let roots = Arc::new(roots(client_ca)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| TlsError::ClientCa { path: client_ca.path.to_owned(), why: error.to_string() })?;
            builder.with_client_cert_verifier(verifier)
        }
    }
    .with_cert_resolver(resolver);
    config.alpn_protocols =
        if enable_http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(config)
}

fn roots(ClientCa { path, pem }: ClientCa<'_>) -> Result<RootCertStore, TlsError> {
    let unusable = |why: String| TlsError::ClientCa { path: path.to_owned(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    Ok(roots)
}
