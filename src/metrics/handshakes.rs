//! TLS handshakes that failed, by cause.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Why a handshake failed. A closed list, as it is a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the label's value is the variant's name")]
pub enum HandshakeFailure {
    /// The client closed the connection.
    closed,
    /// The client took too long.
    timeout,
    /// The client does not trust our certificate, or not for the name it called.
    untrusted,
    /// The client gave up for another reason, which its alert names.
    alert,
    /// The client showed no certificate, or not one that we trust, where it has to.
    client_certificate,
    /// Client and server have no version or cipher in common.
    incompatible,
    /// What came is not TLS, such as a request in plain HTTP.
    not_tls,
    /// The server has no certificate yet.
    no_certificate,
    /// Anything else.
    other,
}

impl HandshakeFailure {
    /// Every cause.
    pub const ALL: [Self; 9] = [
        Self::closed,
        Self::timeout,
        Self::untrusted,
        Self::alert,
        Self::client_certificate,
        Self::incompatible,
        Self::not_tls,
        Self::no_certificate,
        Self::other,
    ];
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cause: HandshakeFailure,
}

/// Handshakes that failed; clones count together.
#[derive(Debug, Clone)]
pub struct HandshakeFailures(Family<Labels, Counter>);

impl Default for HandshakeFailures {
    /// Every cause begins at zero: `increase()` does not see the first of a series that begins with it.
    fn default() -> Self {
        let failures = Family::default();
        for cause in HandshakeFailure::ALL {
            drop(failures.get_or_create(&Labels { cause }));
        }
        Self(failures)
    }
}

impl HandshakeFailures {
    /// Counts a handshake that failed of this cause.
    pub fn count(&self, cause: HandshakeFailure) {
        self.0.get_or_create(&Labels { cause }).inc();
    }

    /// For the list of all metrics.
    pub(super) fn register(&self, all: &mut prometheus_client::registry::Registry) {
        all.register(
            "tls_handshake_failures",
            "TLS handshakes of webhook clients that failed, by cause",
            self.0.clone(),
        );
    }
}
