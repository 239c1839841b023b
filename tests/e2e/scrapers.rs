//! `--metrics-secure`: metrics for those whom the API server allows.

use std::process::Command;

use cluster::Cluster;

use crate::process::{Outrider, eventually};
use crate::replicas::small_cluster;

const READER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]
";

/// What the chart adds to the rights of the process.
const REVIEWER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reviewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: outrider, namespace: outrider-system}]
";

/// Status and body.
fn scrape(process: &Outrider, token: Option<&str>) -> (String, String) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--insecure", "--write-out", "%{stderr}%{http_code}"]);
    if let Some(token) = token {
        curl.args(["--header", &format!("Authorization: Bearer {token}")]);
    }
    let output = curl.arg(format!("https://{}/metrics", process.metrics_address())).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn apply(cluster: &Cluster, manifest: &str) {
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(manifest)).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn metrics_are_for_those_whom_the_api_server_allows() {
    let (cluster, account) = small_cluster();
    apply(&cluster, REVIEWER);
    let process = Outrider::start(&cluster, &account, &["--certificates=self", "--metrics-secure"]);
    process.ready();
    cluster.kubectl_ok(&["create", "serviceaccount", "prometheus", "-n=default"], None).unwrap();
    let token = cluster.kubectl_ok(&["create", "token", "prometheus", "-n=default"], None).unwrap();
    let token = token.trim();
    for (sent, status, said) in [
        (None, "401", "Authorization: Bearer"),
        (Some("made-up"), "401", "does not know this token"),
        (Some(token), "403", "may not get /metrics"),
    ] {
        let (found, body) = scrape(&process, sent);
        assert!(found == status && body.contains(said), "{sent:?}: {found} {body}");
    }
    apply(&cluster, READER);
    eventually("its bearer may", || scrape(&process, Some(token)).0 == "200");
    assert!(scrape(&process, Some(token)).1.contains("outrider_ready 1"));
    assert_eq!(scrape(&process, None).0, "401", "what one may, another may not");
}
