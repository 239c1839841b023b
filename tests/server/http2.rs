//! HTTP/2: off unless asked for.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::client::{self, Client};
use crate::harness::{Setup, TestServer, any_review};
use crate::toys::path;

async fn connect(server: &TestServer) -> Client {
    let config = client::config(server.authority.certificate_pem(), None, &["h2", "http/1.1"]);
    Client::connect_with(server.webhook, config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_offers_both_gets_http1_by_default() {
    let server = TestServer::start().await;
    assert_eq!(connect(&server).await.alpn().as_deref(), Some("http/1.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_serves_reviews_and_ends_in_order() {
    let server = TestServer::with(Setup { enable_http2: true, ..Setup::default() }).await;
    let client = connect(&server).await;
    assert_eq!(client.alpn().as_deref(), Some("h2"));
    let io = TokioIo::new(client.stream.into_inner());
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post(format!("https://localhost{}", path("allow")))
        .header("content-type", "application/json")
        .body(Full::from(any_review()))
        .unwrap();
    let reply = sender.send_request(request).await.unwrap();
    assert_eq!(reply.status(), 200);
    assert!(!reply.into_body().collect().await.unwrap().to_bytes().is_empty());

    let shutdown = server.shutdown.clone();
    tokio::spawn(async move { shutdown.begin(std::time::Duration::from_secs(3600)).await });
    // GOAWAY: the connection ends although the listener is still open.
    connection.await.unwrap().unwrap();
}
