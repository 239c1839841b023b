//! The Deployment of a `SimpleDeployment`. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, ContainerPort};
use kube::ResourceExt as _;

use super::api::SimpleDeployment;
use crate::workshop::owned;

const NAME_LABEL: &str = "app.kubernetes.io/name";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// The Deployment, with pods of this image.
pub fn deployment(simple: &SimpleDeployment, image: &str) -> Deployment {
    owned::deployment(simple, selector_labels(simple), simple.spec.replicas(), container(image))
}

fn container(image: &str) -> Container {
    let port = ContainerPort { container_port: 80, protocol: Some("TCP".to_owned()), ..ContainerPort::default() };
    Container {
        name: "nginx".to_owned(),
        image: Some(image.to_owned()),
        ports: Some(vec![port]),
        ..Container::default()
    }
}

fn selector_labels(simple: &SimpleDeployment) -> BTreeMap<String, String> {
    BTreeMap::from([
        (NAME_LABEL.to_owned(), SimpleDeployment::NAME.to_owned()),
        (INSTANCE_LABEL.to_owned(), simple.name_any()),
    ])
}

/// The selector of the pods as text.
pub fn selector(simple: &SimpleDeployment) -> String {
    let pairs: Vec<String> = selector_labels(simple).iter().map(|(label, value)| format!("{label}={value}")).collect();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_deployment_has_the_replicas_asked_for_and_belongs_to_its_object() {
        let metadata = json!({"name": "s1", "namespace": "n", "uid": "u"});
        let simple =
            |spec| -> SimpleDeployment { serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap() };
        let labels = json!({"app.kubernetes.io/name": "simpledeployment", "app.kubernetes.io/instance": "s1"});
        let mut all_labels = labels.clone();
        all_labels["app.kubernetes.io/managed-by"] = json!("outrider");
        let wanted = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "s1", "namespace": "n", "labels": all_labels,
                "ownerReferences": [{"apiVersion": "apps.outrider.dev/v1", "kind": "SimpleDeployment", "name": "s1",
                    "uid": "u", "controller": true, "blockOwnerDeletion": true}]},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "nginx", "image": "nginx:1",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}]}]},
                },
            },
        });
        assert_eq!(json!(deployment(&simple(json!({})), "nginx:1")), wanted);
        assert_eq!(json!(deployment(&simple(json!({"replicas": 0})), "nginx:1"))["spec"]["replicas"], 0);
        let text = "app.kubernetes.io/instance=s1,app.kubernetes.io/name=simpledeployment";
        assert_eq!(selector(&simple(json!({}))), text);
    }
}
