//! How the server ends.

use std::time::Duration;

use outrider::server::Limits;
use tokio::net::TcpStream;

use crate::client::Client;
use crate::harness::{TestServer, any_review};
use crate::toys::path;

const FOREVER: Duration = Duration::from_secs(3600);

impl TestServer {
    /// Begins to end; the listener stays open.
    async fn drain(&self) {
        let shutdown = self.shutdown.clone();
        tokio::spawn(async move { shutdown.begin(FOREVER).await });
        self.shutdown.draining().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_serves_on_but_is_not_ready_and_ends_every_connection() {
    let server = TestServer::start().await;
    let mut before = server.client().await;
    assert_eq!(before.post(&path("allow"), &any_review()).await.header("connection"), None);
    assert_eq!(server.probe("/readyz").await, (200, "ok".to_owned()));

    server.drain().await;
    assert_eq!(server.probe("/readyz").await, (503, "not ready: shutting down".to_owned()));
    assert_eq!(server.probe("/livez").await.0, 200);
    let mut after = server.client().await;
    for client in [&mut before, &mut after] {
        let reply = client.post(&path("allow"), &any_review()).await;
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
        assert!(client.is_closed().await);
    }
}

/// The API server may have heard of a kind that was turned on before it has heard that this replica goes.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_another_replica_has_is_to_be_tried_again() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let reply = client.post(&path("off"), &any_review()).await;
    let headers = (reply.header("retry-after"), reply.header("connection"));
    assert_eq!((reply.status, headers), (503, (Some("1"), Some("close"))));
    assert!(reply.text().contains("another one may serve it"), "{}", reply.text());
    let mut client = server.client().await;
    assert_eq!(client.post("/mutate-newer-example-v1-thing", &any_review()).await.status, 404);
    server.drain().await;
    let reply = client.post("/mutate-newer-example-v1-thing", &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(server.client().await.post("/other", &any_review()).await.status, 404);
}

/// The API server sends the whole review before it reads what is wrong with it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_is_said_beside_a_large_body_too() {
    let server = TestServer::start().await;
    let body = "x".repeat(2 << 20);
    for (path, status) in [("/other".to_owned(), 404), (path("off"), 503)] {
        assert_eq!(server.client().await.post(&path, &body).await.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_does_not_touch_idle_connections() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    server.drain().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listener_stays_while_somebody_holds_it() {
    let server = TestServer::start().await;
    let hold = server.shutdown.hold();
    let shutdown = server.shutdown.clone();
    let begun = tokio::spawn(async move { shutdown.begin(Duration::ZERO).await });
    server.shutdown.draining().await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.client().await.post(&path("allow"), &any_review()).await.status, 200);
    drop(hold);
    begun.await.unwrap();
    while TcpStream::connect(server.webhook).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_connected_before_the_listener_closed_is_answered() {
    let server = TestServer::start().await;
    let mut connected = server.client().await;
    let handshaking = TcpStream::connect(server.webhook).await.unwrap();
    // Until the server has accepted it.
    assert_eq!(server.client().await.post(&path("allow"), &any_review()).await.status, 200);
    server.shutdown.begin(Duration::ZERO).await;
    let mut late = Client::over(handshaking, server.authority.certificate_pem()).await.unwrap();
    for client in [&mut connected, &mut late] {
        let reply = client.post(&path("allow"), &any_review()).await;
        assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    }
    server.running.await.unwrap();
    assert!(TcpStream::connect(server.webhook).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_runs_is_finished_after_the_listener_has_closed() {
    let server = TestServer::start().await;
    let mut running = server.client().await;
    let mut idle = server.client().await;
    assert_eq!(idle.post(&path("allow"), &any_review()).await.status, 200);
    let json = "Content-Type: application/json\r\n";
    running.send("POST", &path("wait"), json, any_review().as_bytes()).await.unwrap();
    server.latch.held().await;

    server.shutdown.begin(Duration::ZERO).await;
    assert!(idle.is_closed().await);
    while TcpStream::connect(server.webhook).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!server.running.is_finished());
    server.latch.open();
    let reply = running.reply().await.unwrap();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    server.running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_finish_is_cut() {
    let server = TestServer::with_limits(Limits { finish: Duration::from_millis(50), ..Limits::default() }).await;
    let mut client = server.client().await;
    let path = path("allow");
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n");
    client.send_raw(head.as_bytes()).await.unwrap();
    server.shutdown.begin(Duration::ZERO).await;
    server.running.await.unwrap();
}
