//! Where the API server has SidecarSets, for clients and watches.

use engine::sidecarset::api::{GROUP, KIND, PLURAL, VERSION};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A SidecarSet as clients address it. Only metadata is decoded; [`SidecarSet`](engine::sidecarset::api::SidecarSet) is the
/// whole object, in a crate that knows no client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SidecarSetResource {
    /// Name, labels, annotations.
    pub metadata: ObjectMeta,
}

impl k8s_openapi::Resource for SidecarSetResource {
    const API_VERSION: &'static str = engine::sidecarset::api::API_VERSION;
    const GROUP: &'static str = GROUP;
    const KIND: &'static str = KIND;
    const VERSION: &'static str = VERSION;
    const URL_PATH_SEGMENT: &'static str = PLURAL;
    type Scope = ClusterResourceScope;
}

impl k8s_openapi::Metadata for SidecarSetResource {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::SidecarSetResource;
    use crate::API_DOMAIN;

    #[test]
    fn group_is_a_subdomain_of_the_one_domain() {
        assert_eq!(SidecarSetResource::api_version(&()), format!("apps.{API_DOMAIN}/v1alpha1"));
        assert_eq!(SidecarSetResource::group(&()), format!("apps.{API_DOMAIN}"));
        let path = SidecarSetResource::url_path(&(), None);
        assert_eq!(path, format!("/apis/apps.{API_DOMAIN}/v1alpha1/sidecarsets"));
    }
}
