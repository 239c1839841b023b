//! Measures one row on one review: both servers side by side, in turns.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::error::BenchError;
use crate::load::Load;
use crate::reply::{self, Expected};
use crate::report::{Measurement, Round, Sample};
use crate::reviews::{self, Recorded};
use crate::rows::Row;
use crate::server::{Server, Template};
use crate::{http, manifests, proc};

/// Faults in pages and fills caches; not counted.
const WARM_UP_SECONDS: u64 = 1;

/// What stays the same in all rows.
#[derive(Debug)]
pub struct Setup {
    /// The yardstick.
    pub null_server: Template,
    /// The server under test.
    pub server: Template,
    /// Seconds of load.
    pub duration: u64,
    /// Turns.
    pub rounds: u32,
    /// Trusts the certificate of both.
    pub tls: Arc<ClientConfig>,
}

/// Starts both servers, verifies what they reply, measures, and ends them.
///
/// # Errors
/// Whatever makes a figure doubtful.
pub async fn measure(setup: &Setup, row: &Row, recorded: &Recorded, folder: &Path) -> Result<Measurement, BenchError> {
    let sets = folder.join("manifests");
    if sets.exists() {
        fs::remove_dir_all(&sets).map_err(BenchError::file(&sets))?;
    }
    fs::create_dir(&sets).map_err(BenchError::file(&sets))?;
    manifests::write(row, &sets)?;
    let null_server = Server::start(&setup.null_server, folder).await?;
    let server = Server::start(&setup.server, folder).await?;
    let case = Case { setup, row };

    let body = case.body(&server, recorded).await?;
    let expected = match row.injects() {
        0 => Expected::Unchanged,
        containers => Expected::Containers(containers),
    };
    let null_bytes = case.verify(&null_server, &body, Expected::Unchanged).await?.wire_bytes;
    let server_bytes = case.verify(&server, &body, expected).await?.wire_bytes;
    let load = Load::new(folder, &body)?;
    load.run(&null_server, WARM_UP_SECONDS).await?;
    load.run(&server, WARM_UP_SECONDS).await?;
    let mut rounds = Vec::new();
    for number in 1..=setup.rounds {
        let null = case.sample(&load, &null_server, null_bytes).await?;
        let own = case.sample(&load, &server, server_bytes).await?;
        let round = Round { null, server: own };
        eprintln!(
            "  round {number}: {:.1} µs beside {:.1} µs: {:.2}",
            round.server.cpu_microseconds,
            round.null.cpu_microseconds,
            round.ratio()
        );
        rounds.push(round);
    }
    case.verify(&server, &body, expected).await?;
    Ok(Measurement {
        row: row.name,
        title: row.title,
        body: recorded.name,
        body_bytes: body.len(),
        null_rss_kib: proc::resident_kib(null_server.pid)?,
        server_rss_kib: proc::resident_kib(server.pid)?,
        rounds,
    })
}

struct Verified {
    object: serde_json::Value,
    wire_bytes: usize,
}

struct Case<'a> {
    setup: &'a Setup,
    row: &'a Row,
}

impl Case<'_> {
    /// The review as recorded, or with the pod as it is after the server's own first pass.
    async fn body(&self, server: &Server, recorded: &Recorded) -> Result<String, BenchError> {
        if !self.row.second_pass {
            return Ok(recorded.text.to_owned());
        }
        let first = Expected::Containers(self.row.matching);
        let injected = self.verify(server, recorded.text, first).await?.object;
        reviews::with_object(recorded.text, &injected)
    }

    async fn verify(&self, server: &Server, body: &str, expected: Expected) -> Result<Verified, BenchError> {
        let wrong =
            |found: String| BenchError::WrongReply { row: self.row.name.into(), server: server.name.into(), found };
        let response = http::post_review(&self.setup.tls, server.webhook, body).await?;
        if response.status != 200 {
            let text = String::from_utf8_lossy(&response.body).into_owned();
            return Err(wrong(format!("HTTP {}: {text}", response.status)));
        }
        let object = reply::check(body, &response.body, expected).map_err(wrong)?;
        Ok(Verified { object, wire_bytes: response.wire_bytes })
    }

    async fn sample(&self, load: &Load, server: &Server, wire_bytes: usize) -> Result<Sample, BenchError> {
        let before = proc::cpu_microseconds(server.pid)?;
        let report = load.run(server, self.setup.duration).await?;
        let spent = proc::cpu_microseconds(server.pid)? - before;
        match report.fault(wire_bytes) {
            None => Ok(Sample::new(&report, spent)),
            Some(found) => Err(BenchError::BadReplies { server: server.name.into(), row: self.row.name.into(), found }),
        }
    }
}
