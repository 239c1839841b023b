//! Certificates from a directory with `tls.crt` and `tls.key`, and `ca.crt` if there is one, as a mounted Secret has them.

mod follow;
pub mod read;
pub mod watch;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

pub use self::follow::{FollowFiles, GATHER, POLL, Recipients, changes};
use self::read::FileReader;
use super::pair::{PairError, ServingPair};
use super::resolver::Resolver;
use super::trust_anchor::TrustAnchor;

/// The default directory of the files, which is controller-runtime's.
pub const DEFAULT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";

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
    /// The pair is whole, but clients of the one in use would refuse it.
    #[error("{dir}: the certificate is for {found:?} and not for {name}, as the one in use is", dir = dir.display())]
    Name {
        /// The directory.
        dir: PathBuf,
        /// A name by which clients call us.
        name: String,
        /// The names that it is for.
        found: Vec<String>,
    },
    /// The same.
    #[error("{dir}: no authority in ca.crt signed the certificate in tls.crt; the one in use is signed by its own", dir = dir.display())]
    Untrusted {
        /// The directory.
        dir: PathBuf,
    },
    /// The pair is whole, but the API server would refuse it.
    #[error(
        "{dir}: the certificate is for {found}, and the API server asks for {name}; have it issued for that name, or say with \
         --webhook-url which name the webhook configurations have",
        dir = dir.display(), found = listed(found)
    )]
    NotAskedFor {
        /// The directory.
        dir: PathBuf,
        /// A name by which clients call us.
        name: String,
        /// The names that it is for.
        found: Vec<String>,
    },
    /// The same.
    #[error(
        "{dir}: no authority in ca.crt signed the certificate in tls.crt, and caBundle is to hold ca.crt; put the authority \
         that signed it there",
        dir = dir.display()
    )]
    NotTrusted {
        /// The directory.
        dir: PathBuf,
    },
}

/// What is known of those who ask for the certificate.
#[derive(Debug, Clone, Default)]
pub struct ClientNames {
    /// Names that they may ask for.
    pub names: Vec<String>,
    /// They do ask for these names, so nothing is served that is not for all of them. Else no pair for one is replaced by a pair
    /// that is not.
    pub names_are_known: bool,
    /// They trust what `ca.crt` holds, so nothing is served that it did not sign.
    pub trust_authorities: bool,
}

/// What was read from the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadResult {
    /// The same as last time.
    Unchanged,
    /// A new pair, which waits for [`CertificateFiles::swap`].
    New,
}

/// A pair, and the authorities beside it.
#[derive(Debug)]
struct Candidate {
    pair: ServingPair,
    authorities: Vec<TrustAnchor>,
}

#[derive(PartialEq, Eq)]
struct Read {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
}

/// Without the key.
impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

/// A directory and what was last seen in it.
#[derive(Debug)]
pub struct CertificateFiles {
    dir: PathBuf,
    resolver: Arc<Resolver>,
    clients: ClientNames,
    reader: FileReader,
    seen: Option<Read>,
    candidate: Option<Candidate>,
    in_use: Vec<TrustAnchor>,
}

impl CertificateFiles {
    /// A directory that has not been read yet.
    pub fn new(dir: impl Into<PathBuf>, resolver: Arc<Resolver>, clients: ClientNames) -> Self {
        Self {
            dir: dir.into(),
            resolver,
            clients,
            reader: FileReader::default(),
            seen: None,
            candidate: None,
            in_use: Vec::new(),
        }
    }

    /// Looks. Nothing is served anew before [`CertificateFiles::swap`].
    ///
    /// # Errors
    /// [`FilesError`] for files that cannot be read or used. Files that were refused once are not checked again until they
    /// change or, for a certificate that is not valid yet, their time has come.
    pub async fn refresh(&mut self, now: Timestamp) -> Result<ReadResult, FilesError> {
        let read = match self.read().await {
            Ok(read) => read,
            Err(error) => {
                // The same files are checked again when they are back: until then, they count as missing.
                self.seen = None;
                return Err(error);
            }
        };
        if self.seen.as_ref() == Some(&read) {
            return Ok(ReadResult::Unchanged);
        }
        let judged = self.judge(&read, now);
        if !matches!(judged, Err(FilesError::Pair { source: PairError::NotYetValid(_), .. })) {
            self.seen = Some(read);
        }
        // What waited has been taken away with its files.
        self.candidate = None;
        self.candidate = Some(judged?);
        Ok(ReadResult::New)
    }

