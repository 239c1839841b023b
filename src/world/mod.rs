//! The read model: what decisions are taken from, as immutable snapshots.

pub mod contact;
pub mod deployment;
pub mod feed;
pub mod guarded;
pub mod namespace;
mod of_kind;
pub mod patience;
pub mod raw;
pub mod relist;
pub mod report;
pub mod sets;
pub mod slim;
pub mod snapshot;
pub mod standalone;
pub mod values;
pub mod version;
pub mod watch;

pub(crate) use of_kind::resource_of_kind;
pub use snapshot::{Exclusion, Snapshot};
