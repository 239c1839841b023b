//! Owner references: which object controls which.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt as _};

use super::Key;
use super::scope::Scoped;

/// The reference that makes `owner` the controller of an object. The object goes with it, and before it where the deletion is a
/// foreground one. None for an owner that is not stored yet.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// The uid of an object's controller.
pub(super) fn controller_uid(object: &impl Resource) -> Option<&str> {
    let owners = object.owner_references().iter();
    owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str()).next()
}

/// The key of the `K` that controls an object, if one does.
pub fn owner_key<K: Resource<DynamicType = (), Scope: Scoped>, C: Resource>(object: &C) -> Option<Key> {
    let mut owners = object.owner_references().iter();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    // Versions are no matter: an owner keeps its kind when its stored version changes.
    (owner.kind == K::kind(&()) && group == K::group(&())).then(|| {
        // An owner lies in the namespace of what it owns, or in none.
        let namespace = object.namespace().filter(|_| K::Scope::NAMESPACED).unwrap_or_default();
        Key { namespace, name: owner.name.clone() }
    })
}

/// Whether the object with this uid controls the other.
pub fn is_controlled_by(object: &impl Resource, uid: &str) -> bool {
    controller_uid(object) == Some(uid)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{Node, Pod};
    use serde_json::json;

    use super::*;

    fn pod(name: &str, owners: &serde_json::Value) -> Arc<Pod> {
        let metadata = json!({"namespace": "n", "name": name, "ownerReferences": owners});
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    #[test]
    fn an_owner_without_a_namespace_is_found_from_any_namespace() {
        let pod = pod("p", &owner("v1", "Node", "1", true));
        assert_eq!(owner_key::<Node, Pod>(&pod), Some(Key { namespace: String::new(), name: "o".to_owned() }));
    }

    fn owner(api_version: &str, kind: &str, uid: &str, controller: bool) -> serde_json::Value {
        json!([{"apiVersion": api_version, "kind": kind, "name": "o", "uid": uid, "controller": controller}])
    }

    #[test]
    fn an_owner_is_found_by_group_and_kind_and_must_be_the_controller() {
        let key = Some(Key { namespace: "n".to_owned(), name: "o".to_owned() });
        for (owners, replica_set) in [
            (owner("apps/v1", "ReplicaSet", "1", true), key.clone()),
            (owner("apps/v2", "ReplicaSet", "1", true), key),
            (owner("apps/v1", "ReplicaSet", "1", false), None),
            (owner("other/v1", "ReplicaSet", "1", true), None),
            (owner("v1", "ReplicaSet", "1", true), None),
            (json!([]), None),
        ] {
            let pod = pod("p", &owners);
            assert_eq!(owner_key::<ReplicaSet, Pod>(&pod), replica_set, "{owners}");
            assert_eq!(owner_key::<Deployment, Pod>(&pod), None, "{owners}");
        }
    }
}
