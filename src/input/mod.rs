//! Manifests from files. What is in them is read by [`engine::offline::manifest`].

mod files;
mod kustomize;
mod load;

#[cfg(test)]
mod load_tests;

pub use engine::offline::manifest::{
    Error, Identity, IdentityError, Manifest, group, identity, is_template, parse, pod_template,
};
pub use files::{Fingerprint, fingerprint};
pub use kustomize::kustomize;
pub use load::{STDIN, load, load_or_stdin, load_readable_or_stdin, name};
