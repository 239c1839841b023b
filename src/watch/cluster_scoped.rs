//! Kinds of ours as clients name them.

use engine::sidecarset::api::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The metadata that decisions and controllers read of an object, but for labels and annotations.
pub(super) fn partial(metadata: ObjectMeta) -> Metadata {
    Metadata {
        name: metadata.name,
        uid: metadata.uid,
        generation: metadata.generation,
        deletion_timestamp: metadata.deletion_timestamp.map(|time| time.0.to_string()),
        ..Metadata::default()
    }
}

/// Makes a type with `metadata` a cluster-scoped resource that has the names of a module of the engine.
macro_rules! cluster_scoped {
    ($type:ty, $names:ident) => {
        impl k8s_openapi::Resource for $type {
            const API_VERSION: &'static str = $names::API_VERSION;
            const GROUP: &'static str = $names::GROUP;
            const KIND: &'static str = $names::KIND;
            const VERSION: &'static str = $names::VERSION;
            const URL_PATH_SEGMENT: &'static str = $names::PLURAL;
            type Scope = k8s_openapi::ClusterResourceScope;
        }

        impl k8s_openapi::Metadata for $type {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

pub(super) use cluster_scoped;
