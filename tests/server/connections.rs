//! Connections: how long they live, and that none blocks another.

use std::time::Duration;

use outrider::certs::Authority;
use outrider::server::Limits;
use rustls::ProtocolVersion;
use rustls::version::TLS12;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{self, Client};
use crate::harness::{Setup, TestServer, any_review, authority};
use crate::toys::path;

const INSTANT: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_serves_many_reviews() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for _ in 0..500 {
        let reply = client.post(&path("allow"), &any_review()).await;
        assert_eq!((reply.status, reply.header("connection")), (200, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_outlives_the_limits_of_its_first_request() {
    // A busy machine keeps these.
    let limit = INSTANT * 20;
    let server = TestServer::with_limits(Limits { first_request: limit, handshake: limit, ..Limits::default() }).await;
    let mut client = server.client().await;
    for _ in 0..2 {
        assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
        tokio::time::sleep(limit + INSTANT * 10).await;
    }
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
}

#[test]
fn idle_connections_outlive_the_pool_of_the_api_server() {
    assert!(Limits::default().idle >= Duration::from_secs(120));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_requests_ends() {
    let server = TestServer::with_limits(Limits { idle: INSTANT, ..Limits::default() }).await;
    let mut client = server.client().await;
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    assert!(client.is_closed().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_with_a_review_in_flight_is_not_idle() {
    let server = TestServer::with_limits(Limits { idle: INSTANT, ..Limits::default() }).await;
    let mut client = server.client().await;
    client.send("POST", &path("wait"), "Content-Type: application/json\r\n", any_review().as_bytes()).await.unwrap();
    server.latch.held().await;
    tokio::time::sleep(INSTANT * 4).await;
    server.latch.open();
    assert_eq!(client.reply().await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_is_told_to_end_by_its_reply() {
    let limits = Limits { connection_age: Duration::ZERO, connection_age_spread: Duration::ZERO, ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    let mut client = server.client().await;
    let reply = client.post(&path("allow"), &any_review()).await;
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(client.is_closed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_dawdle_stand_in_nobodys_way_and_are_cut() {
    let limits = Limits { connections: 8, handshake: INSTANT * 30, first_request: INSTANT * 30, ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(server.webhook).await.unwrap());
    }
    let mut half_hello = TcpStream::connect(server.webhook).await.unwrap();
    half_hello.write_all(&[0x16, 3, 1]).await.unwrap();
    let mut half_head = server.client().await;
    half_head.send_raw(b"POST /mutate-toy-example-v1-allow HTTP/1.1\r\nHost:").await.unwrap();

    assert_eq!(server.client().await.post(&path("allow"), &any_review()).await.status, 200);

    for stream in &mut silent {
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
    }
    assert!(half_hello.read_to_end(&mut Vec::new()).await.is_ok());
    assert!(half_head.is_closed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_beyond_the_limit_gets_the_place_of_the_idlest() {
    let server = TestServer::with_limits(Limits { connections: 2, ..Limits::default() }).await;
    let mut first = server.client().await;
    assert_eq!(first.post(&path("allow"), &any_review()).await.status, 200);
    let mut silent = server.client().await;
    let mut third = server.client().await;
    assert!(silent.is_closed().await, "nothing was asked on it");
    assert_eq!(third.post(&path("allow"), &any_review()).await.status, 200);
    assert_eq!(first.post(&path("allow"), &any_review()).await.status, 200);
    assert_eq!(server.client().await.post(&path("allow"), &any_review()).await.status, 200);
    assert!(third.is_closed().await, "it is idle for longer than the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_1_2_and_1_3_are_spoken() {
    let server = TestServer::start().await;
    let newest = server.client().await;
    assert_eq!(newest.stream.get_ref().get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));

    let mut roots = rustls::RootCertStore::empty();
    let ca = rustls::pki_types::pem::PemObject::from_pem_slice(server.authority.certificate_pem().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let older = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = Client::connect_with(server.webhook, older).await.unwrap();
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
}

fn client_certificate(authority: &Authority) -> (String, String) {
    let issuer_key = rcgen::KeyPair::from_pem(&authority.key_pem()).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_pem(authority.certificate_pem(), issuer_key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["apiserver".to_owned()]).unwrap();
    (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_authority_lets_in_only_its_own() {
    let clients = authority();
    let dir = tempfile::tempdir().unwrap();
    let client_ca = dir.path().join("client-ca.crt");
    std::fs::write(&client_ca, clients.certificate_pem()).unwrap();
    let server = TestServer::with(Setup { client_ca: Some(client_ca), ..Setup::default() }).await;
    let ca = server.authority.certificate_pem();

    let (certificate, key) = client_certificate(&clients);
    let known = client::config(ca, Some((&certificate, &key)), &[]);
    let mut known = Client::connect_with(server.webhook, known).await.unwrap();
    assert_eq!(known.post(&path("allow"), &any_review()).await.status, 200);

    // In TLS 1.3 the client learns of the refusal when it reads.
    if let Ok(mut unknown) = Client::connect(server.webhook, ca).await {
        let _ = unknown.send("POST", &path("allow"), "", b"").await;
        assert!(unknown.reply().await.is_err());
    }
}

/// Whether a client of this authority is let in.
async fn lets_in(server: &TestServer, clients: &Authority) -> bool {
    let (certificate, key) = client_certificate(clients);
    let config = client::config(server.authority.certificate_pem(), Some((&certificate, &key)), &[]);
    let Ok(mut client) = Client::connect_with(server.webhook, config).await else { return false };
    let sent = client.send("POST", &path("allow"), "", b"").await;
    sent.is_ok() && client.reply().await.is_ok()
}

async fn eventually(what: &str, server: &TestServer, clients: &Authority, expected: bool) {
    let waiting = async {
        while lets_in(server, clients).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_client_authorities_is_followed() {
    let (old, new) = (authority(), authority());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("client-ca.crt");
    let put = |text: &str| {
        std::fs::write(dir.path().join("next"), text).unwrap();
        std::fs::rename(dir.path().join("next"), &file).unwrap();
    };
    put(old.certificate_pem());
    let server = TestServer::with(Setup { client_ca: Some(file.clone()), ..Setup::default() }).await;
    assert!(lets_in(&server, &old).await && !lets_in(&server, &new).await);

    put(&format!("{}{}", old.certificate_pem(), new.certificate_pem()));
    eventually("both are let in", &server, &new, true).await;
    assert!(lets_in(&server, &old).await);

    // What cannot be used leaves the last good ones, and shows.
    let said = |expected: &str| {
        let checks = server.readiness.checks();
        checks.iter().any(|check| check.name == "client CA" && check.open && check.detail.contains(expected))
    };
    for (text, expected) in [("", "it holds no certificate"), ("-----BEGIN CERTIFICATE-----\nAAAA\n", "is not usable")]
    {
        put(text);
        let waiting = async {
            while !said(expected) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "{expected}");
        assert!(lets_in(&server, &old).await && lets_in(&server, &new).await);
    }

    put(new.certificate_pem());
    eventually("the old one is let in no more", &server, &old, false).await;
    assert!(lets_in(&server, &new).await);
    assert!(server.readiness.checks().iter().all(|check| check.detail.is_empty()));
}
