//! `SidecarSet`: sidecars for every pod that a selector matches.

pub mod api;
