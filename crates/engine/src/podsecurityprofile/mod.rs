//! `PodSecurityProfile`: the API server's former plugin `PodSecurityPolicy`, as in Kubernetes 1.24
//! (`k8s.io/kubernetes/plugin/pkg/admission/security/podsecuritypolicy` and `k8s.io/kubernetes/pkg/security/podsecuritypolicy`).
//!
//! A profile says what a pod must have and may have, and fills in what it leaves open. Who creates a pod, or the pod's service account,
//! needs the right to `use` a profile. One file for each group of strategies; [`judge`] puts them together, and [`choose`] finds the
//! profile of a pod.

pub mod api;
pub mod capabilities;
pub mod choose;
pub mod compiled;
pub mod context;
pub mod endpoints;
pub mod faults;
pub mod ids;
pub mod judge;
pub mod kernel;
pub mod pod;
pub mod profiles;
pub mod selinux;
pub mod validation;
pub mod volumes;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
