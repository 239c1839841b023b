//! Runs a program that fetches credentials, and gives it up after a while. Not for people: `serve` has it in the place of the
//! program that a kubeconfig names.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use clap::Args;

use super::streams::CommandOutcome;
use crate::go_duration::unsigned_duration;
use crate::manager::credentials::PLUGIN_TIMEOUT;

const POLL: Duration = Duration::from_millis(20);

/// Arguments of the command.
#[derive(Debug, Args)]
pub struct PluginArgs {
    /// How long the program may take
    #[arg(long, value_name = "DURATION", value_parser = unsigned_duration)]
    pub timeout: Option<Duration>,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    pub command: Vec<OsString>,
}

/// Runs the program. What it prints and how it ends are as if it had been run itself.
pub fn execute(args: &PluginArgs) -> ExitCode {
    let timeout = args.timeout.unwrap_or(PLUGIN_TIMEOUT);
    let Some((program, arguments)) = args.command.split_first() else { return failed() };
    let shown = program.display();
    // Not our own outputs: what the program itself has started may keep them open when it is gone.
    let child = Command::new(program).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return fail(&format!("the credential plugin {shown} cannot be run: {error}")),
    };
    let passing = [
        child.stdout.take().map(|from| pass(from, io::stdout())),
        child.stderr.take().map(|from| pass(from, io::stderr())),
    ];
    match wait(&mut child, timeout) {
        Ok(Some(code)) => {
            passing.into_iter().flatten().for_each(|thread| drop(thread.join()));
            ExitCode::from(code)
        }
        Ok(None) => fail(&format!(
            "the credential plugin {shown} gave no answer within {} s and was ended; does it wait for a login?",
            timeout.as_secs()
        )),
        Err(error) => fail(&format!("the credential plugin {shown} cannot be waited for: {error}")),
    }
}

/// The exit code of the program; `None` when it was ended.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<u8>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(Some(code.unwrap_or(CommandOutcome::BadInput.code())));
        }
        if start.elapsed() >= timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(POLL);
    }
}

fn pass(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) -> JoinHandle<()> {
    // The reader may be gone.
    thread::spawn(move || drop(io::copy(&mut from, &mut to).and_then(|_| to.flush())))
}

fn fail(text: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {text}");
    failed()
}

fn failed() -> ExitCode {
    ExitCode::from(CommandOutcome::BadInput.code())
}
