//! Reads a file that another process writes: whatever is in its place, it neither blocks the process nor fills its memory.

use std::fs::{FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// The most that a file may hold; a Secret holds no more than that.
pub const LIMIT: u64 = 1 << 20;
/// A network file system that has gone away answers neither with data nor with an error.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads files one at a time.
#[derive(Debug, Clone)]
pub struct FileReader {
    /// A read that was given up goes on in its thread; no other begins beside it.
    turn: Arc<Semaphore>,
    timeout: Duration,
}

impl Default for FileReader {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), timeout: READ_TIMEOUT }
    }
}

impl FileReader {
    /// What the file holds.
    ///
    /// # Errors
    /// What the system says; that it is no regular file, holds more than [`LIMIT`], or was not read in time.
    pub async fn read(&self, path: PathBuf) -> io::Result<Vec<u8>> {
        self.run(move || read(&path)).await
    }

    async fn run(&self, work: impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static) -> io::Result<Vec<u8>> {
        let late = || {
            let text = format!("it was not read within {} s; does its file system answer?", self.timeout.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, text)
        };
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else { return Err(late()) };
        let (done, outcome) = oneshot::channel();
        // Not in the runtime's pool: the process could not end before a thread of that has.
        thread::Builder::new().name("read".to_owned()).spawn(move || {
            let read = work();
            drop(turn);
            // The receiver may be gone.
            let _ = done.send(read);
        })?;
        match timeout(self.timeout, outcome).await {
            Ok(Ok(read)) => read,
            Ok(Err(_)) => Err(io::Error::other("the thread that read it ended")),
            Err(_) => Err(late()),
        }
    }
}

/// As [`FileReader::read`], for as long as the file system takes.
///
/// # Errors
/// As [`FileReader::read`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a FIFO would wait for a writer; opening a terminal could make it ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {}, and no regular file", named(kind))));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        let text = format!("it holds more than {} MiB", LIMIT >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn named(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

    use super::*;

    fn refused(path: &Path) -> String {
        read(path).unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_read_and_only_so_much_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        mknodat(CWD, path("fifo"), Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(refused(&path("fifo")), "it is a FIFO, and no regular file");
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device, and no regular file");
        assert_eq!(refused(dir.path()), "it is a directory, and no regular file");
        assert_eq!(read(&path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let limit = usize::try_from(LIMIT).unwrap();
        fs::write(path("large"), vec![b'a'; limit]).unwrap();
        assert_eq!(read(&path("large")).unwrap().len(), limit);
        fs::write(path("large"), vec![b'a'; limit + 1]).unwrap();
        assert_eq!(refused(&path("large")), "it holds more than 1 MiB");
        std::os::unix::fs::symlink("fifo", path("link")).unwrap();
        assert_eq!(refused(&path("link")), "it is a FIFO, and no regular file");
    }

    #[tokio::test]
    async fn a_read_that_hangs_is_given_up_and_no_second_one_hangs_beside_it() {
        let reader = FileReader { timeout: Duration::ZERO, ..FileReader::default() };
        let (end, ended) = mpsc::channel::<()>();
        let hangs = move || {
            let _ = ended.recv();
            Ok(Vec::new())
        };
        assert_eq!(reader.run(hangs).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // It would panic if it began.
        let second = reader.run(|| panic!("began")).await;
        assert_eq!(second.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(end);
        while reader.turn.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
        let patient = FileReader { timeout: READ_TIMEOUT, ..reader };
        assert_eq!(patient.run(|| Ok(vec![1])).await.unwrap(), [1]);
    }
}
