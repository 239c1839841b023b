//! `make bench-hostile`: the worst bodies that are known, each at n and at 4n, and what a decision on them costs.
//!
//! Linear is what takes at most five times the time and memory for four times as much. Beside a harmless body of the same size
//! and path, a hostile one may take ten times the time.

mod bodies;
mod further;
mod harmless;
mod measure;
mod snapshot;

use std::process::ExitCode;

use admission::Registry;
use engine::snapshot::Snapshot;
use outrider::kinds::Kinds;
use outrider::registry::registry;
use peak_alloc::PeakAlloc;

use crate::bodies::{Body, KINDS, Kind};
use crate::harmless::harmless;
use crate::measure::{Cost, measure};

// Counting costs a little with each allocation, which hostile bodies make more of.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// For four times as much.
const RATIO: f64 = 5.0;
/// Of a harmless body's time.
const BESIDE: f64 = 10.0;
/// Bytes that one decision may take beside its body, which is at most 7 MiB of the 64 MiB that one review may take.
const MEMORY: usize = 57 << 20;
/// Below this a ratio says nothing: buffers and tables grow in steps.
const LITTLE: usize = 64 << 10;

struct Row {
    kind: &'static Kind,
    small: Cost,
    large: Cost,
    harmless: Cost,
}

fn main() -> ExitCode {
    let only = std::env::args().nth(1).unwrap_or_default();
    match run(&only) {
        Ok(broken) if broken.is_empty() => ExitCode::SUCCESS,
        Ok(broken) => {
            eprintln!("\nbeyond the bounds:\n{}", broken.join("\n"));
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(only: &str) -> Result<Vec<String>, String> {
    let registry = registry(&Kinds::all());
    println!(
        "| body | n | bytes at 4n | ms at n | ms at 4n | ratio | harmless ms | times | MB at n | MB at 4n | ratio | outcome at 4n |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut broken = Vec::new();
    for kind in KINDS.iter().chain(further::KINDS).filter(|kind| kind.name.contains(only)) {
        let row = row(&registry, kind)?;
        println!("{}", row.line());
        broken.extend(row.broken());
    }
    Ok(broken)
}

fn row(registry: &Registry<Snapshot>, kind: &'static Kind) -> Result<Row, String> {
    let cost = |body: &Body| measure(registry, &snapshot::snapshot(body)?, body);
    let (small, large) = ((kind.make)(kind.n), (kind.make)(4 * kind.n));
    // But for its sets: each that matches costs, whatever the pod.
    let harmless = harmless(&large);
    Ok(Row { kind, small: cost(&small)?, large: cost(&large)?, harmless: cost(&harmless)? })
}

#[allow(clippy::cast_precision_loss)] // figures for people
impl Row {
    fn time(&self) -> f64 {
        self.large.cpu.as_secs_f64() / self.small.cpu.as_secs_f64()
    }

    fn memory(&self) -> f64 {
        self.large.memory as f64 / self.small.memory.max(LITTLE) as f64
    }

    fn beside(&self) -> f64 {
        self.large.cpu.as_secs_f64() / self.harmless.cpu.as_secs_f64()
    }

    fn line(&self) -> String {
        let milliseconds = |cost: &Cost| cost.cpu.as_secs_f64() * 1e3;
        let megabytes = |cost: &Cost| cost.memory as f64 / f64::from(1 << 20);
        format!(
            "| {} | {} | {} | {:.3} | {:.3} | {:.1} | {:.3} | {:.1} | {:.2} | {:.2} | {:.1} | {} |",
            self.kind.name,
            self.kind.n,
            self.large.bytes,
            milliseconds(&self.small),
            milliseconds(&self.large),
            self.time(),
            milliseconds(&self.harmless),
            self.beside(),
            megabytes(&self.small),
            megabytes(&self.large),
            self.memory(),
            self.large.outcome,
        )
    }

    fn broken(&self) -> Vec<String> {
        let name = self.kind.name;
        let mut broken = Vec::new();
        if self.time() > RATIO {
            broken.push(format!("{name}: {:.1} times the time for four times as much, at most {RATIO}", self.time()));
        }
        if self.memory() > RATIO {
            broken
                .push(format!("{name}: {:.1} times the memory for four times as much, at most {RATIO}", self.memory()));
        }
        if self.kind.beside_harmless && self.beside() > BESIDE {
            broken.push(format!("{name}: {:.1} times the time of a harmless body, at most {BESIDE}", self.beside()));
        }
        if self.large.memory > MEMORY {
            broken.push(format!("{name}: {} bytes, at most {MEMORY}", self.large.memory));
        }
        broken
    }
}
