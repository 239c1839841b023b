//! Everything that needs the API server and is not an answer to it: the client, the lease, the controllers.

pub mod observe;
pub mod queue;
pub mod schedule;
