//! A network that one test has for itself: with addresses that can be endpoints of a Service, and gone with the test.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::component::{SUPERVISOR, spawn};
use crate::{Error, Tools, progress_on_stderr};

/// Set for the process that runs inside.
const INSIDE: &str = "OUTRIDER_TEST_IN_NETWORK";

/// Loopback addresses cannot be endpoints (`ValidateEndpointIP` in k8s.io/kubernetes/pkg/apis/core/validation), those of
/// TEST-NET-1 (RFC 5737) can. On `lo` the whole prefix is local, so every address of it can be listened on.
const SET_UP: &str = r#"ip link set lo up && ip address add 192.0.2.1/24 dev lo && exec "$@" 2>&1"#;

/// Longer than any test takes: one that hangs ends, and with it all that it started.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Runs `body` in a network of its own, in which all addresses of 192.0.2.0/24 belong to this machine and nothing else can be
/// reached. To get there, the test binary runs its test `test` (its whole name) again, by `unshare`; there `body` runs.
///
/// # Errors
/// Outside: if the test fails inside, or there is no such test; what it printed is printed. Never inside.
pub fn in_own_network(test: &str, body: impl FnOnce()) -> Result<(), Error> {
    if env::var_os(INSIDE).is_some() {
        thread::spawn(|| {
            thread::sleep(LONGEST);
            // Past the capturing of test output, since this is the end.
            drop(writeln!(io::stderr(), "not done after {} s", LONGEST.as_secs()));
            std::process::abort();
        });
        body();
        return Ok(());
    }
    // Inside, nothing can be downloaded.
    Tools::locate(&progress_on_stderr)?;
    run_inside(test)
}

fn run_inside(test: &str) -> Result<(), Error> {
    let failed = |source| Error::Io { what: "cannot run a test in a network of its own".to_owned(), source };
    let mut command = Command::new("sh");
    command.args(["-c", SUPERVISOR, test, "unshare", "--net"]);
    // Who is not root can make a network only together with a user namespace.
    if fs::metadata("/proc/self").map_err(failed)?.uid() != 0 {
        command.arg("--map-root-user");
    }
    command.args(["sh", "-c", SET_UP, test]).arg(env::current_exe().map_err(failed)?);
    command.args([test, "--exact", "--include-ignored", "--nocapture"]).env(INSIDE, "1").stdout(Stdio::piped());
    let mut child = spawn(command)?;
    let passed = child.stdout.take().map_or(Ok(false), one_passed).map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    if passed && status.success() {
        return Ok(());
    }
    Err(Error::InNetwork { test: test.to_owned(), status: status.to_string() })
}

/// Prints what a test binary prints, and returns whether it says at the end that one test passed: its exit code is 0 also when it
/// has no test of the name that it was asked for.
///
/// # Errors
/// If the output cannot be read, or is no text.
pub fn one_passed(output: impl Read) -> io::Result<bool> {
    let mut passed = false;
    for line in BufReader::new(output).lines() {
        let line = line?;
        passed |= line.starts_with("test result: ok. 1 passed");
        println!("{line}");
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use super::one_passed;

    #[test]
    fn a_test_binary_that_ran_no_test_has_not_passed() {
        let line = "test result: ok. N passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n";
        for (count, passed) in [("0", false), ("1", true), ("10", false)] {
            assert_eq!(one_passed(line.replace('N', count).as_bytes()).ok(), Some(passed), "{count}");
        }
    }
}
