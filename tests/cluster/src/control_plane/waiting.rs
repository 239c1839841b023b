//! Waiting for the cluster, and noticing that it waits in vain.

use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Cluster, Error};

/// How long a step of the start may take: generous, since a loaded machine is slow and a broken start is seen at once
/// by the component that ended.
const TIMEOUT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(100);

impl Cluster {
    /// Pods are refused in a namespace until the controller-manager has made its service account.
    pub(super) fn wait_for_service_account(&self, namespace: &str) -> Result<(), Error> {
        let get = ["get", "serviceaccount", "default", "-o=name", "--ignore-not-found", "--namespace", namespace];
        self.wait_for_kubectl("the default service account", &get, "serviceaccount/default")
    }

    /// Waits until every `CustomResourceDefinition` is served and can be discovered.
    ///
    /// # Errors
    /// As [`Cluster::wait_for`].
    pub fn wait_for_definitions(&self) -> Result<(), Error> {
        let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"];
        self.wait_for("every definition to be established", || {
            let output = self.kubectl(&wait, None)?;
            // kubectl does not wait for one that has no status yet: it fails at once.
            Ok((!output.success()).then(|| format!("{}{}", output.stdout, output.stderr)))
        })?;
        // kubectl and others find a kind by discovery, which follows the definitions.
        self.wait_for("every definition to be discovered", || {
            let definitions = self.kubectl_ok(&["get", "crd", "-o=name"], None)?;
            let discovered = self.kubectl(&["api-resources", "-o=name"], None)?;
            let names = definitions.lines().filter_map(|line| line.rsplit_once('/'));
            let missing = names.map(|(_, name)| name).find(|name| discovered.stdout.lines().all(|line| line != *name));
            Ok(missing.map(|name| format!("{name} is not in {}{}", discovered.stdout, discovered.stderr)))
        })
    }

    /// Asks kubectl until it prints `wanted`.
    ///
    /// # Errors
    /// As [`Cluster::wait_for`].
    pub fn wait_for_kubectl(&self, what: &str, args: &[&str], wanted: &str) -> Result<(), Error> {
        self.wait_for(what, || {
            let output = self.kubectl(args, None)?;
            if output.success() && output.stdout.trim() == wanted {
                return Ok(None);
            }
            Ok(Some(format!("{}{}", output.stdout, output.stderr)))
        })
    }

    /// Asks until `missing` says `None`, for 90 s.
    ///
    /// # Errors
    /// If that is not enough, `missing` fails, or a component has ended.
    pub fn wait_for(&self, what: &str, missing: impl Fn() -> Result<Option<String>, Error>) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let Some(last) = missing()? else {
                return Ok(());
            };
            self.check()?;
            if start.elapsed() > TIMEOUT {
                return Err(Error::TimedOut {
                    what: what.to_owned(),
                    seconds: TIMEOUT.as_secs(),
                    last,
                    logs: self.log_tails(),
                });
            }
            thread::sleep(POLL);
        }
    }

    /// Whether all components still run.
    ///
    /// # Errors
    /// For the first that has ended, with the end of its log.
    pub fn check(&self) -> Result<(), Error> {
        for component in &self.components {
            if let Some(status) = component.ended() {
                let name = component.name().to_owned();
                return Err(Error::Ended { name, status: status.to_string(), log: component.log_tail() });
            }
        }
        Ok(())
    }
}

/// What is missing, in the manner of [`Cluster::wait_for`].
pub(super) fn listening(port: u16) -> Option<String> {
    let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    connected.err().map(|error| format!("127.0.0.1:{port}: {error}"))
}
