//! A `CustomResourceDefinition` of one version, written from code so that it cannot lag behind the types.

pub mod schema;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What a resource of one version consists of.
pub struct Definition {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// In camel case, as manifests have it.
    pub kind: &'static str,
    /// The plural in URLs.
    pub plural: &'static str,
    /// Whether its objects lie in namespaces.
    pub scope: Scope,
    /// The whole object.
    pub schema: JSONSchemaProps,
    /// Columns of `kubectl get` between the name and the age.
    pub columns: Vec<CustomResourceColumnDefinition>,
    /// The sub-resource that `kubectl scale` and autoscalers use.
    pub scale: Option<CustomResourceSubresourceScale>,
}

/// Where the objects of a resource lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster.
    Cluster,
}

impl Definition {
    /// The definition, with the sub-resource `status` and a column for the age, if there is none.
    pub fn into_crd(mut self) -> CustomResourceDefinition {
        if self.columns.iter().all(|column| column.name != "Age") {
            let description = "Time since the object was created.";
            self.columns.push(schema::column("Age", "date", ".metadata.creationTimestamp", description));
        }
        let status = CustomResourceSubresourceStatus(serde_json::Value::Object(serde_json::Map::new()));
        let version = CustomResourceDefinitionVersion {
            name: self.version.to_owned(),
            served: true,
            storage: true,
            schema: Some(CustomResourceValidation { open_api_v3_schema: Some(self.schema) }),
            subresources: Some(CustomResourceSubresources { status: Some(status), scale: self.scale }),
            additional_printer_columns: Some(self.columns),
            ..CustomResourceDefinitionVersion::default()
        };
        CustomResourceDefinition {
            metadata: ObjectMeta { name: Some(format!("{}.{}", self.plural, self.group)), ..ObjectMeta::default() },
            spec: CustomResourceDefinitionSpec {
                group: self.group.to_owned(),
                scope: format!("{:?}", self.scope),
                names: CustomResourceDefinitionNames {
                    kind: self.kind.to_owned(),
                    list_kind: Some(format!("{}List", self.kind)),
                    plural: self.plural.to_owned(),
                    singular: Some(self.kind.to_lowercase()),
                    ..CustomResourceDefinitionNames::default()
                },
                versions: vec![version],
                ..CustomResourceDefinitionSpec::default()
            },
            ..CustomResourceDefinition::default()
        }
    }
}
