//! A server process: started on free loopback ports, watched until ready, ended with this value.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::error::BenchError;
use crate::http;

/// 5,000 sets are read and compiled before a server says it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
const ASK_EVERY: Duration = Duration::from_millis(50);
/// A killed process is gone as soon as the kernel has freed its memory.
const COLLECT_WITHIN: Duration = Duration::from_secs(2);

/// A command line with the places {webhook}, {health}, {certs} and {manifests}.
#[derive(Debug)]
pub struct Template {
    /// Name in progress and errors.
    pub name: &'static str,
    /// Program and arguments.
    pub words: Vec<String>,
}

impl Template {
    /// The null server.
    pub fn null_server(program: &Path) -> Self {
        let arguments = "--bind {webhook} --cert {certs}/tls.crt --key {certs}/tls.key";
        Self::new("null server", program, arguments)
    }

    /// Outrider without a cluster.
    pub fn outrider(program: &Path) -> Self {
        let arguments = "serve --standalone --manifests {manifests} --webhook-bind-address {webhook} \
             --health-probe-bind-address {health} --metrics-bind-address 0 --certificates files --cert-dir {certs}";
        Self::new("server", program, arguments)
    }

    /// Any other command, split at spaces.
    pub fn custom(command: &str) -> Self {
        Self { name: "server", words: command.split_whitespace().map(str::to_owned).collect() }
    }

    fn new(name: &'static str, program: &Path, arguments: &str) -> Self {
        let program = program.to_string_lossy().into_owned();
        let words = std::iter::once(program).chain(arguments.split_whitespace().map(str::to_owned));
        Self { name, words: words.collect() }
    }

    fn has_health(&self) -> bool {
        self.words.iter().any(|word| word.contains("{health}"))
    }
}

/// A running server. Dropping it ends the process, whatever the reason: done, an error, a signal, a panic.
#[derive(Debug)]
pub struct Server {
    /// Name in progress and errors.
    pub name: &'static str,
    /// Process id.
    pub pid: u32,
    /// Where it serves reviews.
    pub webhook: SocketAddr,
    health: Option<SocketAddr>,
    output: PathBuf,
    child: Child,
}

impl Server {
    /// Starts a server and waits until it is ready. `folder` holds `certs` and `manifests` and receives its output.
    ///
    /// # Errors
    /// A program that cannot be started, ends, or is not ready in time.
    pub async fn start(template: &Template, folder: &Path) -> Result<Self, BenchError> {
        let (webhook, health) = two_free_addresses()?;
        let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let words: Vec<String> = template
            .words
            .iter()
            .map(|word| {
                word.replace("{webhook}", &webhook.to_string())
                    .replace("{health}", &health.to_string())
                    .replace("{certs}", &path("certs"))
                    .replace("{manifests}", &path("manifests"))
            })
            .collect();
        let output = folder.join(format!("{}.log", template.name.replace(' ', "-")));
        let log = File::create(&output).map_err(BenchError::file(&output))?;
        let child = Command::new(words.first().map_or("", String::as_str))
            .args(words.iter().skip(1))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|source| BenchError::Start { server: template.name.into(), command: words.join(" "), source })?;
        let mut server = Self {
            name: template.name,
            pid: child.id().unwrap_or_default(),
            webhook,
            health: template.has_health().then_some(health),
            output,
            child,
        };
        server.wait_until_ready().await?;
        Ok(server)
    }

    async fn wait_until_ready(&mut self) -> Result<(), BenchError> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Err(BenchError::Ended {
                    server: self.name.into(),
                    status: status.to_string(),
                    output: self.last_output(),
                });
            }
            let last = match self.is_ready().await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if Instant::now() > deadline {
                return Err(BenchError::NotReady {
                    server: self.name.into(),
                    seconds: READY_WITHIN.as_secs(),
                    last,
                    output: self.last_output(),
                });
            }
            sleep(ASK_EVERY).await;
        }
    }

    async fn is_ready(&self) -> Result<(), String> {
        if let Some(health) = self.health {
            let response = http::get(health, "/readyz").await.map_err(|error| error.to_string())?;
            if response.status != 200 {
                let text = String::from_utf8_lossy(&response.body).into_owned();
                return Err(format!("/readyz says {}: {text}", response.status));
            }
        }
        let connected = TcpStream::connect(self.webhook).await;
        connected.map(drop).map_err(|error| format!("{}: {error}", self.webhook))
    }

    /// The end of what the process wrote.
    pub fn last_output(&self) -> String {
        const LINES: usize = 20;
        let bytes = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Server {
    /// Waits too: a container's init process may not collect what is left behind.
    fn drop(&mut self) {
        if self.child.start_kill().is_err() {
            return;
        }
        let deadline = Instant::now() + COLLECT_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(ASK_EVERY / 10);
        }
    }
}

/// Both listeners are held until both ports are known, so that they differ.
fn two_free_addresses() -> Result<(SocketAddr, SocketAddr), BenchError> {
    let any = (Ipv4Addr::LOCALHOST, 0);
    let (one, two) = (TcpListener::bind(any)?, TcpListener::bind(any)?);
    Ok((one.local_addr()?, two.local_addr()?))
}
