//! The certificate of the next handshake.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::pair::ServingPair;

/// Hands the current pair to every handshake. There is one for the life of the process, so that one `ServerConfig`, with its
/// session cache, lives as long.
#[derive(Debug, Default)]
pub struct Resolver {
    current: ArcSwapOption<ServingPair>,
}

impl Resolver {
    /// A resolver without a certificate: handshakes fail until [`Resolver::swap`] was called.
    pub fn empty() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Uses this pair from the next handshake on. Open connections keep theirs.
    pub fn swap(&self, pair: ServingPair) {
        self.current.store(Some(Arc::new(pair)));
    }

    /// When the current certificate ends.
    pub fn not_after(&self) -> Option<Timestamp> {
        self.current.load().as_ref().map(|pair| pair.not_after())
    }

    /// The pair of the next handshake.
    pub fn current(&self) -> Option<Arc<ServingPair>> {
        self.current.load_full()
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load().as_ref().map(|pair| pair.certified_key())
    }
}
