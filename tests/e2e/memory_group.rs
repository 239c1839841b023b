//! A process with no more memory than the chart gives a replica, where this machine lets a test make a control group.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::Cluster;

use crate::process::binary as process_binary;

/// A process that was started by [`MemoryGroup::binary`].
pub struct MemoryGroup {
    /// Absent where no control group can be made.
    group: Option<PathBuf>,
    binary: PathBuf,
    pid: PathBuf,
}

impl MemoryGroup {
    /// Limits what runs in it to so many bytes.
    pub fn limited_to(bytes: u64, cluster: &Cluster) -> Self {
        let group = make(bytes, &format!("outrider-test-{}", std::process::id()));
        let (binary, pid) = (cluster.dir().join("outrider-in-a-group"), cluster.dir().join("outrider.pid"));
        let mut script = format!("#!/bin/sh\necho $$ > {}\n", pid.display());
        if let Some(group) = &group {
            writeln!(script, "echo $$ > {}", group.join("cgroup.procs").display()).unwrap();
        }
        writeln!(script, "exec {} \"$@\"", process_binary().display()).unwrap();
        fs::write(&binary, script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&binary, executable).unwrap();
        Self { group, binary, pid }
    }

    /// Starts the binary of this version in the group.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Whether the kernel holds the process to the limit.
    pub const fn is_enforced(&self) -> bool {
        self.group.is_some()
    }

    /// Bytes of memory that the process has, and has had at most.
    pub fn resident(&self) -> (u64, u64) {
        let pid = fs::read_to_string(&self.pid).unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", pid.trim())).expect("the process is alive");
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
        };
        (bytes("VmRSS:"), bytes("VmHWM:"))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            // It can go when the process has gone, which a test that failed may not have waited for.
            drop(fs::remove_dir(group));
        }
    }
}

/// Version 2 of control groups keeps memory in the one tree, version 1 in a tree of its own.
fn make(bytes: u64, name: &str) -> Option<PathBuf> {
    for (root, limit) in [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")] {
        let group = Path::new(root).join(name);
        if fs::create_dir(&group).is_err() {
            continue;
        }
        if group.join(limit).exists() && fs::write(group.join(limit), bytes.to_string()).is_ok() {
            return Some(group);
        }
        drop(fs::remove_dir(&group));
    }
    None
}
