//! What a command reads and writes, and how it ends; apart from the process, so that tests can run a command.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::color;
use crate::visible::Visible;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommandOutcome {
    /// Fine, or allowed.
    Fine,
    /// Refused, or something was found.
    Refused,
    /// Bad input, or there is no answer.
    BadInput,
    /// Something critical was found.
    Critical,
}

impl CommandOutcome {
    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Refused => 1,
            Self::BadInput => super::BAD_INPUT,
            Self::Critical => 3,
        }
    }
}

/// Where a command reads and writes.
pub struct Streams<'a> {
    /// Read where a file is called `-`.
    pub stdin: &'a mut dyn Read,
    /// The result.
    pub stdout: &'a mut dyn Write,
    /// Everything else.
    pub stderr: &'a mut dyn Write,
}

/// Runs a command with the streams of the process.
pub fn with_process_streams(command: impl FnOnce(&mut Streams<'_>) -> io::Result<CommandOutcome>) -> ExitCode {
    let mut stdin = io::stdin().lock();
    let (mut stdout, mut stderr) = (Visible::new(io::stdout().lock()), color::stderr());
    let mut streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr };
    let ended = command(&mut streams).and_then(|outcome| {
        stdout.flush()?;
        stderr.flush()?;
        Ok(outcome)
    });
    match ended {
        Ok(outcome) => ExitCode::from(outcome.code()),
        // The reader has closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr, "error: {error}");
            ExitCode::from(super::BAD_INPUT)
        }
    }
}
