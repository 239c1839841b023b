//! Signals: which end the process in order, and which do nothing.

use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Ending;
use crate::logging;
use crate::server::Shutdown;

/// Exit code of a process that got a second signal.
const AT_ONCE: i32 = 1;

/// Signals that people send by mistake, or that mean something else to other programs. By default each would kill the process,
/// which leaves webhook configurations behind whose webhooks no process answers.
const IGNORED: [fn() -> SignalKind; 3] = [SignalKind::user_defined1, SignalKind::user_defined2, SignalKind::alarm];

/// Ends the process in order at the first signal and at once at the second. A terminal that is closed sends SIGHUP, unless the
/// process was started to outlive it.
///
/// # Errors
/// What the system says when a handler cannot be set.
pub fn follow(shutdown: Shutdown, ending: Ending) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = if is_ignored(SignalKind::hangup()) { None } else { Some(signal(SignalKind::hangup())?) };
    for kind in IGNORED {
        // Once there is a handler, the default is off for good.
        drop(signal(kind())?);
    }
    tokio::spawn(async move {
        let (signal, drain_delay) = tokio::select! {
            _ = terminate.recv() => ("SIGTERM", ending.drain_delay),
            _ = interrupt.recv() => ("SIGINT", ending.interrupted_drain_delay),
            () = received(hangup.as_mut()) => ("SIGHUP", ending.drain_delay),
        };
        tracing::info!(signal, drain_delay = drain_delay.as_secs_f64(), "Stopping; no longer ready");
        let ending = tokio::spawn(async move { shutdown.begin(drain_delay).await });
        // Not by SIGHUP: when a terminal is closed, the kernel sends one and the shell another.
        let signal = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::warn!(signal, "Ending at once");
        ending.abort();
        logging::flush();
        std::process::exit(AT_ONCE);
    });
    Ok(())
}

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether the parent process set the signal to be ignored, as `nohup` does. False where the system does not report it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    has_signal(&status, "SigIgn:", kind.as_raw_value())
}

/// Whether the mask of that name in `/proc/PID/status` (proc(5)) has the signal.
fn has_signal(status: &str, mask: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(mask));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let bit = u32::try_from(signal - 1).ok().and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or_default();
    mask & bit != 0
}

#[cfg(test)]
mod tests {
    use super::has_signal;

    #[test]
    fn ignored_signals_are_read_as_the_kernel_writes_them() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        for (signal, expected) in [(1, true), (2, false), (13, true), (0, false), (99, false)] {
            assert_eq!(has_signal(status, "SigIgn:", signal), expected, "{signal}");
        }
        assert!(!has_signal("", "SigIgn:", 1));
    }
}
