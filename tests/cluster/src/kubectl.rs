//! Running kubectl, the way most tests talk to the cluster.

use std::io::Write;
use std::path::Path;
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

/// Runs kubectl as the user of `kubeconfig`. `cache` holds its discovery cache, which it would otherwise keep under the
/// home directory by host and port, where a later cluster on the same port would find another cluster's API.
///
/// # Errors
/// Only if kubectl cannot be run: its own failure is in the [`Output`].
pub(crate) fn run(
    kubectl: &Path,
    kubeconfig: &Path,
    cache: &Path,
    args: &[&str],
    stdin: Option<&str>,
) -> Result<Output, Error> {
    let failed = |e| Error::io("run", kubectl, e);
    let mut child = Command::new(kubectl)
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .env("KUBECACHEDIR", cache)
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let pipe = child.stdin.take();
    let output = thread::scope(|scope| {
        if let (Some(mut pipe), Some(text)) = (pipe, stdin) {
            // kubectl may end without reading everything; its exit code tells.
            scope.spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
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
