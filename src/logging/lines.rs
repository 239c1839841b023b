//! Lines on their way to stderr.
//!
//! The system call is the most expensive part of a line, so one thread writes what has gathered in a moment. No other thread
//! waits for it: where stderr takes nothing, as when the reader of a pipe hangs, lines are lost and counted while reviews go on.
//!
//! No library: tracing-appender's non-blocking writer copies each line into a message of its own.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// A line waits this long for others to go with it, unless it is a warning or an error.
const GATHERING: Duration = Duration::from_millis(50);

/// So many bytes do not wait for more.
const ENOUGH: usize = 64 * 1024;

/// So many bytes wait at most.
const MOST: usize = 4 * 1024 * 1024;

/// [`Lines::flush`] takes no longer.
const LONGEST_FLUSH: Duration = Duration::from_secs(1);

/// A way to a writer; clones lead to the same one.
#[derive(Debug, Clone)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<WaitingLines>,
    filled: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct WaitingLines {
    bytes: Vec<u8>,
    // Nothing is gained by waiting longer.
    is_due: bool,
    // Since the beginning, in bytes.
    accepted: u64,
    written: u64,
    // Since the beginning, in lines.
    lost: u64,
}

impl Lines {
    /// Starts the thread that writes to `out`. It ends with the process.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let lines = Self(Arc::clone(&shared));
        thread::Builder::new().name("log".to_owned()).spawn(move || shared.write_all_to(out))?;
        Ok(lines)
    }

    /// Waits until what was logged so far is written, for a second at most.
    pub fn flush(&self) {
        let mut queue = self.0.lock();
        let accepted = queue.accepted;
        queue.is_due = true;
        self.0.filled.notify_one();
        let waiting = self.0.written.wait_timeout_while(queue, LONGEST_FLUSH, |queue| queue.written < accepted);
        drop(waiting);
    }

    fn push(&self, line: &[u8], at_once: bool) {
        let mut queue = self.0.lock();
        if queue.bytes.len() + line.len() > MOST {
            queue.lost += 1;
            return;
        }
        let was_empty = queue.bytes.is_empty();
        queue.bytes.extend_from_slice(line);
        queue.accepted += line.len() as u64;
        let becomes_due = !queue.is_due && (at_once || queue.bytes.len() >= ENOUGH);
        queue.is_due |= becomes_due;
        drop(queue);
        if was_empty || becomes_due {
            self.0.filled.notify_one();
        }
    }
}

impl Shared {
    // Nothing panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines and takes them, with the number of lines lost so far.
    fn next(&self, batch: &mut Vec<u8>) -> u64 {
        let queue = self.lock();
        let queue =
            self.filled.wait_while(queue, |queue| queue.bytes.is_empty()).unwrap_or_else(PoisonError::into_inner);
        let (mut queue, _) = self
            .filled
            .wait_timeout_while(queue, GATHERING, |queue| !queue.is_due)
            .unwrap_or_else(PoisonError::into_inner);
        queue.is_due = false;
        std::mem::swap(&mut queue.bytes, batch);
        queue.lost
    }

    fn write_all_to(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        let mut told = 0;
        loop {
            let lost = self.next(&mut batch);
            // There is no other place to report that stderr is closed.
            let _ = out.write_all(&batch).and_then(|()| out.flush());
            self.lock().written += batch.len() as u64;
            self.written.notify_all();
            batch.clear();
            batch.shrink_to(ENOUGH);
            if lost > told {
                tracing::warn!(lines = lost - told, "Log lines lost: stderr was not read in time");
                told = lost;
            }
        }
    }
}

/// Takes one event, which the library writes in one piece.
pub struct Line<'l> {
    lines: &'l Lines,
    at_once: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.push(line, self.at_once);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'l> MakeWriter<'l> for Lines {
    type Writer = Line<'l>;

    fn make_writer(&'l self) -> Line<'l> {
        Line { lines: self, at_once: false }
    }

    fn make_writer_for(&'l self, metadata: &Metadata<'_>) -> Line<'l> {
        Line { lines: self, at_once: *metadata.level() <= Level::WARN }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// Sends on what is written; each write waits until it is allowed.
    struct Gated {
        allowed: Receiver<()>,
        written: Sender<Vec<u8>>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.allowed.recv().map_err(io::Error::other)?;
            self.written.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Lines, Sender<()>, Receiver<Vec<u8>>) {
        let (allow, allowed) = mpsc::channel();
        let (written, receive) = mpsc::channel();
        (Lines::to(Gated { allowed, written }).unwrap(), allow, receive)
    }

    fn lines_in(batches: impl Iterator<Item = Vec<u8>>) -> Vec<String> {
        String::from_utf8(batches.flatten().collect()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_keep_the_order_of_each_thread_and_none_is_missing() {
        let (lines, allow, written) = gated();
        (0..10_000).for_each(|_| allow.send(()).unwrap());
        thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let lines = &lines;
                scope.spawn(move || {
                    (0..2_000).for_each(|n| lines.push(format!("{name} {n}\n").as_bytes(), n % 100 == 0));
                });
            }
        });
        lines.flush();
        let all = lines_in(written.try_iter());
        for name in ["a", "b", "c"] {
            let of_thread: Vec<&String> = all.iter().filter(|line| line.starts_with(name)).collect();
            assert_eq!(
                of_thread,
                (0..2_000).map(|n| format!("{name} {n}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_line_is_written_without_being_asked_for() {
        for at_once in [false, true] {
            let (lines, allow, written) = gated();
            allow.send(()).unwrap();
            lines.push(b"line\n", at_once);
            assert_eq!(written.recv().unwrap(), b"line\n");
        }
    }

    #[test]
    fn whoever_logs_goes_on_when_nothing_is_taken_and_what_is_lost_is_counted() {
        let (lines, allow, written) = gated();
        let line = [b"x".repeat(ENOUGH - 1).as_slice(), b"\n"].concat();
        let pushed = 3 * MOST / ENOUGH;
        (0..pushed).for_each(|_| lines.push(&line, true));
        let lost = usize::try_from(lines.0.lock().lost).unwrap();
        assert!(lost > 0);
        (0..pushed).for_each(|_| allow.send(()).unwrap());
        lines.flush();
        assert_eq!(lines_in(written.try_iter()).len() + lost, pushed);
    }
}
