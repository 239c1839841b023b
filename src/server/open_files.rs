//! How many files, and so connections, the system lets the process have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as Go's runtime does for its programs. Container runtimes hand out a soft limit of
/// 1,024, made for programs that use `select(2)`, and a much higher hard one.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit != raised
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, limit = limit.current, "The limit of open files cannot be raised");
    }
}

/// `wanted`, or fewer: half of the files are for clients of the webhooks, the rest for everything else.
pub fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(wanted, |limit| wanted.min(limit / 2))
}
