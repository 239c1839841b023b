//! A child process that cannot outlive us, and the clean-up that follows it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Error;

/// A script for `sh -c` that runs `"$@"`, sends it each signal that is named on stdin, and kills it when stdin closes. The other end of stdin is ours
/// alone, so the kernel closes it however we end, SIGKILL included; `PR_SET_PDEATHSIG` would need `unsafe`. Nothing in the
/// cluster is worth a slow shutdown: KILL.
pub const SUPERVISOR: &str = r#"
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{ while read -r signal <&3; do kill "-$signal" "$child"; done; kill -KILL "$child"; } 2>/dev/null &
guard=$!
exec 3<&-
wait "$child"
status=$?
kill "$guard" 2>/dev/null
exit "$status"
"#;

/// Removes the directory `$1` when stdin closes; more than once, since programs that are being killed may still write.
const JANITOR: &str = r#"
read -r _
tries=0
until rm -rf -- "$1" 2>/dev/null || [ "$tries" -ge 20 ]; do tries=$((tries + 1)); sleep 1; done
"#;

/// Collects garbage less often (`runtime` of Go): a tenth to a fifth less processor time, for some 80 MB more in an API server.
/// A value that is set already stays.
pub(crate) fn spare_the_processor(command: &mut Command) {
    if std::env::var_os("GOGC").is_none() {
        command.env("GOGC", "400");
    }
}

/// The lines of a log that are shown when something fails.
const LOG_TAIL_LINES: usize = 20;
/// Enough bytes for those lines, whatever the size of the log.
const LOG_TAIL_BYTES: u64 = 16 * 1024;

/// One supervised program of the cluster.
pub(crate) struct Component {
    name: &'static str,
    program: PathBuf,
    args: Vec<String>,
    dir: PathBuf,
    log: PathBuf,
    supervisor: Mutex<Child>,
}

impl Component {
    /// Starts `program` with its output in `<dir>/logs/<name>.log` and `dir` as its home, so that it reads no settings of
    /// the user.
    pub(crate) fn start(name: &'static str, program: &Path, args: &[String], dir: &Path) -> Result<Self, Error> {
        let log = dir.join("logs").join(format!("{name}.log"));
        let supervisor = Mutex::new(supervise(name, program, args, dir, &log)?);
        Ok(Self { name, program: program.to_owned(), args: args.to_vec(), dir: dir.to_owned(), log, supervisor })
    }

    /// Kills it and starts it again, with the same log.
    pub(crate) fn restart(&self) -> Result<(), Error> {
        self.stop();
        self.wait();
        *self.supervisor() = supervise(self.name, &self.program, &self.args, &self.dir, &self.log)?;
        Ok(())
    }

    /// Sends it a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) -> Result<(), Error> {
        let mut supervisor = self.supervisor();
        let told = supervisor.stdin.as_mut().map_or(Ok(()), |stdin| writeln!(stdin, "{name}"));
        told.map_err(|source| Error::Io { what: format!("cannot send {name} to {}", self.name), source })
    }

    fn supervisor(&self) -> MutexGuard<'_, Child> {
        self.supervisor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its name, as in `kube-apiserver`.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.supervisor().try_wait().ok().flatten()
    }

    /// Signals it to end, without waiting for that.
    pub(crate) fn stop(&self) {
        drop(self.supervisor().stdin.take());
    }

    /// Waits until it has ended, after the signal.
    pub(crate) fn wait(&self) {
        // An error here means that it has been waited for already.
        drop(self.supervisor().wait());
    }

    /// The last lines of what it printed.
    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

fn supervise(name: &str, program: &Path, args: &[String], dir: &Path, log: &Path) -> Result<Child, Error> {
    let opened = File::options().create(true).append(true).open(log);
    let output = opened.map_err(|e| Error::io("create", log, e))?;
    let errors = output.try_clone().map_err(|e| Error::io("open", log, e))?;
    let mut command = Command::new("sh");
    command.args(["-c", SUPERVISOR, name]).arg(program).args(args).current_dir(dir).env("HOME", dir);
    command.env_remove("KUBECONFIG").stdout(output).stderr(errors);
    spare_the_processor(&mut command);
    spawn(command)
}

/// Removes a directory when it is dropped, and also when this process is killed.
pub(crate) struct Janitor(Child);

impl Janitor {
    /// Watches over `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", JANITOR, "janitor"]).arg(dir).current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        spawn(command).map(Self)
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// In a process group of its own: what a terminal or a test runner sends to ours must not reach the supervisor, which
/// has to be there when we are not.
pub(crate) fn spawn(mut command: Command) -> Result<Child, Error> {
    command
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| Error::Io { what: "cannot run `sh`".to_owned(), source })
}

/// The last lines of a file, or why it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    match read_end(path) {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().collect();
            lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default().join("\n")
        }
        Err(error) => format!("(cannot read {}: {error})", path.display()),
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    use std::io::{Seek, SeekFrom};
    let mut file = File::open(path)?;
    let skipped = fs::metadata(path)?.len().saturating_sub(LOG_TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
