//! Handshakes that fail: what they are counted as.

use std::time::Duration;

use outrider::metrics::HandshakeFailure;
use outrider::server::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{self, Client};
use crate::harness::{Setup, TestServer, authority};
use crate::process::Process;

/// Waits until the server has counted a cause: it learns of the end after the client.
async fn counted(server: &TestServer, cause: &str) {
    let line = format!("outrider_tls_handshake_failures_total{{cause=\"{cause}\"}} 1");
    for _ in 0..500 {
        if server.scrape().await.lines().any(|found| found == line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{cause} is not counted: {}", server.scrape().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cause_begins_at_zero() {
    let scraped = TestServer::start().await.scrape().await;
    let lines = scraped.lines().filter(|line| line.starts_with("outrider_tls_handshake_failures_total{"));
    let zeros = lines.filter(|line| line.ends_with("\"} 0")).count();
    assert_eq!(zeros, HandshakeFailure::ALL.len(), "{scraped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_fail_are_counted_by_their_cause() {
    let limits = Limits { handshake: Duration::from_secs(3), ..Limits::default() };
    let server = TestServer::with_limits(limits).await;

    let stranger = authority();
    assert!(Client::connect(server.webhook, stranger.certificate_pem()).await.is_err());
    counted(&server, "untrusted").await;

    drop(TcpStream::connect(server.webhook).await.unwrap());
    counted(&server, "closed").await;

    let mut plain = TcpStream::connect(server.webhook).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    drop(plain.read_to_end(&mut Vec::new()).await);
    counted(&server, "not_tls").await;

    let other = client::config(server.authority.certificate_pem(), None, &["acme/1"]);
    assert!(Client::connect_with(server.webhook, other).await.is_err());
    counted(&server, "incompatible").await;

    let silent = TcpStream::connect(server.webhook).await.unwrap();
    counted(&server, "timeout").await;
    drop(silent);
}

/// Any client that reaches the port can fail as often as it likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_fails_is_logged_at_debug_only() {
    for (level, is_logged) in [("info", false), ("debug", true)] {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Process::standalone(&dir.path().join("ca.crt"), &["--log-level", level]);
        let listening = process.lines_to("Listening").pop().unwrap();
        let address: std::net::SocketAddr = listening["webhooks"].as_str().unwrap().parse().unwrap();
        assert!(Client::connect(address, authority().certificate_pem()).await.is_err());
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // The server closes the connection once it has given up.
        drop(plain.read_to_end(&mut Vec::new()).await);
        process.signal("TERM");
        let lines = process.lines_to("Stopping; no longer ready");
        let of_handshakes = lines.iter().filter(|line| line["message"].as_str().unwrap().contains("handshake")).count();
        assert_eq!(of_handshakes > 0, is_logged, "{level}: {lines:?}");
        let messages: Vec<&str> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
        let is_known = |message: &&str| {
            ["Ready", "Stopping; no longer ready"].contains(message) || message.starts_with("Try it: ")
        };
        assert!(is_logged || messages.iter().all(is_known), "{messages:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_a_certificate_are_counted_where_one_is_demanded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("client-ca.crt");
    std::fs::write(&file, authority().certificate_pem()).unwrap();
    let server = TestServer::with(Setup { client_ca: Some(file), ..Setup::default() }).await;
    // In TLS 1.3 the client is done before the server has looked.
    if let Ok(mut client) = Client::connect(server.webhook, server.authority.certificate_pem()).await {
        drop(client.send("POST", "/", "", b"").await);
    }
    counted(&server, "client_certificate").await;
}
