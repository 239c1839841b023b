//! Runs a command as the process would, with streams in memory.

use clap::Parser;
use outrider::cli::streams::{CommandOutcome, Streams};
use outrider::cli::{Cli, Command, cases, explain, lint, migrate, render, review, version};

/// What a command wrote, and how it ended.
pub struct Ran {
    pub outcome: CommandOutcome,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `outrider` with these arguments.
pub fn outrider(arguments: &[&str], stdin: &str) -> Ran {
    let cli = Cli::try_parse_from(["outrider"].iter().chain(arguments)).unwrap_or_else(|error| panic!("{error}"));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin = stdin.as_bytes();
    let mut streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr };
    let outcome = match &cli.command {
        Command::Review(args) => review::run(args, &mut streams),
        Command::Render(args) => render::run(args, &mut streams),
        Command::Explain(args) => explain::run(args, &mut streams),
        Command::Lint(args) => lint::run(args, &mut streams),
        Command::Migrate(args) => migrate::run(args, &mut streams),
        Command::Test(args) => cases::run(args, &mut streams),
        Command::Version(args) => version::run(args, &mut streams),
        other => panic!("{other:?} does not run with streams"),
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { outcome: outcome.unwrap(), stdout: text(stdout), stderr: text(stderr) }
}

impl Ran {
    /// Everything, for a recording.
    pub fn transcript(&self) -> String {
        let Self { outcome, stdout, stderr } = self;
        format!("exit {}\n---- stdout\n{stdout}---- stderr\n{stderr}", outcome.code())
    }
}
