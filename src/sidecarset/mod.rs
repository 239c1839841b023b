//! `SidecarSet`: sidecars for every pod that a selector matches.

pub mod api;
pub mod canonical;
pub mod compiled;
pub mod crd;
pub mod index;
pub mod injection;
pub mod needs;
pub mod defaults;
pub mod vocabulary;

#[cfg(test)]
mod test_objects;
