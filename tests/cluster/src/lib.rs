//! A real Kubernetes control plane on loopback for tests, and for a person to play with.
//!
//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok (which plays the kubelets) are built once with
//! `go build` into a cache outside the checkout and started on free ports, with a throw-away certificate authority and
//! data directory. Nothing needs root or a container engine, and nothing outlives the process that started it, also when
//! that process is killed.
//!
//! ```no_run
//! use cluster::Cluster;
//!
//! let cluster = Cluster::shared().unwrap();
//! let namespace = cluster.namespace("greeting").unwrap();
//! namespace.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}").unwrap();
//! assert_eq!(namespace.kubectl(&["get", "configmap", "hello", "-o", "name"], None).unwrap().stdout, "configmap/hello\n");
//! ```

pub mod background;
mod certificates;
mod component;
mod control_plane;
mod error;
mod kubectl;
mod memory_group;
mod namespace;
mod network;
mod ports;
mod tools;

pub use certificates::Credentials;
pub use component::SUPERVISOR;
pub use control_plane::{Cluster, Options, POD_CHANGES};
pub use error::Error;
pub use kubectl::Output;
pub use memory_group::MemoryGroup;
pub use namespace::Namespace;
pub use network::{in_own_network, one_passed};
pub use ports::free_port;
pub use tools::{Progress, Tools, progress_on_stderr};
