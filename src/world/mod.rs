//! The read model: what decisions are taken from, as immutable snapshots.

pub mod contact;
pub mod deployment;
pub mod guarded;
mod of_kind;
pub mod patience;
pub mod relist;
pub mod report;
pub mod slim;
pub mod version;
pub mod watch;

pub(crate) use of_kind::resource_of_kind;
