//! What is read from a cluster before it is examined.

use std::collections::BTreeMap;

use engine::plugins::api::PluginStatus;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::doctor::access::Right;
use crate::doctor::definition::FoundDefinition;
use crate::doctor::guard::GuardFacts;
use crate::doctor::replica::ReplicaPod;
use crate::names::{MUTATING, VALIDATING};
use crate::watch::resource_of_kind;

/// Objects of a cluster, and what was tried on it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// The namespace that Outrider runs in.
    pub namespace: String,
    /// The `MutatingWebhookConfigurations` of every operator.
    pub mutating: Vec<MutatingWebhookConfiguration>,
    /// The `ValidatingWebhookConfigurations` of every operator.
    pub validating: Vec<ValidatingWebhookConfiguration>,
    /// The Services that they name, as far as they exist.
    pub services: Vec<Service>,
    /// The endpoints of these Services.
    pub endpoint_slices: Vec<EndpointSlice>,
    /// The namespaces of these Services, kube-system and kube-node-lease.
    pub namespaces: Vec<Namespace>,
    /// Namespaces that are excluded by a label whose value reads as if they were not.
    pub excluded_by_no: Vec<Namespace>,
    /// Every custom resource definition of the cluster, as far as its conversion goes.
    pub definitions: Vec<FoundDefinition>,
    /// Our custom resource definitions, as far as they exist.
    pub crds: Vec<CustomResourceDefinition>,
    /// Our pods.
    pub pods: Vec<ReplicaPod>,
    /// The Secret of our own authority, where there is one.
    pub ca_secret: Option<Secret>,
    /// The Secret that the pods mount with the serving certificate, where there is one.
    pub serving_secret: Option<Secret>,
    /// What a TLS handshake with each webhook gave, by [`ConfigurationEntry::key`](crate::doctor::entries::ConfigurationEntry::key).
    pub handshakes: BTreeMap<String, Handshake>,
    /// What converters that are trusted answered, where it was no conversion, by the same key: the end of a sentence about them.
    pub unconverted: BTreeMap<String, String>,
    /// What the process may do.
    pub rights: Vec<Right>,
    /// The policies about the service account; absent where that is not known, or they may not be read.
    pub guard: Option<GuardFacts>,
    /// Objects of each kind whose conditions are examined, by the name of the kind.
    pub objects: BTreeMap<String, Vec<ExaminedObject>>,
    /// Annotations of namespaces that plugins cannot read.
    pub unreadable_annotations: Vec<UnreadableAnnotation>,
    /// Pods that say more about sets than the leader keeps.
    pub clipped_pods: ClippedPods,
    /// What could not be read.
    pub not_checked: Vec<NotChecked>,
}

/// Pods that say more about sets than the leader keeps of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClippedPods {
    /// How many there are.
    pub count: usize,
    /// The first, by namespace and name.
    pub first: Vec<String>,
}

/// An object of which the conditions are examined.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ExaminedObject {
    /// Name and generation.
    pub metadata: ObjectMeta,
    /// What is asked for; which fields it has depends on the kind.
    pub spec: Value,
    /// What the leader found. Every kind that is examined has these fields.
    pub status: Option<PluginStatus>,
}

resource_of_kind!(ExaminedObject: DynamicObject);

/// An annotation of a namespace that admission plugins read, and cannot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UnreadableAnnotation {
    /// Name of the namespace.
    pub namespace: String,
    /// Key of the annotation.
    pub key: String,
    /// Why it cannot be read.
    pub why: String,
}

/// What a TLS handshake gave, with the webhook's caBundle as the only trust.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Handshake {
    /// The certificate is trusted.
    Trusted {
        /// When the certificate ends.
        #[serde(rename = "notAfter")]
        not_after: Timestamp,
    },
    /// The certificate is not trusted, and why.
    Untrusted(String),
    /// The certificate is not for the name that is asked for: the end of a sentence about it.
    Misnamed(String),
    /// There is no connection from here to the webhook's URL, and why.
    Unreachable(String),
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotChecked {
    /// The object or list that could not be read.
    pub what: String,
    /// The API server's message.
    pub why: String,
    /// Whether nothing can be reported about the cluster without it.
    pub essential: bool,
}

impl Facts {
    /// The Service of this name.
    pub fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        let here = |service: &&Service| {
            service.metadata.name.as_deref() == Some(name) && service.metadata.namespace.as_deref() == Some(namespace)
        };
        self.services.iter().find(here)
    }

    /// The namespace's labels, with the one that every namespace carries where it was not read.
    pub fn namespace_labels(&self, name: &str) -> BTreeMap<String, String> {
        let found = self.namespaces.iter().find(|namespace| namespace.metadata.name.as_deref() == Some(name));
        let mut labels = found.and_then(|namespace| namespace.metadata.labels.clone()).unwrap_or_default();
        labels.insert(engine::sidecarset::compiled::NAMESPACE_NAME_LABEL.to_owned(), name.to_owned());
        labels
    }

    /// Whether anything of Outrider is in the cluster, or may be.
    pub fn has_outrider(&self) -> bool {
        let is = |metadata: &ObjectMeta, name: &str| metadata.name.as_deref() == Some(name);
        self.mutating.iter().any(|configuration| is(&configuration.metadata, MUTATING))
            || self.validating.iter().any(|configuration| is(&configuration.metadata, VALIDATING))
            || !self.crds.is_empty()
            || !self.pods.is_empty()
            || !self.not_checked.is_empty()
    }

    /// Whether Outrider was installed and was removed: no webhook and no pod is left, but some of what an uninstall keeps.
    pub fn is_uninstalled(&self) -> bool {
        let is = |metadata: &ObjectMeta, name: &str| metadata.name.as_deref() == Some(name);
        let is_asked = self.mutating.iter().any(|configuration| is(&configuration.metadata, MUTATING))
            || self.validating.iter().any(|configuration| is(&configuration.metadata, VALIDATING));
        let unknown =
            ["mutatingwebhookconfigurations", "validatingwebhookconfigurations", "pods", "customresourcedefinitions"];
        !is_asked && self.pods.is_empty() && !self.crds.is_empty() && !unknown.iter().any(|what| self.lacks(what))
    }

    /// Whether the cluster has the custom resource definition of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.definitions.iter().any(|definition| definition.metadata.name.as_deref() == Some(name))
    }

    /// Whether this could not be read.
    pub fn lacks(&self, what: &str) -> bool {
        self.not_checked.iter().any(|missing| missing.what == what)
    }
}
