//! Kinds whose objects lie in namespaces, and kinds whose objects lie in the cluster, through one interface.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, ResourceScope};
use kube::{Api, Client, Resource};

/// Where the objects of a kind lie, at compile time.
pub trait Scoped: ResourceScope + Send + Sync + 'static {
    /// Whether they lie in namespaces.
    const NAMESPACED: bool;

    /// The objects in this namespace; of a kind without namespaces all of them.
    fn within<K: Resource<DynamicType = (), Scope = Self>>(client: Client, namespace: &str) -> Api<K>;
}

impl Scoped for NamespaceResourceScope {
    const NAMESPACED: bool = true;

    fn within<K: Resource<DynamicType = (), Scope = Self>>(client: Client, namespace: &str) -> Api<K> {
        Api::namespaced(client, namespace)
    }
}

impl Scoped for ClusterResourceScope {
    const NAMESPACED: bool = false;

    fn within<K: Resource<DynamicType = (), Scope = Self>>(client: Client, _: &str) -> Api<K> {
        Api::all(client)
    }
}

/// The objects of a kind in this namespace; of a kind without namespaces all of them.
pub fn within<K: Resource<DynamicType = (), Scope: Scoped>>(client: Client, namespace: &str) -> Api<K> {
    K::Scope::within(client, namespace)
}
