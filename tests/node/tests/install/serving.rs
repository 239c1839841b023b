//! The replicas of Outrider, however they were installed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use node::Node;

use crate::workloads::step;

/// Where they run.
pub const NAMESPACE: &str = "outrider-system";
/// What has the API server ask them.
pub const CONFIGURATIONS: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";

/// Asks cert-manager for a new certificate as `cmctl renew` does, and waits until every replica serves it.
pub fn renew_certificate(node: &Node) {
    let before = certificates_end(node);
    let issuing = r#"--patch=[{"op": "add", "path": "/status/conditions/-", "value": {"type": "Issuing", "status": "True",
        "reason": "ManuallyTriggered", "message": "renewed by the test", "lastTransitionTime": "2026-01-01T00:00:00Z"}}]"#;
    step("cert-manager's new certificate served by every replica", || {
        kubectl(node, &["patch", "certificate", "outrider-webhook", "--subresource=status", "--type=json", issuing]);
        let renewed = || {
            let now = certificates_end(node);
            let new = now.iter().all(|end| before.iter().all(|old| end > old));
            Ok((!new).then(|| format!("before {before:?}, now {now:?}")))
        };
        node.cluster().wait_for("every replica to serve the new certificate", renewed).unwrap();
    });
}

/// When the certificate ends that each ready replica serves, by their metrics.
fn certificates_end(node: &Node) -> Vec<f64> {
    let ready = "-o=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}";
    let service = "--selector=kubernetes.io/service-name=outrider-webhook";
    let addresses = kubectl(node, &["get", "endpointslices", service, ready]);
    let end = |address: &str| {
        let metrics = get(address, 8080, "/metrics").unwrap_or_else(|error| panic!("{address}: {error}"));
        let line = metrics.lines().find(|line| line.starts_with("outrider_certificate_not_after_timestamp_seconds"));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
    };
    let ends: Vec<f64> = addresses.split_whitespace().map(end).collect();
    assert_eq!(ends.len(), 2, "two replicas: {addresses}");
    ends
}

/// Every webhook trusts the authority of the certificate in the Secret, and Outrider wrote so.
pub fn ca_bundle_is_of_the_secret(node: &Node) {
    let authority = kubectl(node, &["get", "secret", "outrider-webhook-cert", r"-o=jsonpath={.data.ca\.crt}"]);
    let bundles = "-o=jsonpath={.items[*].webhooks[*].clientConfig.caBundle}";
    let bundles = kubectl(node, &["get", CONFIGURATIONS, bundles]);
    let bundles: Vec<&str> = bundles.split_whitespace().collect();
    assert!(
        !authority.is_empty() && bundles.len() > 1 && bundles.iter().all(|bundle| *bundle == authority),
        "{bundles:?}"
    );
    let managers = "-o=jsonpath={.items[*].metadata.managedFields[*].manager}";
    let managers = kubectl(node, &["get", CONFIGURATIONS, "--show-managed-fields", managers]);
    assert!(managers.contains("outrider-ca-bundle") && !managers.contains("cainjector"), "{managers}");
}

/// Resident memory of all processes of Outrider, now and at most, as the kernel counts it.
pub fn show_memory() {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let ours = processes.filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "outrider\n"));
    for process in ours {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
        let lines: Vec<String> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        // One that has ended and was not waited for yet has none.
        if !lines.is_empty() {
            eprintln!("          memory of a replica: {}", lines.join(", "));
        }
    }
}

/// kubectl in their namespace.
pub fn kubectl(node: &Node, args: &[&str]) -> String {
    let mut all = vec!["--namespace", NAMESPACE];
    all.extend(args);
    node.cluster().kubectl_ok(&all, None).unwrap()
}

/// The node reaches pods by their addresses.
pub fn get(address: &str, port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((address, port))?;
    // In one write: the program of the test's pods reads once, and a connection that is closed with something unread is reset.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
