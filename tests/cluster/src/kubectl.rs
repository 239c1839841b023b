//! Running kubectl, the way most tests talk to the cluster.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::Error;

/// What a command printed and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error: warnings and refusals of the API server are here.
    pub stderr: String,
}

impl Output {
    /// Whether the command ended with exit code 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// Runs `kubectl` with this standard input.
///
/// # Errors
/// Only if it cannot be run: its own failure is in the [`Output`].
pub(crate) fn run(mut kubectl: Command, stdin: Option<&str>) -> io::Result<Output> {
    let mut child = kubectl
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pipe = child.stdin.take();
    let output = thread::scope(|scope| {
        if let (Some(mut pipe), Some(text)) = (pipe, stdin) {
            // kubectl may end without reading everything; its exit code shows that.
            scope.spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        child.wait_with_output()
    })?;
    Ok(Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The standard output of a kubectl that must have succeeded.
pub(crate) fn must_succeed(args: &[&str], output: Output) -> Result<String, Error> {
    if output.success() {
        return Ok(output.stdout);
    }
    Err(Error::Kubectl { command: args.join(" "), stderr: output.stderr })
}
