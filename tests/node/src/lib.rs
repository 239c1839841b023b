//! A whole Kubernetes node on this machine, for tests that install Outrider as a user would, and for people (`make node`).
//!
//! The control plane is that of the crate `cluster`; beside it run kubelet, containerd, kube-proxy and cert-manager's
//! controllers, and pods are real processes with addresses of their own. [`isolated`] gives all of it network, mount and
//! process namespaces that end with the test: nothing of it is seen from outside, and nothing stays behind.
//!
//! Needs root, Linux and a few Debian packages: see [`REQUIRED`].

// This is test code; who calls it can do nothing but fail.
#![allow(clippy::expect_used, clippy::panic)]

mod groups;
mod host;
mod images;
mod isolation;
mod node;
mod settings;
mod visit;

pub use images::{APP, Image, NEXT_APP};
pub use isolation::{isolated, isolated_program};
pub use node::Node;
pub use visit::Visit;

/// Programs that must be in `PATH`, and the Debian packages that bring them.
pub const REQUIRED: [(&str, &str); 8] = [
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("buildah", "buildah"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
];
