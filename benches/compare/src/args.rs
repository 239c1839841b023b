//! The command line.

use std::path::PathBuf;

use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  compare                                    every row, 3 rounds of 5 s a server
  compare --gate 2.0 --json bench.json       as in CI: exit 1 and name the rows above the gate
  compare --row 1-of-1 --row 1-of-5000 --rounds 5
  compare --duration 1 --rounds 1            a quick look; the figures are rough
  compare --row 0-of-100 --server-command 'target/release/null-server --bind {webhook} --cert {certs}/tls.crt --key {certs}/tls.key'
                                             the null server beside itself: how far from 1.00 is noise here?

Exit: 0 measured, and within the gate if one is given; 1 a ratio is above the gate; 2 could not measure.";

/// Measure the server beside a server that allows every request: CPU time a request, requests a second, memory.
#[derive(Debug, Parser)]
#[command(name = "compare", version, after_help = EXAMPLES)]
pub struct Args {
    /// The server under test [default: `outrider` beside this program]
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// The yardstick [default: `null-server` beside this program]
    #[arg(long, value_name = "FILE")]
    pub null_server: Option<PathBuf>,
    /// Start this instead of `outrider serve`; split at spaces; {webhook} and {health} are addresses, {certs} and
    /// {manifests} folders. Without {health} it counts as ready when it accepts connections
    #[arg(long, value_name = "COMMAND", conflicts_with = "server")]
    pub server_command: Option<String>,
    /// Only this row (repeatable)
    #[arg(long = "row", value_name = "ROW")]
    pub rows: Vec<String>,
    /// Seconds of load a round and server
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub duration: u64,
    /// Rounds; in each the two servers take turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Exit 1 if the CPU time ratio of any row is above this
    #[arg(long, value_name = "RATIO")]
    pub gate: Option<f64>,
    /// Also write every figure to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
