//! Outrider as a release of the chart.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use node::Node;

use crate::workloads::step;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/outrider");
const NAMESPACE: &str = "outrider-system";
/// What carries this label was made by the chart.
const LABEL: &str = "--selector=app.kubernetes.io/instance=outrider";

/// The release `outrider` on a node.
pub struct Release<'a>(&'a Node);

impl<'a> Release<'a> {
    /// One that is not installed yet, in a namespace that is there.
    pub fn new(node: &'a Node) -> Self {
        node.cluster().kubectl_ok(&["create", "namespace", NAMESPACE], None).unwrap();
        Self(node)
    }

    /// Has the API server enforce a level of pod security in its namespace.
    pub fn enforce(&self, level: &str) {
        let label = format!("pod-security.kubernetes.io/enforce={level}");
        self.kubectl(&["label", "namespace", NAMESPACE, &label]);
    }

    pub fn install(&self, settings: &[&str]) {
        step("helm install: all pods Ready", || self.helm("install", settings));
    }

    pub fn upgrade(&self, settings: &[&str]) {
        step("helm upgrade with a changed value", || self.helm("upgrade", settings));
    }

    fn helm(&self, command: &str, settings: &[&str]) {
        let image = "--set=image.repository=localhost/outrider,image.tag=test";
        let mut args = vec![command, "outrider", CHART, "--namespace", NAMESPACE, "--wait", "--timeout=120s", image];
        args.extend(settings);
        self.must_succeed(&args);
    }

    fn must_succeed(&self, args: &[&str]) {
        let output = self.0.helm(args);
        assert!(output.status.success(), "helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// As `cmctl renew` does; every replica then serves the new certificate.
    pub fn renew_certificate(&self) {
        let before = self.certificates_end();
        let issuing = r#"[{"op": "add", "path": "/status/conditions/-", "value": {"type": "Issuing", "status": "True",
            "reason": "ManuallyTriggered", "message": "renewed by the test", "lastTransitionTime": "2026-01-01T00:00:00Z"}}]"#;
        step("cert-manager's new certificate served by every replica", || {
            let patch = format!("--patch={issuing}");
            self.kubectl(&["patch", "certificate", "outrider-webhook", "--subresource=status", "--type=json", &patch]);
            let renewed = || {
                let now = self.certificates_end();
                let new = now.iter().all(|end| before.iter().all(|old| end > old));
                Ok((!new).then(|| format!("before {before:?}, now {now:?}")))
            };
            self.0.cluster().wait_for("every replica to serve the new certificate", renewed).unwrap();
        });
    }

    /// When the certificate ends that each ready replica serves, by their metrics.
    fn certificates_end(&self) -> Vec<f64> {
        let ready = "-o=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}";
        let service = "--selector=kubernetes.io/service-name=outrider-webhook";
        let addresses = self.kubectl(&["get", "endpointslices", service, ready]);
        let end = |address: &str| {
            let metrics = get(address, 8080, "/metrics").unwrap_or_else(|error| panic!("{address}: {error}"));
            let line =
                metrics.lines().find(|line| line.starts_with("outrider_certificate_not_after_timestamp_seconds"));
            line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
        };
        addresses.split_whitespace().map(end).collect()
    }

    /// Nothing of the chart is left but the definitions, which it keeps, and the namespace can be deleted.
    pub fn uninstall(&self) {
        step("helm uninstall", || {
            self.must_succeed(&["uninstall", "outrider", "--namespace", NAMESPACE, "--wait", "--timeout=120s"]);
        });
        let resources = self.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
        let resources: Vec<&str> = resources.lines().filter(|name| !name.starts_with("events")).collect();
        let list = ["get", &resources.join(","), "--all-namespaces", LABEL, "--output=name", "--ignore-not-found"];
        let definition = "customresourcedefinition.apiextensions.k8s.io/sidecarsets.apps.outrider.dev";
        self.0.cluster().wait_for_kubectl("the release to be gone", &list, definition).unwrap();
        let configurations = ["get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "--output=name"];
        assert_eq!(self.kubectl(&configurations), "");
        step("its namespace deleted", || self.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=90s"]));
    }

    fn kubectl(&self, args: &[&str]) -> String {
        let mut all = vec!["--namespace", NAMESPACE];
        all.extend(args);
        self.0.cluster().kubectl_ok(&all, None).unwrap()
    }
}

/// Resident memory of its processes, now and at most, as the kernel counts it.
pub fn show_memory() {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    for process in processes.filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "outrider\n"))
    {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
        let lines: Vec<String> = lines.map(|line| line.replace('\t', " ")).collect();
        eprintln!("          memory of a replica: {}", lines.join(", "));
    }
}

/// The node reaches pods by their addresses.
fn get(address: &str, port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((address, port))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
