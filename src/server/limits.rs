//! How much the server takes on, and how long it waits.

use std::time::Duration;

/// Bounds of the webhook listener. The defaults suit an API server as the client.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request body. Two objects of up to 3 MiB each (etcd's request limit is 1.5 MiB, the API server reads up to
    /// 3 MiB) and the envelope: the same 7 MiB that controller-runtime derives in `pkg/webhook/admission/http.go`.
    pub body: usize,
    /// Bytes of all bodies that are being read or decided, and of all larger replies that are being written, at one time.
    pub body_memory: usize,
    /// Reviews that are decided at one time.
    pub in_flight: usize,
    /// Bytes above which a body is decided apart from the others.
    pub large: usize,
    /// The same where the object is decoded as a whole: thousands of containers fit into a few kilobytes, and what is decided on
    /// them may take a hundred times as long as to read them.
    pub large_object: usize,
    /// Large bodies that are decided at one time. What is built from one of 7 MiB takes up to 64 MB.
    pub large_at_once: usize,
    /// How long a review waits for its turn before it is shed, within its own deadline.
    pub queue: Duration,
    /// Open connections. A further one gets the place of the idlest.
    pub connections: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a new connection may take to send the head of its first request.
    pub first_request: Duration,
    /// A connection without a request for at least this long, at most twice as long, is closed. The API server keeps idle
    /// connections for 90 s (Go's `http.DefaultTransport`); closing earlier would race its next request, which then fails.
    pub idle: Duration,
    /// A connection of this age is closed after its next reply, so that clients spread over new replicas.
    pub connection_age: Duration,
    /// Ages are spread by up to this much, so that connections opened together do not end together.
    pub connection_age_spread: Duration,
    /// The deadline of a request that names none: the API server's own default.
    pub default_deadline: Duration,
    /// How long what runs may go on after the listener has closed.
    pub finish: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 7 * 1024 * 1024,
            body_memory: 256 * 1024 * 1024,
            in_flight: 512,
            large: 256 * 1024,
            large_object: 16 * 1024,
            large_at_once: 2,
            queue: Duration::from_secs(2),
            connections: 4096,
            handshake: Duration::from_secs(10),
            first_request: Duration::from_secs(30),
            idle: Duration::from_secs(150),
            connection_age: Duration::from_secs(10 * 60),
            connection_age_spread: Duration::from_secs(2 * 60),
            default_deadline: Duration::from_secs(10),
            finish: Duration::from_secs(15),
        }
    }
}

/// What is built from one of the largest bodies takes at most.
const DECODED: usize = 64 << 20;

/// What a connection takes at most while it is read from: buffers of TLS and HTTP. Measured, see docs/availability.md.
const CONNECTION: usize = 128 * 1024;

impl Limits {
    /// The defaults, or less where the process may not use much memory: a quarter of it is for bodies, a quarter for connections,
    /// a quarter for what is built from large bodies.
    /// A container that is killed for its memory answers no request.
    pub fn within(memory: Option<usize>) -> Self {
        let defaults = Self::default();
        let Some(quarter) = memory.map(|memory| memory / 4) else { return defaults };
        Self {
            // Two of the largest must fit into the three quarters that are not for small ones alone, or none is ever read while
            // another is.
            body_memory: defaults.body_memory.min(quarter.max(3 * defaults.body)),
            connections: defaults.connections.min((quarter / CONNECTION).max(64)),
            large_at_once: defaults.large_at_once.min((quarter / DECODED).max(1)),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_means_few_connections_and_few_bodies() {
        let mebibytes = |number: usize| number << 20;
        let table = [
            (None, mebibytes(256), 4096, 2),
            (Some(mebibytes(4096)), mebibytes(256), 4096, 2),
            (Some(mebibytes(256)), mebibytes(64), 512, 1),
            (Some(mebibytes(32)), mebibytes(21), 64, 1),
        ];
        for (memory, bodies, connections, large) in table {
            let limits = Limits::within(memory);
            let found = (limits.body_memory, limits.connections, limits.large_at_once);
            assert_eq!(found, (bodies, connections, large), "{memory:?}");
        }
    }
}
