//! The load: wrk, one thread, 16 connections.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::error::BenchError;
use crate::http::POD_PATH;
use crate::server::Server;

const SCRIPT: &str = include_str!("load.lua");
const CONNECTIONS: u64 = 16;
/// How long wrk may take beyond its duration.
const SLACK: Duration = Duration::from_secs(20);

/// What wrk reports.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// Complete responses.
    pub requests: u64,
    /// Length of the run.
    pub microseconds: u64,
    /// Bytes of all responses, headers included.
    bytes: u64,
    /// Latency that half of the requests stay under, in microseconds.
    pub p50: u64,
    /// Latency that 99 % of the requests stay under, in microseconds.
    pub p99: u64,
    errors: Errors,
}

/// `status` counts responses of 400 and above.
#[derive(Debug, Deserialize)]
struct Errors {
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
    status: u64,
}

impl Report {
    /// Why this run must not count, if so. `wire_bytes` is the size of the one response that was verified: equal
    /// requests get equal replies, so an error reply with status 200 shows in the sum.
    pub fn fault(&self, wire_bytes: usize) -> Option<String> {
        let Errors { connect, read, write, timeout, status } = self.errors;
        if connect + read + write + timeout + status > 0 {
            return Some(format!(
                "{status} responses were not 2xx; failed: {connect} connects, {read} reads, {write} writes, \
                 {timeout} timeouts; of {} requests",
                self.requests
            ));
        }
        if self.requests == 0 {
            return Some("no request was answered".into());
        }
        let wire_bytes = wire_bytes as u64;
        let expected = self.requests * wire_bytes;
        // Each connection may have begun to read a response when the time was up.
        let allowed = CONNECTIONS * wire_bytes + expected / 100;
        (self.bytes.abs_diff(expected) > allowed).then(|| {
            format!(
                "{} responses have {} bytes, not about {wire_bytes} each as the verified one",
                self.requests, self.bytes
            )
        })
    }
}

/// The body and the script, written for wrk.
#[derive(Debug)]
pub struct Load {
    script: PathBuf,
    body: PathBuf,
}

impl Load {
    /// Writes both files.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn new(folder: &Path, body: &str) -> Result<Self, BenchError> {
        let load = Self { script: folder.join("load.lua"), body: folder.join("body.json") };
        for (path, text) in [(&load.script, SCRIPT), (&load.body, body)] {
            std::fs::write(path, text).map_err(BenchError::file(path))?;
        }
        Ok(load)
    }

    /// Puts the server under load.
    ///
    /// # Errors
    /// No wrk, or a run that failed.
    pub async fn run(&self, server: &Server, seconds: u64) -> Result<Report, BenchError> {
        let failed = |found: String| BenchError::WrkFailed { server: server.name.into(), found };
        let child = Command::new("wrk")
            .args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "-s"])
            .arg(&self.script)
            .arg(format!("https://{}{POD_PATH}", server.webhook))
            .env("BENCH_BODY", &self.body)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => BenchError::WrkMissing(error),
                _ => BenchError::Io(error),
            })?;
        let output = timeout(Duration::from_secs(seconds) + SLACK, child.wait_with_output())
            .await
            .map_err(|_| failed("it did not end in time".into()))??;
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines()
            .find_map(|line| line.strip_prefix("RESULT "))
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(requests: u64, bytes: u64, status: u64) -> Report {
        let errors = Errors { connect: 0, read: 0, write: 0, timeout: 0, status };
        Report { requests, microseconds: 1_000_000, bytes, p50: 1, p99: 2, errors }
    }

    #[test]
    fn a_run_counts_only_if_every_response_is_like_the_verified_one() {
        for (name, report, fault) in [
            ("all equal", report(1_000, 200_000, 0), None),
            ("partly read at the end", report(1_000, 203_000, 0), None),
            ("one status", report(1_000, 200_000, 1), Some("1 responses were not 2xx")),
            ("other replies", report(1_000, 300_000, 0), Some("not about 200 each")),
            ("nothing", report(0, 0, 0), Some("no request")),
        ] {
            match (report.fault(200), fault) {
                (None, None) => {}
                (Some(found), Some(part)) => assert!(found.contains(part), "{name}: {found}"),
                (found, _) => unreachable!("{name}: {found:?}"),
            }
        }
    }
}
