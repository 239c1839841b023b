//! Serving certificates: where they come from, and how the listener gets the newest without a restart.
//!
//! The listener asks a [`Resolver`] at every handshake. The owner of a certificate (a directory, an authority in memory, a Secret)
//! swaps it there, only after [`ServingPair::from_pem`] found it whole; so the last good pair stays until a better one is there.
//! In a cluster, [`ca_bundle`] has the API server trust an authority before anything of it is swapped in.

pub mod authority;
pub mod ca_bundle;
pub mod expiry;
pub mod files;
pub mod lifetimes;
pub mod local;
pub mod own;
pub mod pair;
pub mod resolver;
pub mod trust_anchor;
pub mod warnings;

pub use authority::Authority;
pub use pair::{PairError, ServingPair};
pub use resolver::Resolver;
