//! Waiting for a change in a directory.

use std::path::Path;

#[cfg(target_os = "linux")]
pub use linux::DirectoryWatch;

/// Without inotify no change is reported: the poll has to do.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct DirectoryWatch;

#[cfg(not(target_os = "linux"))]
impl DirectoryWatch {
    pub const fn new(_: &Path) -> std::io::Result<Self> {
        Ok(Self)
    }

    pub async fn changed(&mut self) {
        std::future::pending().await
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::net::unix::pipe::Receiver;

    use super::Path;

    /// A watch on the directory itself: the kubelet swaps the link `..data` in it, so a watch on a file would be left with a
    /// deleted one.
    #[derive(Debug)]
    pub struct DirectoryWatch {
        /// A pipe and an inotify descriptor are waited for and read in the same way; tokio has a safe type for the former only.
        inotify: Receiver,
    }

    impl DirectoryWatch {
        /// Watches from now on.
        ///
        /// # Errors
        /// What the system says, also when there is no such directory.
        pub fn new(dir: &Path) -> io::Result<Self> {
            let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let changes = WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVE
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            inotify::add_watch(&inotify, dir, changes | WatchFlags::ONLYDIR)?;
            Ok(Self { inotify: Receiver::from_owned_fd_unchecked(inotify)? })
        }

        /// Waits until something has happened since the last call. Never returns if the system fails: the poll has to do then.
        pub async fn changed(&mut self) {
            if self.inotify.readable().await.is_err() {
                std::future::pending::<()>().await;
            }
            // What happened does not matter, so events are only taken out.
            let mut events = [0; 4096];
            while self.inotify.try_read(&mut events).is_ok_and(|read| read > 0) {}
        }
    }
}
