//! The Deployment and the Service of a Welcome. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, ResourceRequirements, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use super::api::Welcome;
use crate::workshop::owned;

const SELECTOR_LABEL: &str = "welcome";
const PORT: i32 = 8080;
const PORT_NAME: &str = "http";

/// The Deployment of the web server, with this image.
pub fn deployment(welcome: &Welcome, image: &str) -> Deployment {
    owned::deployment(welcome, selector_labels(welcome), 1, container(welcome, image))
}

fn container(welcome: &Welcome, image: &str) -> Container {
    let requests =
        [("cpu", "100m"), ("memory", "64Mi")].map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    Container {
        name: "welcome".to_owned(),
        image: Some(image.to_owned()),
        env: Some(vec![EnvVar {
            name: "NAME".to_owned(),
            value: Some(welcome.spec.name().to_owned()),
            ..EnvVar::default()
        }]),
        ports: Some(vec![ContainerPort {
            container_port: PORT,
            name: Some(PORT_NAME.to_owned()),
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        resources: Some(ResourceRequirements { requests: Some(requests.into()), ..ResourceRequirements::default() }),
        ..Container::default()
    }
}

/// The Service in front of it.
pub fn service(welcome: &Welcome) -> Service {
    Service {
        metadata: owned::metadata(welcome, selector_labels(welcome)),
        spec: Some(ServiceSpec {
            type_: Some("LoadBalancer".to_owned()),
            selector: Some(selector_labels(welcome)),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port: PORT,
                protocol: Some("TCP".to_owned()),
                target_port: Some(IntOrString::String(PORT_NAME.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn selector_labels(welcome: &Welcome) -> BTreeMap<String, String> {
    BTreeMap::from([(SELECTOR_LABEL.to_owned(), welcome.name_any())])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn welcome(name: Option<&str>) -> Welcome {
        let metadata = json!({"name": "w1", "namespace": "n", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"name": name}})).unwrap()
    }

    fn metadata() -> Value {
        json!({
            "name": "w1",
            "namespace": "n",
            "labels": {"welcome": "w1", "app.kubernetes.io/managed-by": "outrider"},
            "ownerReferences": [{"apiVersion": "webapp.outrider.dev/v1", "kind": "Welcome", "name": "w1", "uid": "u",
                "controller": true, "blockOwnerDeletion": true}],
        })
    }

    #[test]
    fn the_deployment_greets_by_an_environment_variable() {
        let wanted = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(),
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"welcome": "w1"}},
                "template": {
                    "metadata": {"labels": {"welcome": "w1"}},
                    "spec": {"containers": [{
                        "name": "welcome", "image": "greeter:1", "env": [{"name": "NAME", "value": "world"}],
                        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }]},
                },
            },
        });
        assert_eq!(json!(deployment(&welcome(None), "greeter:1")), wanted);
        let kim = json!(deployment(&welcome(Some("kim")), "greeter:1"));
        assert_eq!(kim["spec"]["template"]["spec"]["containers"][0]["env"], json!([{"name": "NAME", "value": "kim"}]));
    }

    #[test]
    fn the_service_finds_the_port_by_its_name_and_does_not_depend_on_who_is_greeted() {
        let wanted = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(),
            "spec": {
                "type": "LoadBalancer", "selector": {"welcome": "w1"},
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "targetPort": "http"}],
            },
        });
        assert_eq!(json!(service(&welcome(None))), wanted);
        assert_eq!(service(&welcome(None)), service(&welcome(Some("kim"))));
    }
}
