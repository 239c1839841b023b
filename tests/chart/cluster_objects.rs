//! What others bring into a cluster, as far as these tests need it.

use cluster::Cluster;
use serde_json::json;

/// Kinds of cert-manager and of the Prometheus operator, whatever their objects say.
pub fn install_definitions(cluster: &Cluster, group: &str, kinds: &[(&str, &str)]) {
    for (plural, kind) in kinds {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        cluster.kubectl_ok(&["apply", "-f", "-"], Some(&definition.to_string())).unwrap();
    }
    cluster.wait_for_definitions().unwrap();
}

/// cert-manager's kinds.
pub fn install_cert_manager(cluster: &Cluster) {
    install_definitions(cluster, "cert-manager.io", &[("issuers", "Issuer"), ("certificates", "Certificate")]);
}

/// The Prometheus operator's kinds.
pub fn install_prometheus_operator(cluster: &Cluster) {
    let kinds = [("servicemonitors", "ServiceMonitor"), ("prometheusrules", "PrometheusRule")];
    install_definitions(cluster, "monitoring.coreos.com", &kinds);
}
