//! `make bench`: what a request costs the server, in units of what it costs a server that allows every request.
//!
//! See `benches/README.md`.

mod args;
mod certificate;
mod error;
mod http;
mod load;
mod manifests;
mod measure;
mod proc;
mod reply;
mod report;
mod reviews;
mod rows;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Args;
use crate::error::BenchError;
use crate::measure::{Setup, measure};
use crate::report::Report;
use crate::reviews::RECORDED;
use crate::server::Template;

/// One thread: while a server is measured, this process should only wait.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run_until_signal(&args).await.and_then(|report| publish(&args, &report)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::from(2)
        }
    }
}

/// On a signal the run is dropped at once, and with it every child and the temporary folder.
async fn run_until_signal(args: &Args) -> Result<Report, BenchError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        report = run(args) => report,
        _ = interrupt.recv() => Err(BenchError::Stopped("SIGINT")),
        _ = hangup.recv() => Err(BenchError::Stopped("SIGHUP")),
        _ = terminate.recv() => Err(BenchError::Stopped("SIGTERM")),
    }
}

async fn run(args: &Args) -> Result<Report, BenchError> {
    let rows = rows::select(&args.rows)?;
    if cfg!(debug_assertions) {
        eprintln!("compare: built without --release; make sure that the servers are not");
    }
    let folder = tempfile::Builder::new().prefix("outrider-bench-").tempdir()?;
    let certs = folder.path().join("certs");
    fs::create_dir(&certs).map_err(BenchError::file(&certs))?;
    let setup = Setup {
        null_server: Template::null_server(&program(args.null_server.as_deref(), "null-server")?),
        server: match &args.server_command {
            Some(command) => Template::custom(command),
            None => Template::outrider(&program(args.server.as_deref(), "outrider")?),
        },
        duration: args.duration,
        rounds: args.rounds,
        tls: certificate::write(&certs)?,
    };
    let mut measurements = Vec::new();
    for row in &rows {
        for recorded in &RECORDED {
            eprintln!("[{}/{}] {}, {}", measurements.len() + 1, rows.len() * RECORDED.len(), row.title, recorded.name);
            measurements.push(measure(&setup, row, recorded, folder.path()).await?);
        }
    }
    Ok(Report { measurements })
}

/// The given program, or the one that the same build put beside this one.
fn program(given: Option<&Path>, package: &str) -> Result<PathBuf, BenchError> {
    let path = match given {
        Some(path) => path.to_path_buf(),
        None => std::env::current_exe()?.with_file_name(package),
    };
    if path.is_file() { Ok(path) } else { Err(BenchError::ServerMissing { path, package: package.into() }) }
}

fn publish(args: &Args, report: &Report) -> Result<ExitCode, BenchError> {
    print!("{}", report.table().map_err(std::io::Error::other)?);
    if let Some(path) = &args.json {
        fs::write(path, report.json()?).map_err(BenchError::file(path))?;
    }
    let Some(gate) = args.gate else {
        return Ok(ExitCode::SUCCESS);
    };
    let above = report.above(gate);
    if above.is_empty() {
        println!("every row is within the gate of {gate}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("above the gate of {gate}: {}", above.join(", "));
    Ok(ExitCode::FAILURE)
}
