//! Certificates from a directory with `tls.crt` and `tls.key`, as a mounted Secret has them.
//!
//! The kubelet replaces such a directory by swapping the symbolic link `..data`, so that a watch on the files would be left with
//! deleted ones. Two small files are read every few seconds instead: it cannot miss a change and costs nothing that shows.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::pair::{PairError, ServingPair};
use super::resolver::Resolver;

/// How often the directory is read.
pub const POLL: Duration = Duration::from_secs(5);

/// Why the pair in the directory is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The files are read, the pair is not usable.
    #[error("{dir}: {source}", dir = dir.display())]
    Pair {
        /// The directory.
        dir: PathBuf,
        /// What is wrong.
        source: PairError,
    },
}

/// What a look at the directory found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The same as last time.
    Unchanged,
    /// A new pair, which is in use now.
    Swapped,
}

/// A directory and what was last seen in it.
#[derive(Debug)]
pub struct CertificateFiles {
    dir: PathBuf,
    resolver: Arc<Resolver>,
    seen: Option<(Vec<u8>, Vec<u8>)>,
}

impl CertificateFiles {
    /// A directory that nobody has looked into yet.
    pub fn new(dir: impl Into<PathBuf>, resolver: Arc<Resolver>) -> Self {
        Self { dir: dir.into(), resolver, seen: None }
    }

    /// Looks, and swaps a new pair in. On any error the resolver keeps what it has.
    ///
    /// # Errors
    /// [`FilesError`] for files that cannot be read or used. Files that were refused once are not judged again until they
    /// change or, for a certificate that is not valid yet, their time has come.
    pub async fn look(&mut self, now: Timestamp) -> Result<Found, FilesError> {
        let read = (read(self.dir.join("tls.crt")).await?, read(self.dir.join("tls.key")).await?);
        if self.seen.as_ref() == Some(&read) {
            return Ok(Found::Unchanged);
        }
        match ServingPair::from_pem(&read.0, &read.1, now) {
            Ok(pair) => {
                self.resolver.swap(pair);
                self.seen = Some(read);
                Ok(Found::Swapped)
            }
            Err(source) => {
                if !matches!(source, PairError::NotYetValid(_)) {
                    self.seen = Some(read);
                }
                Err(FilesError::Pair { dir: self.dir.clone(), source })
            }
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Looks every `interval` for as long as the future is polled. `tell` hears of every swap, and of an error once until
    /// another one, or a good pair, takes its place.
    pub async fn follow(mut self, interval: Duration, mut tell: impl FnMut(Result<(), &FilesError>)) {
        let mut told: Option<String> = None;
        loop {
            match self.look(Timestamp::now()).await {
                Ok(Found::Swapped) => {
                    told = None;
                    tell(Ok(()));
                }
                Ok(Found::Unchanged) => {}
                Err(error) => {
                    let text = error.to_string();
                    if told.as_ref() != Some(&text) {
                        tell(Err(&error));
                        told = Some(text);
                    }
                }
            }
            tokio::time::sleep(interval).await;
        }
    }
}

async fn read(path: PathBuf) -> Result<Vec<u8>, FilesError> {
    tokio::fs::read(&path).await.map_err(|source| FilesError::Read { path, source })
}
