//! The read model: what decisions are taken from, as immutable snapshots.

pub mod namespace;
pub mod snapshot;
pub mod standalone;

pub use snapshot::Snapshot;
