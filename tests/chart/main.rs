//! The Helm chart and the kustomize tree: what they render, whether a real API server takes it, and what a release does.
//!
//! `values` and `served` need nothing; most of the rest needs helm, kubectl, promtool and Kubernetes binaries, therefore ignored by default: `make test-cluster`
//! runs it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alerts;
mod cluster_objects;
mod dashboard;
mod helm;
mod kustomize;
mod names;
mod promtool;
mod refusals;
mod release;
mod render;
mod served;
mod values;
