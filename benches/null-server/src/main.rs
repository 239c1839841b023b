//! The smallest honest admission server: TLS, HTTP, the whole body read, `request.uid` decoded, "yes" written.
//!
//! What it spends is what any admission server in this stack has to spend, so it is the yardstick of `make bench`.
//! It is built of the same crates, profile and allocator as Outrider and is tuned in neither direction.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use clap::Parser;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

/// Same limit as the server under test: twice etcd's largest request plus the envelope fits, more is refused.
const BODY_LIMIT: usize = 7 * 1024 * 1024;

/// Allow every admission review. For benchmarks only: it reads nothing but `request.uid`.
#[derive(Parser)]
#[command(name = "null-server", version)]
struct Args {
    /// Address to serve HTTPS on
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: SocketAddr,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// Private key, PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum NullServerError {
    #[error("cannot read {path}: {source}; give a PEM file")]
    Pem { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("certificate and key cannot be used for TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot serve on {address}: {source}")]
    Serve { address: SocketAddr, source: std::io::Error },
}

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Verdict<'a>,
}

#[derive(Serialize)]
struct Verdict<'a> {
    uid: &'a str,
    allowed: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("null-server: {error}");
            ExitCode::from(2)
        }
    }
}

async fn serve(args: Args) -> Result<(), NullServerError> {
    let tls = RustlsConfig::from_config(Arc::new(tls_config(&args.cert, &args.key)?));
    let router = Router::new().route("/{*path}", post(review)).layer(DefaultBodyLimit::max(BODY_LIMIT));
    axum_server::bind(args.bind)
        .acceptor(RustlsAcceptor::new(tls).acceptor(NoDelayAcceptor::new()))
        .serve(router.into_make_service())
        .await
        .map_err(|source| NullServerError::Serve { address: args.bind, source })
}

fn tls_config(cert: &Path, key: &Path) -> Result<ServerConfig, NullServerError> {
    let unreadable = |path: &Path| {
        let path = path.to_path_buf();
        move |source| NullServerError::Pem { path, source }
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect).map_err(unreadable(cert))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn review(body: Bytes) -> Response {
    answer(&body).map_or_else(
        |error| (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
        |reply| ([(header::CONTENT_TYPE, "application/json")], reply).into_response(),
    )
}

fn answer(body: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let review: Review = serde_json::from_slice(body)?;
    serde_json::to_vec(&Answer {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Verdict { uid: &review.request.uid, allowed: true },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn answers_yes_with_the_uid_of_the_request() {
        for (name, body) in [
            ("6.5 KB pod", include_str!("../../reviews/pod-review.json")),
            ("500 variables", include_str!("../../reviews/pod-500-env-review.json")),
            ("escaped uid", r#"{"request":{"uid":"a\u002db"}}"#),
        ] {
            let sent: serde_json::Value = serde_json::from_str(body).unwrap();
            let reply: serde_json::Value = serde_json::from_slice(&answer(body.as_bytes()).unwrap()).unwrap();
            assert_eq!(reply["apiVersion"], "admission.k8s.io/v1", "{name}");
            assert_eq!(reply["kind"], "AdmissionReview", "{name}");
            assert_eq!(reply["response"]["allowed"], true, "{name}");
            assert_eq!(reply["response"]["uid"], sent["request"]["uid"], "{name}");
        }
    }

    #[test]
    fn refuses_a_body_without_a_uid() {
        for body in ["", "{}", r#"{"request":{}}"#, r#"{"request":{"uid":7}}"#, "[1"] {
            assert!(answer(body.as_bytes()).is_err(), "{body}");
        }
    }
}
