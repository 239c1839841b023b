//! Everything that needs the API server and is not an answer to it: the client, the lease, the controllers.

pub mod client;
pub mod lease;
pub mod observe;
pub mod queue;
pub mod schedule;
