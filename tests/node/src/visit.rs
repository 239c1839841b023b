//! Commands that people run beside a node.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::Node;

/// A way into the namespaces of this process.
pub struct Visit {
    /// As others know this process.
    pid: String,
}

impl Visit {
    /// `/proc` must still be that of the others.
    ///
    /// # Panics
    /// If this process is not found there.
    pub(crate) fn here() -> Self {
        let pid = fs::read_link("/proc/self").unwrap_or_else(|error| panic!("cannot read /proc/self: {error}"));
        Self { pid: pid.display().to_string() }
    }

    /// Writes a script that runs a command, or else a shell, with kubectl, helm and ctr at hand, as the administrator.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, node: &Node, script: &Path) {
        let cluster = node.cluster();
        let programs = ["kubectl", "helm", "ctr"].map(|name| cluster.tools().program(name));
        let dirs: BTreeSet<String> =
            programs.iter().filter_map(|path| path.parent()).map(|dir| dir.display().to_string()).collect();
        let text = format!(
            r#"#!/bin/sh
# Runs a command beside the node, or a shell. The node ends with `make node`.
export KUBECONFIG='{kubeconfig}' CONTAINERD_ADDRESS=/run/containerd.sock CONTAINERD_NAMESPACE=k8s.io
export PATH='{path}':"$PATH":/usr/sbin:/sbin
[ $# -gt 0 ] || set -- "${{SHELL:-/bin/sh}}"
exec nsenter --target {pid} --net --mount --pid sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
"#,
            kubeconfig = cluster.kubeconfig().display(),
            path = dirs.into_iter().collect::<Vec<_>>().join(":"),
            pid = self.pid,
        );
        let executable = fs::Permissions::from_mode(0o755);
        let written = fs::write(script, text).and_then(|()| fs::set_permissions(script, executable));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", script.display()));
    }
}
