//! `SidecarSet`: sidecars for every pod that a selector matches.

pub mod api;
pub mod crd;
pub mod vocabulary;
