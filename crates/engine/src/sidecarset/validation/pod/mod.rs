//! What the API server would say about the containers and volumes, once they are in a pod.
//!
//! Rules and wording: `k8s.io/kubernetes/pkg/apis/core/validation` (1.36). Paths are those of the fields, also where the API
//! server points at the list around them. Left out is what depends on the pod: its grace period, its operating system, its
//! resource claims, whether the cluster allows privileged containers.

mod claim_template;
pub(super) mod containers;
mod env;
mod handlers;
mod iscsi;
mod mounts;
mod paths;
mod projections;
mod rare_sources;
mod resources;
mod security;
mod volumes;
mod windows;

pub use env::check_field_ref;

use std::collections::HashMap;

use admission::field::ErrorList;
use serde_json::Value;

use super::node::Node;
use super::shape;

pub use resources::{check as check_resources, check_amount};

/// Volumes by name.
type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// Checks variables and mounts of `entry` as parts of a container in a pod with the volumes of `spec`.
pub fn check_additions(entry: &Node<'_>, spec: &Node<'_>, errors: &mut ErrorList) {
    // What is wrong with the volumes themselves is said once.
    let volumes = volumes::check(&spec.child("volumes"), &mut ErrorList::new());
    env::check_env(&entry.child("env"), &volumes, errors);
    mounts::check(entry, &volumes, errors);
}

/// Checks the containers, init containers and volumes of `spec` as parts of a pod.
pub fn check(spec: &Node<'_>, errors: &mut ErrorList) {
    let volumes = volumes::check(&spec.child("volumes"), errors);
    containers::check(&spec.child("containers"), &volumes, errors);
    containers::check_init(&spec.child("initContainers"), &volumes, errors);
}
