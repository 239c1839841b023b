//! Clients that do not go on: they read no reply, or send no end of a body.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpSocket;
use tokio::time::sleep;

use crate::client::Client;
use crate::hostile::{CHART, PODS, Server, small_review};
use crate::hostile_conversions::conversions;

/// Who does nothing for so long is stalled.
const STALLED: Duration = Duration::from_millis(2_500);

/// A client whose kernel takes little of a reply that is not read.
async fn client(address: SocketAddr, ca: &str) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2 * 1024).unwrap();
    Client::over(socket.connect(address).await.unwrap(), ca).await.unwrap()
}

fn head(path: &str, announced: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {announced}\r\n\r\n")
}

/// A review whose uid, which is part of the reply, has so many bytes.
fn with_uid(bytes: usize) -> String {
    small_review().replacen(r#""uid":"u""#, &format!(r#""uid":{}"#, json!("u".repeat(bytes))), 1)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn replies_that_nobody_reads_stay_within_the_memory_of_the_chart() {
    let server = Server::with_memory_of_chart(&[]).await;
    // Its reply is twice as long.
    let (_, path, converted) = conversions().into_iter().find(|(what, ..)| *what == "small objects").unwrap();
    for (path, body) in [(path, converted), (PODS, with_uid(6_000_000)), (PODS, with_uid(20_000))] {
        let mut clients = Vec::new();
        for number in 0..60 {
            let mut client = client(server.webhooks, &server.ca).await;
            // It may be refused in the middle.
            let _ = client.send_raw(format!("{}{body}", head(path, body.len())).as_bytes()).await;
            clients.push(client);
            if number % 10 == 9 {
                sleep(STALLED).await;
                assert_eq!(server.post(PODS, &small_review()).await, 200, "with {number} of {path}");
            }
        }
        let (_, most) = server.process.memory();
        println!("{path}, {} bytes: {most} MB at most", body.len());
        assert!(most <= CHART >> 20, "{most} MB");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn bodies_whose_end_never_comes_keep_out_no_other_review() {
    let server = Server::with_memory_of_chart(&[]).await;
    let mut stalled = Vec::new();
    for (count, bytes) in [(8, 7 * 1024 * 1024 - 1024), (9, 1_000_000), (24, 100_000), (30, 17_000), (200, 5_000)] {
        for _ in 0..count {
            let mut client = client(server.webhooks, &server.ca).await;
            let body = format!("{}{}", head(PODS, bytes), " ".repeat(bytes - 1));
            let _ = client.send_raw(body.as_bytes()).await;
            stalled.push(client);
        }
    }
    // Small ones have a part of the memory that the large ones cannot take.
    assert_eq!(server.post(PODS, &small_review()).await, 200);
    sleep(STALLED).await;
    let large = with_uid(6_000_000);
    for body in [&small_review(), &large, &small_review()] {
        assert_eq!(server.post(PODS, body).await, 200, "{} bytes", body.len());
    }
    let (_, most) = server.process.memory();
    println!("{} clients: {most} MB at most", stalled.len());
    assert!(most <= CHART >> 20, "{most} MB");
}
