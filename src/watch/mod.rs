//! Watching the API server, and the read model that the watches keep: what decisions are taken from.

pub mod contact;
pub mod coverage;
pub mod deployment;
mod failing;
pub mod follow;
pub mod guarded;
mod of_kind;
pub mod patience;
pub mod raw;
pub mod read_model;
pub mod relist;
pub mod report;
mod sidecarset;
pub mod slim;
pub mod values;
pub mod version;

pub(crate) use of_kind::resource_of_kind;
pub use sidecarset::SidecarSetResource;
