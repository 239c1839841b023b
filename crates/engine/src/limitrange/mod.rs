//! `ClusterLimitRange`: the API server's plugin `LimitRanger` for many namespaces at once, as in Kubernetes 1.36
//! (`k8s.io/kubernetes/plugin/pkg/admission/limitranger`).
//!
//! A namespace's own `LimitRange` goes first, in the API server: what it filled in is there already, and only what is still missing is
//! filled in here.

pub mod api;
pub mod bounds;
pub mod compiled;
pub mod defaults;
pub mod endpoints;
pub mod faults;
pub mod judgement;
pub mod validation;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
