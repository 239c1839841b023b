//! Outrider as a release of the chart.

use node::Node;

use crate::serving::{CONFIGURATIONS, NAMESPACE, kubectl};
use crate::workloads::step;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/outrider");
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
        kubectl(self.0, &["label", "namespace", NAMESPACE, &label]);
    }

    pub fn install(&self, settings: &[&str]) {
        step("helm install: all pods Ready", || self.helm("install", settings));
    }

    /// The next steps in the notes of the chart.
    pub fn test(&self) {
        step("helm test", || self.must_succeed(&["test", "outrider", "--namespace", NAMESPACE, "--timeout=90s"]));
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

    /// Nothing of the chart is left but the definitions, which it keeps, and the namespace can be deleted.
    pub fn uninstall(&self) {
        step("helm uninstall", || {
            self.must_succeed(&["uninstall", "outrider", "--namespace", NAMESPACE, "--wait", "--timeout=120s"]);
        });
        let resources = kubectl(self.0, &["api-resources", "--verbs=list", "--output=name"]);
        let resources: Vec<&str> = resources.lines().filter(|name| !name.starts_with("events")).collect();
        let list = ["get", &resources.join(","), "--all-namespaces", LABEL, "--output=name", "--ignore-not-found"];
        // Helm keeps the definitions, and with them the objects.
        let definitions = "customresourcedefinition.apiextensions.k8s.io/admissionplugins.policy.outrider.dev\n\
             customresourcedefinition.apiextensions.k8s.io/clusterlimitranges.policy.outrider.dev\n\
             customresourcedefinition.apiextensions.k8s.io/podsecurityprofiles.policy.outrider.dev\n\
             customresourcedefinition.apiextensions.k8s.io/sidecarsets.apps.outrider.dev";
        self.0.cluster().wait_for_kubectl("the release to be gone", &list, definitions).unwrap();
        assert_eq!(kubectl(self.0, &["get", CONFIGURATIONS, "--output=name"]), "");
        step("its namespace deleted", || kubectl(self.0, &["delete", "namespace", NAMESPACE, "--timeout=90s"]));
    }
}
