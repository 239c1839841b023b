//! Control groups of containers. containerd makes them beside those of the whole machine: no namespace takes them along.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The parent of all that containerd makes for a kubelet whose `cgroupsPerQOS` is off.
const PARENT: &str = "k8s.io";

/// Dropping it ends every other process of the namespaces, and removes the groups of their containers.
#[derive(Clone)]
pub(crate) struct Groups {
    before: BTreeSet<PathBuf>,
}

impl Groups {
    /// What is there now stays.
    pub(crate) fn before() -> Self {
        Self { before: all() }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // Of the namespace: neither the first process, which we are, nor the one that sends it.
        drop(Command::new("sh").args(["-c", "kill -KILL -1"]).status());
        // A group can be removed once nothing runs in it, so those of another node stay.
        for _ in 0..20 {
            let left: Vec<PathBuf> = all().difference(&self.before).cloned().collect();
            if left.iter().filter(|group| fs::remove_dir(group).is_err()).count() == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Of the first version there is a hierarchy for each controller, of the second a single one.
fn all() -> BTreeSet<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let hierarchies = entries(root).chain([root.to_owned()]).map(|hierarchy| hierarchy.join(PARENT));
    hierarchies.flat_map(|parent| entries(&parent).collect::<Vec<_>>()).filter(|path| path.is_dir()).collect()
}
