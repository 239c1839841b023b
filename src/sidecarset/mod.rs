//! The kind `SidecarSet` in the process: its definition and its controller. What a set is and does is in
//! [`engine::sidecarset`].

pub mod controller;
pub mod crd;
