//! Whose clients are let in: the authorities in a file, which is followed for as long as the process lives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::time::sleep;

use super::tls::{Acceptor, ClientCa, TlsError, server_config};
use super::{Metrics, tls};
use crate::certs::Resolver;
use crate::certs::files::read::FileReader;
use crate::certs::files::watch::DirectoryWatch;
use crate::certs::files::{GATHER, POLL, changes};
use crate::readiness::Gate;

/// Keeps an acceptor in step with the file.
pub struct FollowClientCa {
    path: PathBuf,
    reader: FileReader,
    resolver: Arc<Resolver>,
    enable_http2: bool,
    acceptor: Acceptor,
    /// The PEM that the acceptor was built from.
    used: Vec<u8>,
    /// The last error, so that it is logged once.
    error: Option<String>,
    gate: Gate,
    metrics: Metrics,
}

impl FollowClientCa {
    /// Reads the file for the first time, and opens the gate.
    ///
    /// # Errors
    /// [`TlsError`] when the file cannot be used: no authority was there before it that could be gone by.
    pub async fn begin(
        path: PathBuf,
        resolver: Arc<Resolver>,
        enable_http2: bool,
        gate: Gate,
        metrics: Metrics,
    ) -> Result<Self, TlsError> {
        let reader = FileReader::default();
        let used = read(&reader, &path).await?;
        let client_ca = ClientCa { path: &path, pem: &used };
        let acceptor = Acceptor::new(server_config(resolver.clone(), Some(client_ca), enable_http2)?);
        gate.open();
        Ok(Self { path, reader, resolver, enable_http2, acceptor, used, error: None, gate, metrics })
    }

    /// What accepts connections.
    pub fn acceptor(&self) -> Acceptor {
        self.acceptor.clone()
    }

    /// Works until it is dropped.
    pub async fn follow(mut self) {
        let dir = match self.path.parent() {
            Some(dir) if dir != Path::new("") => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut watch = None;
        loop {
            // Before the look, so that no change falls between; anew each time, as the directory may have been replaced.
            watch = DirectoryWatch::new(&dir).ok().or(watch);
            self.reload().await;
            tokio::select! {
                () = sleep(POLL) => {}
                () = changes(&mut watch) => sleep(GATHER).await,
            }
        }
    }

    async fn reload(&mut self) {
        match self.load().await {
            Ok(()) => {
                self.error = None;
                self.gate.open();
            }
            Err(error) => self.refused(&error),
        }
    }

    async fn load(&mut self) -> Result<(), TlsError> {
        let pem = read(&self.reader, &self.path).await?;
        if pem == self.used {
            return Ok(());
        }
        let client_ca = ClientCa { path: &self.path, pem: &pem };
        self.acceptor.swap(server_config(self.resolver.clone(), Some(client_ca), self.enable_http2)?);
        self.used = pem;
        tracing::info!(file = %self.path.display(), "Authorities of clients loaded");
        Ok(())
    }

    fn refused(&mut self, error: &tls::TlsError) {
        let text = error.to_string();
        if self.error.as_ref() == Some(&text) {
            return;
        }
        self.metrics.certificate_errors.inc();
        tracing::error!(%error, "Authorities of clients not usable; the last good ones stay");
        self.gate.note(format!("the newest is not usable: {text}"));
        self.error = Some(text);
    }
}

async fn read(reader: &FileReader, path: &Path) -> Result<Vec<u8>, TlsError> {
    reader.read(path.to_owned()).await.map_err(|source| TlsError::Read { path: path.to_owned(), source })
}
