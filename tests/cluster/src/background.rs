//! One cluster in the background, for a person: started, asked and ended through a socket in a state directory.
//!
//! The process that holds the cluster answers on that socket, so nothing here needs a process id: who answers is the
//! right one, and if none does the cluster is gone, since its components cannot outlive the holder.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::{Cluster, Error, Options, POD_CHANGES, Progress, component, tools};

/// A client that says nothing must not keep others from ending the cluster.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Ending takes well under a second; a loaded machine may be slow.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// What the holder prints on its standard output when the cluster can be used.
const READY: &str = "ready";
/// Files that every POSIX shell can close.
const CLOSE_AND_RUN: &str = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec \"$0\" \"$@\"";

/// The state directory of the background cluster, and what can be done with it.
pub struct Background {
    dir: PathBuf,
}

/// A background cluster that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The API server's version, as in `v1.36.3`.
    pub version: String,
    /// The process that holds the cluster.
    pub pid: u64,
    /// Why the cluster cannot be used although it runs: the component that ended by itself.
    pub trouble: Option<String>,
}

impl Background {
    /// The one in `${XDG_CACHE_HOME:-$HOME/.cache}/outrider/cluster`.
    ///
    /// # Errors
    /// If neither variable is set.
    pub fn of_this_user() -> Result<Self, Error> {
        Ok(Self::in_dir(tools::cache_home()?.join("cluster")))
    }

    /// The one in `dir`.
    pub const fn in_dir(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The administrator's kubeconfig file: the same path in every run.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("control")
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Starts a cluster by running this very program as `<program> hold <dir>`, unless one runs already. Says `false` if so.
    ///
    /// # Errors
    /// If it cannot be started; the error holds the end of what the holder printed.
    pub fn up(&self, progress: Progress) -> Result<bool, Error> {
        crate::Tools::locate(progress)?;
        fs::create_dir_all(&self.dir).map_err(|e| Error::io("create", &self.dir, e))?;
        // Two that start at once: the second finds the cluster of the first.
        let _lock = self.lock()?;
        if self.status()?.is_some() {
            return Ok(false);
        }
        progress("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok");
        self.start_holder()?;
        Ok(true)
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.dir.join("lock");
        let file = File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        file.lock().map_err(|e| Error::io("lock", &path, e))?;
        Ok(file)
    }

    fn start_holder(&self) -> Result<(), Error> {
        let failed = |what: &str, error: io::Error| Error::Io { what: what.to_owned(), source: error };
        let program = std::env::current_exe().map_err(|e| failed("cannot find this program", e))?;
        let log = self.log();
        let log_file = File::create(&log).map_err(|e| Error::io("create", &log, e))?;
        // What make and shells have open beside the three streams would stay open as long as the cluster, and who waits for
        // its end, such as a pipe, would wait as long. A shell in between closes it; a process group of its own, so that
        // Ctrl-C in the terminal does not reach it.
        let mut holder = Command::new("sh")
            .args(["-c", CLOSE_AND_RUN])
            .arg(&program)
            .arg("hold")
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .process_group(0)
            .spawn()
            .map_err(|e| Error::io("run", &program, e))?;
        let mut first_line = String::new();
        if let Some(stdout) = holder.stdout.take() {
            BufReader::new(stdout).read_line(&mut first_line).map_err(|e| failed("cannot hear from the cluster", e))?;
        }
        if first_line.trim() == READY {
            return Ok(());
        }
        drop(holder.wait());
        Err(Error::Background(format!("the cluster did not start:\n{}", component::tail(&log))))
    }

    /// Ends the cluster and waits for that. Says `false` if there is none.
    ///
    /// # Errors
    /// If it is there and does not end.
    pub fn down(&self) -> Result<bool, Error> {
        if !self.dir.exists() {
            return Ok(false);
        }
        // One that is starting is waited for, and then ended.
        let _lock = self.lock()?;
        let ended = self.ask("stop")?.is_some();
        for leftover in [self.socket(), self.kubeconfig()] {
            remove(&leftover)?;
        }
        Ok(ended)
    }

    /// What runs, if anything.
    ///
    /// # Errors
    /// If it is there and does not answer.
    pub fn status(&self) -> Result<Option<Status>, Error> {
        let Some(reply) = self.ask("status")? else {
            return Ok(None);
        };
        let reply: serde_json::Value = serde_json::from_str(&reply).unwrap_or_default();
        let text = |name: &str| reply.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let pid = reply.get("pid").and_then(serde_json::Value::as_u64).unwrap_or_default();
        Ok(Some(Status { version: text("version").unwrap_or_default(), pid, trouble: text("trouble") }))
    }

    /// The holder's reply, or `None` if there is no holder.
    fn ask(&self, request: &str) -> Result<Option<String>, Error> {
        let socket = self.socket();
        let mut stream = match UnixStream::connect(&socket) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            Err(error) => return Err(Error::io("connect to", &socket, error)),
        };
        let mut reply = String::new();
        let asked = stream
            .set_read_timeout(Some(REPLY_TIMEOUT))
            .and_then(|()| writeln!(stream, "{request}"))
            .and_then(|()| stream.read_to_string(&mut reply));
        asked.map_err(|e| Error::io("talk to the cluster through", &socket, e))?;
        Ok(Some(reply))
    }

    /// Starts a cluster, writes the line `ready` to `out` and holds the cluster until it is asked to stop.
    ///
    /// # Errors
    /// If it cannot be started, or the socket cannot be made.
    pub fn hold(&self, out: &mut dyn Write) -> Result<(), Error> {
        fs::create_dir_all(&self.dir).map_err(|e| Error::io("create", &self.dir, e))?;
        // A person changes images and amounts, and expects that the kubelet follows.
        let options = Options { kwok_stages: vec![POD_CHANGES.into()], ..Options::default() };
        let cluster = Cluster::start_with(&options)?;
        let (socket, kubeconfig) = (self.socket(), self.kubeconfig());
        fs::copy(cluster.kubeconfig(), &kubeconfig).map_err(|e| Error::io("write", &kubeconfig, e))?;
        // Left by a holder that was killed: `up` has made sure that it does not answer.
        remove(&socket)?;
        let listener = UnixListener::bind(&socket).map_err(|e| Error::io("listen on", &socket, e))?;
        writeln!(out, "{READY}").and_then(|()| out.flush()).map_err(|e| Error::io("report", &self.dir, e))?;
        for stream in listener.incoming().flatten() {
            // A client that went away has no reply to miss.
            if let Ok(Some(asker)) = answer(stream, &cluster) {
                drop(cluster);
                // The asker waits for the end of the stream: all has ended by then.
                drop(asker);
                break;
            }
        }
        Ok(())
    }
}

/// Answers one request; hands the stream back if it was to stop.
fn answer(mut stream: UnixStream, cluster: &Cluster) -> io::Result<Option<UnixStream>> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    let mut request = String::new();
    BufReader::new((&stream).take(64)).read_line(&mut request)?;
    if request.trim() == "stop" {
        return Ok(Some(stream));
    }
    let trouble = cluster.check().err().map(|error| error.to_string());
    let status = json!({"pid": std::process::id(), "version": cluster.version(), "trouble": trouble});
    stream.write_all(status.to_string().as_bytes())?;
    Ok(None)
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}
