//! One review over TLS, as the API server sends it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why no reply came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The authority's certificate.
    #[error("the authority's certificate cannot be used: {0}")]
    Authority(String),
    /// The connection or TLS.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// HTTP.
    #[error("no reply: {0}")]
    Http(#[from] hyper::Error),
    /// The request.
    #[error("no request can be made: {0}")]
    Request(#[from] http::Error),
}

/// Posts `body` to `path` of the server on this machine whose certificate the authority in `ca_pem` signed.
///
/// # Errors
/// [`ClientError`] when there is no reply.
pub async fn post(
    address: SocketAddr,
    ca_pem: &str,
    path: &str,
    body: Vec<u8>,
) -> Result<(StatusCode, Bytes), ClientError> {
    let connector = TlsConnector::from(Arc::new(trusting(ca_pem)?));
    let stream =
        connector.connect(ServerName::IpAddress(address.ip().into()), TcpStream::connect(address).await?).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::post(path)
        .header(HOST, address.to_string())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

fn trusting(ca_pem: &str) -> Result<ClientConfig, ClientError> {
    let unusable = |error: &dyn std::fmt::Display| ClientError::Authority(error.to_string());
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(ca_pem.as_bytes()).map_err(|error| unusable(&error))?;
    roots.add(certificate).map_err(|error| unusable(&error))?;
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| unusable(&error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
