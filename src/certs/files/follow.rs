//! Follows a directory for as long as the process lives.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::sleep;

use super::watch::DirectoryWatch;
use super::{CertificateFiles, FilesError, ReadResult};
use crate::certs::ca_bundle::publisher::Publisher;
use crate::certs::expiry::Alarm;
use crate::certs::pair::PairError;
use crate::certs::resolver::Resolver;
use crate::certs::trust_anchor;
use crate::metrics::Metrics;
use crate::readiness::Gate;

/// How often the directory is read without an event: not every file system reports changes.
pub const POLL: Duration = Duration::from_secs(5);

/// Files that are written one after the other are read together.
pub const GATHER: Duration = Duration::from_millis(200);

/// The recipients of what is read.
pub struct Recipients {
    /// Open while there is a pair.
    pub gate: Gate,
    /// Counts errors and holds the times of the certificate.
    pub metrics: Metrics,
    /// Warns of what ends.
    pub alarm: Alarm,
    /// Receives the authorities, as PEM, for the registration of webhooks.
    pub bundle: Option<watch::Sender<Option<String>>>,
}

/// Keeps a replica supplied with the pair in a directory.
pub struct FollowFiles {
    files: CertificateFiles,
    resolver: Arc<Resolver>,
    told: Recipients,
    /// Has the API server trust `ca.crt` before anything of it is served.
    publisher: Option<Publisher>,
    /// The last error, so that it is logged once.
    error: Option<String>,
    is_open: bool,
}

impl FollowFiles {
    /// Without a `publisher`, another component writes the caBundles, and a new pair is served at once.
    pub const fn new(
        files: CertificateFiles,
        resolver: Arc<Resolver>,
        told: Recipients,
        publisher: Option<Publisher>,
    ) -> Self {
        Self { files, resolver, told, publisher, error: None, is_open: false }
    }

    /// Works until it is dropped.
    pub async fn run(mut self) {
        let mut watch = None;
        loop {
            // Before the look, so that no change falls between; anew each time, as the directory may have been replaced.
            watch = DirectoryWatch::new(self.files.dir()).ok().or(watch);
            let pause = self.check().await;
            tokio::select! {
                () = sleep(pause) => {}
                () = changes(&mut watch) => sleep(GATHER).await,
                () = leading_changes(&mut self.publisher) => {}
            }
        }
    }

    /// Looks once, and says when to look again.
    async fn check(&mut self) -> Duration {
        let now = Timestamp::now();
        let looked = self.files.refresh(now).await;
        if looked.is_ok() {
            self.told.metrics.certificate_checked.set(now.as_second());
        }
        match looked {
            Ok(ReadResult::New) => self.error = None,
            Ok(ReadResult::Unchanged) => self.served_has_ended(now),
            Err(error) => self.refused(&error),
        }
        let pause = self.publish(now).await;
        self.check_expiry(now).await;
        pause
    }

    /// A certificate that expires while it is served is reported like one that had expired before.
    fn served_has_ended(&mut self, now: Timestamp) {
        let Some(end) = self.resolver.not_after().filter(|end| *end < now && !self.files.has_news()) else { return };
        self.refused(&FilesError::Pair { dir: self.files.dir().to_owned(), source: PairError::Expired(end) });
    }

    fn refused(&mut self, error: &FilesError) {
        let text = error.to_string();
        if self.error.as_ref() == Some(&text) {
            return;
        }
        self.told.metrics.certificate_errors.inc();
        if self.resolver.current().is_some() {
            tracing::error!(%error, "Serving certificate not usable; the last good one stays");
            self.told.gate.note(format!("the newest is not usable: {text}"));
        } else {
            tracing::error!(%error, "Serving certificate not usable");
            self.told.gate.close(text.clone());
        }
        self.error = Some(text);
    }

    /// Serves what may be served, once the caBundles are written. Returns when to check again.
    async fn publish(&mut self, now: Timestamp) -> Duration {
        let Some(publisher) = &mut self.publisher else {
            self.serve(true, "");
            return POLL;
        };
        let (wanted, newest) = (self.files.authorities(), self.files.newest_authorities().to_vec());
        if let Some(bundle) = self.told.bundle.as_ref().filter(|_| !wanted.is_empty()) {
            trust_anchor::publish(bundle, &wanted);
        }
        let is_changing = self.files.has_news() || !self.is_open;
        if (publisher.leads() || is_changing)
            && let Err(error) = publisher.publish(&wanted, self.is_open).await
        {
            tracing::warn!(%error, "The caBundles are not in order, trying again");
        }
        let is_settled = publisher.are_settled(&newest);
        let (opens, obstacle) = (is_settled || !publisher.guards_readiness(), publisher.obstacle(&newest));
        let pause = if is_changing || !publisher.is_complete() { publisher.pause().min(POLL) } else { POLL };
        // Better a pair that is not trusted everywhere yet than none, or one that has ended.
        let has_good = self.resolver.not_after().is_some_and(|end| end > now);
        if is_settled || !has_good || self.files.keeps_authorities() {
            self.serve(opens, &obstacle);
        } else if self.error.is_none() {
            self.told.gate.note(format!("a new certificate waits: {obstacle}"));
        }
        pause
    }

    /// Serves the newest pair; the gate opens with it, or stays closed for a reason.
    fn serve(&mut self, opens: bool, obstacle: &str) {
        if self.files.has_news() {
            self.files.swap();
            let not_after = self.resolver.not_after().map(|moment| moment.to_string()).unwrap_or_default();
            tracing::info!(dir = %self.files.dir().display(), not_after, "Serving certificate loaded");
        }
        if self.resolver.current().is_none() || self.error.is_some() {
            return;
        }
        // Once it is open it stays open: a caBundle that is emptied later must not take all replicas away at once.
        self.is_open |= opens;
        if self.is_open {
            self.told.gate.open();
        } else {
            self.told.gate.close(obstacle);
        }
    }

    async fn check_expiry(&mut self, now: Timestamp) {
        let Recipients { metrics, alarm, .. } = &mut self.told;
        let first = self.files.newest_authorities().iter().min_by_key(|authority| authority.not_after());
        metrics.ca_not_after.set(first.map_or(0, |authority| authority.not_after().as_second()));
        metrics.ca_not_before.set(first.map_or(0, |authority| authority.not_before().as_second()));
        if let Some(authority) = first {
            alarm.check("the authority in ca.crt", authority.not_before(), authority.not_after(), now).await;
        }
        alarm.check_served(&self.resolver, now).await;
    }
}

/// Waits until the directory changes; for ever where the file system reports no changes.
pub async fn changes(watch: &mut Option<DirectoryWatch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

async fn leading_changes(publisher: &mut Option<Publisher>) {
    match publisher {
        Some(publisher) => publisher.leading_changes().await,
        None => std::future::pending().await,
    }
}
