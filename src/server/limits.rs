//! How much the server takes on, and how long it waits.

use std::time::Duration;

/// Bounds of the webhook listener. The defaults suit an API server as the client.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request body. Two objects of up to 3 MiB each (etcd's request limit is 1.5 MiB, the API server reads up to
    /// 3 MiB) and the envelope: the same 7 MiB that controller-runtime derives in `pkg/webhook/admission/http.go`.
    pub body: usize,
    /// Bytes of all bodies that are being read or decided at one time.
    pub body_memory: usize,
    /// Reviews that are decided at one time.
    pub in_flight: usize,
    /// How long a review waits for its turn before it is shed, within its own deadline.
    pub queue: Duration,
    /// Open connections. Further ones wait in the kernel's queue.
    pub connections: usize,
    /// Handshakes that are under way at one time.
    pub handshakes: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a new connection may take to send the head of its first request.
    pub first_request: Duration,
    /// A connection without a request for at least this long, at most twice as long, is closed. The API server keeps idle
    /// connections for 90 s (Go's `http.DefaultTransport`); closing earlier would race its next request, which then fails.
    pub idle: Duration,
    /// A connection of this age is told to end with its next reply, so that clients spread over new replicas.
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
            queue: Duration::from_secs(2),
            connections: 4096,
            handshakes: 256,
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
