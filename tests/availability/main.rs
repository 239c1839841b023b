//! That no request is lost: replicas as real endpoints of a real Service, and an independent client that counts.
//!
//! Needs etcd and Kubernetes binaries (built on first use) and Linux with `unshare` and `ip`, therefore ignored by default:
//! `make test-cluster` runs it, `make soak` at full length. docs/availability.md describes what is shown here.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_server;
#[path = "../e2e/forged_pods.rs"]
mod forged_pods;
#[path = "../e2e/hostile_objects.rs"]
mod hostile_objects;
mod kubelet;
mod mounted_secret;
mod outage;
mod pods;
#[path = "../e2e/process.rs"]
#[allow(dead_code, reason = "shared with the tests in e2e, which use all of it")]
mod process;
mod proxy;
mod stage;
mod stream;
#[path = "../e2e/toy_webhook.rs"]
#[allow(dead_code, reason = "shared with the tests in e2e, which use all of it")]
mod toy_webhook;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One outage at a time beside the stream: three control planes at once leave a machine of two processors no time to answer in.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}
