//! Watching the API server, and the read model that the watches keep: what decisions are taken from.

pub mod annotations;
pub mod backoff;
mod cluster_scoped;
pub mod coverage;
pub mod deployment;
mod failing;
pub mod follow;
pub mod image_policy;
pub mod in_order;
pub mod last_seen;
pub mod lenient;
mod limit_range;
pub mod model;
pub mod nodes;
mod of_kind;
pub mod owners;
pub mod packed_labels;
pub mod partial;
mod plugin;
mod policies;
pub mod quotas;
pub mod raw;
pub mod read_model;
pub mod relist;
pub mod report;
pub mod revision;
pub mod service_accounts;
mod sidecarset;
pub mod storage_classes;
pub mod version;
pub mod while_read;

pub use limit_range::ClusterLimitRangeResource;
pub(crate) use of_kind::resource_of_kind;
pub use plugin::AdmissionPluginResource;
pub use sidecarset::SidecarSetResource;
