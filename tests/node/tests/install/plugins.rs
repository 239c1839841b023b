//! AdmissionPlugins, whose webhook entries exist only while a plugin needs them.

use node::Node;

use crate::creates;
use crate::serving::kubectl;
use crate::workloads::{step, try_create_service};

const PLUGIN: &str = "
apiVersion: policy.outrider.dev/v1alpha1
kind: AdmissionPlugin
metadata: {name: no-external-ips}
spec: {plugin: DenyServiceExternalIPs}
";

const OBJECT: &str = "admissionplugin/no-external-ips";

/// How often the first plugin is created, and the last deleted.
const ROUNDS: usize = 3;

/// From no plugin to the first, and back: no service fails meanwhile, and the status says what is so.
pub fn come_and_go(node: &Node) {
    creates::no_service_fails_while(node, || {
        for _ in 0..ROUNDS {
            step("a plugin Programmed", || come(node));
            step("its entry withdrawn", || go(node));
        }
    });
}

fn come(node: &Node) {
    assert_eq!(entry(node), "");
    node.cluster().kubectl_ok(&["apply", "-f", "-"], Some(PLUGIN)).unwrap();
    kubectl(node, &["wait", "--for=condition=Programmed", OBJECT, "--timeout=60s"]);
    assert!(
        entry(node).starts_with("denyserviceexternalips.policy.outrider.dev LS0t"),
        "with a caBundle: {}",
        entry(node)
    );
    let refused = || {
        let answer = try_create_service(node, ", externalIPs: [192.0.2.1]");
        Ok((!answer.as_ref().is_err_and(|error| error.contains("externalIPs"))).then(|| format!("{answer:?}")))
    };
    // The API server's own watch brings it the entry.
    node.cluster().wait_for("services with external addresses to be refused", refused).unwrap();
}

fn go(node: &Node) {
    kubectl(node, &["delete", OBJECT]);
    let withdrawn = || Ok(Some(entry(node)).filter(|entry| !entry.is_empty()));
    node.cluster().wait_for("the entry to be withdrawn", withdrawn).unwrap();
    let allowed = || Ok(try_create_service(node, ", externalIPs: [192.0.2.1]").err());
    node.cluster().wait_for("services with external addresses to be allowed", allowed).unwrap();
}

/// Name and caBundle of the entries that validate on demand.
fn entry(node: &Node) -> String {
    let fields = "-o=jsonpath={range .webhooks[*]}{.name} {.clientConfig.caBundle}{end}";
    kubectl(node, &["get", "validatingwebhookconfiguration", "outrider-on-demand-validating", fields])
}