    async fn read(&self) -> Result<Read, FilesError> {
        let certificate = self.file("tls.crt").await?;
        let key = self.file("tls.key").await?;
        let authorities = match self.file("ca.crt").await {
            // Public authorities leave it out.
            Err(FilesError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        Ok(Read { certificate, key, authorities })
    }

    async fn file(&self, name: &str) -> Result<Vec<u8>, FilesError> {
        let path = self.dir.join(name);
        self.reader.read(path.clone()).await.map_err(|source| FilesError::Read { path, source })
    }

    fn judge(&self, read: &Read, now: Timestamp) -> Result<Candidate, FilesError> {
        let dir = || self.dir.clone();
        let pair = ServingPair::from_pem(&read.certificate, &read.key, now)
            .map_err(|source| FilesError::Pair { dir: dir(), source })?;
        let authorities = TrustAnchor::read_all(&read.authorities);
        let ClientNames { names, names_are_known, trust_authorities } = &self.clients;
        if let Some(name) = names.iter().find(|name| *names_are_known && !pair.is_for(name)) {
            return Err(FilesError::NotAskedFor { dir: dir(), name: name.clone(), found: pair.names().to_vec() });
        }
        if *trust_authorities && pair.is_foreign_to(&authorities, now) {
            return Err(FilesError::NotTrusted { dir: dir() });
        }
        // Only as strict as the pair in use can be held to: a setup that works in its own way goes on working.
        if let Some(used) = self.resolver.current().filter(|used| used.not_after() > now) {
            if let Some(name) = names.iter().find(|name| used.is_for(name) && !pair.is_for(name)) {
                return Err(FilesError::Name { dir: dir(), name: name.clone(), found: pair.names().to_vec() });
            }
            if used.is_trusted_by(&self.in_use, now)
                && !authorities.is_empty()
                && !pair.is_trusted_by(&authorities, now)
            {
                return Err(FilesError::Untrusted { dir: dir() });
            }
        }
        Ok(Candidate { pair, authorities })
    }

    /// Serves the new pair, if there is one, from the next handshake on.
    pub fn swap(&mut self) {
        if let Some(Candidate { pair, authorities }) = self.candidate.take() {
            self.resolver.swap(pair);
            self.in_use = authorities;
        }
    }

    /// Whether a new pair waits.
    pub const fn has_news(&self) -> bool {
        self.candidate.is_some()
    }

    /// Whether a client that trusts the pair in use trusts the newest one too.
    pub fn keeps_authorities(&self) -> bool {
        self.newest_authorities().iter().all(|anchor| self.in_use.contains(anchor))
    }

    /// The authorities beside the newest pair.
    pub fn newest_authorities(&self) -> &[TrustAnchor] {
        self.candidate.as_ref().map_or(&self.in_use, |candidate| &candidate.authorities)
    }

    /// The authorities of the newest pair and of the one in use, each once.
    pub fn authorities(&self) -> Vec<TrustAnchor> {
        let mut all = self.newest_authorities().to_vec();
        all.extend(self.in_use.iter().filter(|anchor| !self.newest_authorities().contains(anchor)).cloned());
        all
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// The names of a certificate, for people.
pub fn listed(names: &[String]) -> String {
    if names.is_empty() { "no name, as it has no subjectAltName".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_has_no_key_in_its_debug_output() {
        let read = Read { certificate: b"c".to_vec(), key: b"secret".to_vec(), authorities: Vec::new() };
        assert_eq!(format!("{:?}", Some(read)), "Some(Read { .. })");
    }
}
