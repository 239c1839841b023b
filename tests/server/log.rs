//! What is logged. One subscriber serves all tests of this binary; each looks for the uid it sent.

use std::io::{self, Write};
use std::sync::{Mutex, Once};

use serde_json::{Value, json};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::harness::{TestServer, review};
use crate::toys::path;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static BEGIN: Once = Once::new();

struct Captured;

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps every line from now on.
pub fn capture() {
    BEGIN.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .json()
            .flatten_event(true)
            .with_writer(|| Captured)
            .finish()
            .with(Targets::new().with_target("outrider", LevelFilter::DEBUG))
            .init();
    });
}

fn lines_with(uid: &str) -> Vec<Value> {
    let text = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["uid"] == uid).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_outcome_is_one_line_at_its_level() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let table = [
        ("allow", "log-allow", "DEBUG", "allowed", "Allowed"),
        ("patch", "log-patch", "INFO", "patched", "Defaulted"),
        ("deny", "log-deny", "INFO", "denied", "Invalid"),
    ];
    for (toy, uid, level, verdict, reason) in table {
        client.post(&path(toy), &review(uid, &json!({"spec": {}}))).await;
        let lines = lines_with(uid);
        assert_eq!(lines.len(), 1, "{toy}: {lines:?}");
        let line = &lines[0];
        assert_eq!(line["level"], level, "{toy}");
        assert_eq!(line["path"], path(toy));
        assert_eq!(line["kind"], "Toy.toy.example");
        assert_eq!(line["namespace"], "shop");
        assert_eq!(line["name"], "bear");
        assert_eq!(line["operation"], "CREATE");
        assert_eq!((&line["verdict"], &line["reason"]), (&json!(verdict), &json!(reason)), "{toy}");
        assert!(line["duration"].is_number());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_an_error_with_the_uid() {
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let table = [("panic", "log-panic", "ERROR", "Fault"), ("unknown", "log-unknown", "WARN", "NamespaceUnknown")];
    for (toy, uid, level, reason) in table {
        client.post(&path(toy), &review(uid, &json!({"spec": {}}))).await;
        let lines = lines_with(uid);
        assert_eq!(lines.len(), 1, "{toy}: {lines:?}");
        assert_eq!((&lines[0]["level"], &lines[0]["reason"]), (&json!(level), &json!(reason)), "{toy}");
    }
}

/// But for the names in it, and what a refusal says to its author.
#[tokio::test(flavor = "multi_thread")]
async fn no_body_is_logged() {
    const SECRET: &str = "c2VjcmV0LXZhbHVl";
    let server = TestServer::start().await;
    let mut client = server.client().await;
    let object = json!({"spec": {"env": [{"name": "PASSWORD", "value": SECRET}], SECRET: SECRET}, "data": SECRET});
    for (at, toy) in ["allow", "patch", "deny", "panic", "unknown"].into_iter().enumerate() {
        let uid = format!("log-secret-{at}");
        client.post(&path(toy), &review(&uid, &object)).await;
        assert_eq!(lines_with(&uid).len(), 1, "{toy}");
    }
    let cut = review("log-secret-cut", &object);
    client.post(&path("allow"), &cut[..cut.len() - 2]).await;
    let text = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
}
