//! Backends that review images (`ImageReview` of `imagepolicy.k8s.io/v1alpha1`): how they are reached, what they said, and for how long
//! it counts.

mod backends;
mod cache;
mod exchange;
pub mod kubeconfig;

pub use self::backends::{BackendChanges, BackendState, ImageBackends};
