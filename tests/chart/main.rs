//! The Helm chart and the kustomize tree: what they render, whether a real API server takes it, and what a release does.
//!
//! `values` needs nothing; the rest needs helm, kubectl and Kubernetes binaries, therefore ignored by default: `make test-cluster`
//! runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alerts;
mod cluster_objects;
mod helm;
mod kustomize;
mod release;
mod render;
mod values;
