//! A process with no more memory than a container would have, where this machine lets a test make a control group.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Where version 2 of control groups keeps memory, in the one tree, and version 1, in a tree of its own; and the file of the limit.
const TREES: [(&str, &str); 2] = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// A control group with a limit of memory, and a program that starts another one in it.
pub struct MemoryGroup {
    /// Absent where no control group can be made.
    group: Option<PathBuf>,
    program: PathBuf,
    pid: PathBuf,
}

impl MemoryGroup {
    /// Makes a group of so many bytes, and in `dir` the program that starts `binary` in it.
    ///
    /// # Errors
    /// When `dir` cannot be written.
    pub fn limited_to(bytes: u64, binary: &Path, dir: &Path) -> Result<Self, Error> {
        static GROUPS: AtomicUsize = AtomicUsize::new(0);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let made = make(bytes, &format!("outrider-test-{}-{number}", std::process::id()));
        let (program, pid) = (dir.join(format!("limited-{number}")), dir.join(format!("limited-{number}.pid")));
        let mut script = format!("#!/bin/sh\necho $$ > {}\n", pid.display());
        let mut start = format!("exec {} \"$@\"", binary.display());
        if let Some((group, tree)) = &made {
            // Writing to a String cannot fail.
            let _ = writeln!(script, "echo $$ > {}", group.join("cgroup.procs").display());
            if shows_limit(group, tree) {
                let command = format!("{} && {start}", mount(group, tree));
                start = format!("exec unshare --mount sh -c '{command}' sh \"$@\"");
            }
        }
        let _ = writeln!(script, "{start}");
        fs::write(&program, script).map_err(|error| Error::io("write", &program, error))?;
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, executable).map_err(|error| Error::io("make executable", &program, error))?;
        Ok(Self { group: made.map(|(group, _)| group), program, pid })
    }

    /// The program that starts the binary in the group.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether the kernel holds the process to the limit.
    pub const fn is_enforced(&self) -> bool {
        self.group.is_some()
    }

    /// Bytes of memory that the process has, and has had at most.
    ///
    /// # Errors
    /// When the process has not started, or has ended.
    pub fn resident(&self) -> Result<(u64, u64), Error> {
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| Error::io("read", path, error));
        let pid = read(&self.pid)?;
        let status = read(&Path::new("/proc").join(pid.trim()).join("status"))?;
        let bytes = |name: &str| {
            let text = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            text.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1024
        };
        Ok((bytes("VmRSS:"), bytes("VmHWM:")))
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

fn make(bytes: u64, name: &str) -> Option<(PathBuf, &'static str)> {
    for (tree, limit) in TREES {
        let group = Path::new(tree).join(name);
        if fs::create_dir(&group).is_err() {
            continue;
        }
        if group.join(limit).exists() && fs::write(group.join(limit), bytes.to_string()).is_ok() {
            return Some((group, tree));
        }
        drop(fs::remove_dir(&group));
    }
    None
}

/// In a container the tree of control groups is the container's own group, so that the process can read its limit there.
fn mount(group: &Path, tree: &str) -> String {
    format!("mount --bind {} {tree}", group.display())
}

fn shows_limit(group: &Path, tree: &str) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount(group, tree)]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
