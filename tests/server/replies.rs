//! Every reply that the API server can meet.

use std::time::Duration;

use outrider::server::Limits;
use serde_json::json;

use crate::harness::{TestServer, any_review, review};
use crate::toys::path;

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_reviews_with_the_uid_of_the_request() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for (toy, allowed) in [("allow", true), ("patch", true), ("deny", false)] {
        let reply = client.post(&path(toy), &review(toy, &json!({"spec": {}}))).await;
        assert_eq!(reply.status, 200, "{toy}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("connection"), None);
        let response = &reply.json()["response"];
        assert_eq!(response["uid"], toy);
        assert_eq!(response["allowed"], allowed, "{toy}");
        assert_eq!(response["patch"].is_string(), toy == "patch");
        assert_eq!(response["patchType"].is_string(), toy == "patch");
    }
    let denied = client.post(&path("deny"), &any_review()).await.json();
    assert_eq!(denied["response"]["status"]["code"], 403);
    assert_eq!(denied["response"]["status"]["message"], "not today");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_decoded_is_a_review_with_code_400() {
    let server = TestServer::start().await;
    let reply = server.client().await.post(&path("strict"), &review("u-1", &json!({"replicas": "many"}))).await;
    assert_eq!(reply.status, 200);
    let response = &reply.json()["response"];
    assert_eq!((&response["uid"], &response["status"]["code"]), (&json!("u-1"), &json!(400)));
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_are_answered() {
    let server = TestServer::start().await;
    let question = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "c", "desiredAPIVersion": "toy.example/v2",
            "objects": [{"apiVersion": "toy.example/v1", "kind": "Ruler", "metadata": {"name": "r"}, "size": 3}]},
    });
    let reply = server.client().await.post("/convert", &question.to_string()).await;
    assert_eq!(reply.status, 200);
    let response = &reply.json()["response"];
    assert_eq!(response["uid"], "c");
    assert_eq!(response["convertedObjects"][0]["length"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_gets_a_bare_status() {
    let server = TestServer::start().await;
    let allow = path("allow");
    let review = any_review();
    let table: [(&str, &str, &str, &str, u16, &str); 10] = [
        ("POST", &allow, JSON, "{", 400, "not a readable review"),
        ("POST", &allow, JSON, "", 400, "not a readable review"),
        ("POST", &allow, JSON, r#"{"kind":"Pod"}"#, 400, "expected \"AdmissionReview\""),
        ("POST", "/convert", JSON, "{", 400, "not a readable"),
        ("POST", "/mutate-nothing", JSON, &review, 404, "/mutate-toy-example-v1-allow"),
        ("POST", "/", JSON, &review, 404, "known paths"),
        ("GET", &allow, "", "", 405, "POST"),
        ("PUT", &allow, JSON, &review, 405, "POST"),
        ("POST", &allow, "Content-Type: text/plain\r\n", &review, 415, "\"text/plain\" is not served"),
        ("POST", &allow, "", &review, 415, "application/json"),
    ];
    // One connection for all: none of these may spoil it for the next request.
    let mut client = server.client().await;
    for (method, path, headers, body, status, text) in table {
        client.send(method, path, headers, body.as_bytes()).await.unwrap();
        let reply = client.reply().await.unwrap();
        assert_eq!(reply.status, status, "{method} {path} {headers:?}");
        assert!(reply.text().contains(text), "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("retry-after"), None);
        assert_eq!(reply.header("allow"), (status == 405).then_some("POST"));
    }
    server.demand_unserved(&["Unreadable", "NotFound", "MethodNotAllowed", "ContentType"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_content_type_may_have_parameters() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for value in ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"] {
        let header = format!("Content-Type: {value}\r\n");
        client.send("POST", &path("allow"), &header, any_review().as_bytes()).await.unwrap();
        assert_eq!(client.reply().await.unwrap().status, 200, "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_413_whether_announced_or_not() {
    let server = TestServer::start().await;
    let limit = Limits::default().body;
    let mut announced = server.client().await;
    announced.send("POST", &path("allow"), JSON, &vec![b' '; limit + 1]).await.unwrap();
    assert_eq!(announced.reply().await.unwrap().status, 413);

    let mut chunked = server.client().await;
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n", path("allow"));
    chunked.send_raw(head.as_bytes()).await.unwrap();
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 0x10_0000], b"\r\n".to_vec()].concat();
    for _ in 0..8 {
        // The server may have answered and closed before the last chunk.
        if chunked.send_raw(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(chunked.reply().await.unwrap().status, 413);
    server.demand_unserved(&["TooLarge"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_every_size_up_to_the_limit_arrive_whole() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let empty = review("big", &json!({"spec": {"filler": ""}})).len();
    for size in [1_000, 8_192, 16_384, 70_000, 1_000_000, Limits::default().body] {
        let filler = "x".repeat(size.saturating_sub(empty));
        let body = review("big", &json!({"spec": {"filler": filler}}));
        let reply = client.post(&path("allow"), &body).await;
        assert_eq!((reply.status, reply.json()["response"]["uid"].as_str()), (200, Some("big")), "{size} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunked_bodies_are_read() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n", path("allow"));
    client.send_raw(head.as_bytes()).await.unwrap();
    for piece in any_review().as_bytes().chunks(100) {
        client.send_raw(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
        client.send_raw(&[piece, b"\r\n"].concat()).await.unwrap();
    }
    client.send_raw(b"0\r\n\r\n").await.unwrap();
    assert_eq!(client.reply().await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn not_ready_is_503_and_worth_another_try() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    server.sync.close("the watch broke");
    let reply = client.post(&path("allow"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(reply.text().contains("sync:toys"), "{}", reply.text());
    server.sync.open();
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    server.demand_unserved(&["NotReady"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_time_for_another_try_is_not_told_to_wait_for_one() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    for (query, retry_after) in [("?timeout=1s", None), ("?timeout=10s", Some("1"))] {
        let reply = client.post(&(path("unknown") + query), &any_review()).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, retry_after), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_namespace_is_503_and_worth_another_try() {
    let server = TestServer::start().await;
    let reply = server.client().await.post(&path("unknown"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    server.demand_unserved(&["NamespaceUnknown"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_more_labels_than_are_read_is_422_and_another_try_is_of_no_use() {
    let server = TestServer::start().await;
    let reply = server.client().await.post(&path("labels"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (422, None));
    assert!(reply.text().contains("remove labels"), "{}", reply.text());
    server.demand_unserved(&["NamespaceLabels"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_an_answer_is_503_and_worth_another_try() {
    let server = TestServer::start().await;
    let reply = server.client().await.post(&path("asks"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(reply.text().contains("whether kim may "), "{}", reply.text());
    server.demand_unserved(&["Unanswered"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_bare_500_and_the_next_review_is_served() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let reply = client.post(&path("panic"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (500, None));
    assert!(!reply.text().contains("the toy broke"), "{}", reply.text());
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    assert!(server.scrape().await.contains("\noutrider_panics_total 1\n"));
    server.demand_unserved(&["Fault"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overload_is_429_and_worth_another_try() {
    let limits = Limits { in_flight: 1, queue: Duration::from_millis(50), ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    first.send("POST", &path("wait"), JSON, any_review().as_bytes()).await.unwrap();
    server.latch.held().await;
    let reply = second.post(&path("allow"), &any_review()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
    server.latch.open();
    assert_eq!(first.reply().await.unwrap().status, 200);
    assert_eq!(second.post(&path("allow"), &any_review()).await.status, 200);
    server.demand_unserved(&["Overloaded"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_review_waits_for_its_turn_before_it_is_shed() {
    let limits = Limits { in_flight: 1, queue: Duration::from_secs(20), ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    first.send("POST", &path("wait"), JSON, any_review().as_bytes()).await.unwrap();
    server.latch.held().await;
    second.send("POST", &path("allow"), JSON, any_review().as_bytes()).await.unwrap();
    server.latch.open();
    assert_eq!(second.reply().await.unwrap().status, 200);
}

/// What is decided on an object of many small parts takes long, however few bytes it has. There is one worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_object_that_is_decoded_as_a_whole_keeps_nobody_waiting() {
    let server = TestServer::start().await;
    let (mut first, mut second) = (server.client().await, server.client().await);
    let parts = review("parts", &json!({"spec": {"containers": vec![json!({}); 6_000]}}));
    assert!((16 * 1024..64 * 1024).contains(&parts.len()));
    first.send("POST", &path("whole"), JSON, parts.as_bytes()).await.unwrap();
    server.latch.held().await;
    assert_eq!(second.post(&path("allow"), &any_review()).await.status, 200);
    server.latch.open();
    assert_eq!(first.reply().await.unwrap().status, 200);
}

/// What is built from large bodies is bounded by how many of them are decided at one time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_more_large_bodies_are_decided_at_once_than_is_stated() {
    let server = TestServer::with_limits(Limits { large_at_once: 2, ..Limits::default() }).await;
    let parts = review("parts", &json!({"spec": {"containers": vec![json!({}); 6_000]}}));
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = server.client().await;
        client.send("POST", &path("whole"), JSON, parts.as_bytes()).await.unwrap();
        clients.push(client);
    }
    server.latch.held_at_once(2).await;
    let mut other = server.client().await;
    for _ in 0..20 {
        assert_eq!(other.post(&path("allow"), &any_review()).await.status, 200);
    }
    server.latch.open();
    for mut client in clients {
        assert_eq!(client.reply().await.unwrap().status, 200);
    }
    assert_eq!(server.latch.most_at_once(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_share_one_memory() {
    let limits = Limits { body_memory: 64 * 1024, ..Limits::default() };
    let server = TestServer::with_limits(limits).await;
    let mut client = server.client().await;
    assert_eq!(client.post(&path("allow"), &any_review()).await.status, 200);
    let large = review("large", &json!({"spec": {"filler": "x".repeat(512 * 1024)}}));
    let reply = client.post(&path("allow"), &large).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_504_within_the_announced_deadline() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let path = path("allow");
    let head = format!("POST {path}?timeout=300ms HTTP/1.1\r\nHost: x\r\n{JSON}Content-Length: 100\r\n\r\n{{");
    client.send_raw(head.as_bytes()).await.unwrap();
    let reply = client.reply().await.unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (504, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_decision_that_comes_too_late_is_504() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let late = format!("{}?timeout=200ms", path("wait"));
    client.send("POST", &late, JSON, any_review().as_bytes()).await.unwrap();
    server.latch.held().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.latch.open();
    assert_eq!(client.reply().await.unwrap().status, 504);
    server.demand_unserved(&["OutOfTime"]).await;
}
