//! A namespace for one test, so that tests can share a cluster.

use std::fmt;
use std::thread;

use crate::{Cluster, Error, Output};

/// A namespace that is deleted when this is dropped. If the test is panicking then, the namespace's events and the ends
/// of the components' logs are shown first.
pub struct Namespace<'a> {
    cluster: &'a Cluster,
    name: String,
}

impl<'a> Namespace<'a> {
    pub(crate) const fn new(cluster: &'a Cluster, name: String) -> Self {
        Self { cluster, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kubectl in this namespace, as [`Cluster::kubectl`].
    ///
    /// # Errors
    /// If kubectl cannot be run.
    pub fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> Result<Output, Error> {
        let mut all = vec!["--namespace", &self.name];
        all.extend(args);
        self.cluster.kubectl(&all, stdin)
    }

    /// Runs kubectl in this namespace and gives its standard output.
    ///
    /// # Errors
    /// If it fails; the error holds its standard error.
    pub fn kubectl_ok(&self, args: &[&str], stdin: Option<&str>) -> Result<String, Error> {
        crate::kubectl::must_succeed(args, self.kubectl(args, stdin)?)
    }

    /// `kubectl apply` of one or more YAML documents in this namespace.
    ///
    /// # Errors
    /// If the API server refuses one of them.
    pub fn apply(&self, yaml: &str) -> Result<String, Error> {
        self.kubectl_ok(&["apply", "-f", "-"], Some(yaml))
    }
}

impl fmt::Display for Namespace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let events = self.kubectl_ok(&["get", "events", "--sort-by=.lastTimestamp"], None);
            let events = events.unwrap_or_else(|error| error.to_string());
            eprintln!("events in namespace {}:\n{events}\n{}", self.name, self.cluster.log_tails());
        }
        // Best effort: a namespace that stays behind ends with the cluster.
        drop(self.cluster.kubectl(&["delete", "namespace", &self.name, "--wait=false"], None));
    }
}
