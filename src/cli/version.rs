//! `outrider version`.

use std::io;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::streams::{CommandOutcome, Streams, with_process_streams};

/// Arguments of `outrider version`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct VersionArgs {
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = VersionFormat::Text)]
    pub output: VersionFormat,
}

const EXAMPLES: &str = "\
Examples:
  outrider version
  outrider version -o json | jq -r .version";

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// One line
    Text,
    /// One object
    Json,
}

/// Runs the command in the process.
pub fn execute(args: &VersionArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &VersionArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let target = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    match args.output {
        VersionFormat::Text => writeln!(streams.stdout, "outrider {} {target}", super::VERSION)?,
        VersionFormat::Json => {
            // In release builds ` (commit)`.
            let commit = env!("OUTRIDER_COMMIT_NOTE").trim().trim_start_matches('(').trim_end_matches(')');
            let version = json!({"version": env!("CARGO_PKG_VERSION"), "commit": commit, "platform": target});
            writeln!(streams.stdout, "{version:#}")?;
        }
    }
    Ok(CommandOutcome::Fine)
}
