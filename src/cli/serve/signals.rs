//! SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use super::Ending;
use crate::logging;
use crate::server::Shutdown;

/// Exit code of a process that was told twice.
const AT_ONCE: i32 = 1;

/// Ends the process in order at the first signal and at once at the second.
///
/// # Errors
/// What the system says when a handler cannot be set.
pub fn follow(shutdown: Shutdown, ending: Ending) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => ("SIGTERM", ending.drain_delay),
                _ = interrupt.recv() => ("SIGINT", ending.interrupted_drain_delay),
            }
        };
        let (signal, drain_delay) = next().await;
        tracing::info!(signal, drain_delay = drain_delay.as_secs_f64(), "Ending; not ready from now on");
        let ending = tokio::spawn(async move { shutdown.begin(drain_delay).await });
        let (signal, _) = next().await;
        tracing::warn!(signal, "Ending at once");
        ending.abort();
        logging::flush();
        std::process::exit(AT_ONCE);
    });
    Ok(())
}
