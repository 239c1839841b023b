//! Outrider from the kustomize tree, as `make deploy` installs it.

use node::Node;

use crate::serving::kubectl;
use crate::workloads::step;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Deploys it and waits for its pods.
pub fn deploy(node: &Node) {
    step("make deploy: all pods Ready", || {
        make(node, "deploy");
        kubectl(node, &["rollout", "status", "deployment/outrider", "--timeout=120s"]);
    });
}

/// Takes it away, with everything that it brought.
pub fn undeploy(node: &Node) {
    step("make undeploy", || make(node, "undeploy"));
    let cluster_wide = "namespaces,mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,\
                        clusterrolebindings,customresourcedefinitions";
    let names = kubectl(node, &["get", cluster_wide, "--output=name"]);
    let left: Vec<&str> = names.lines().filter(|name| name.contains("outrider")).collect();
    assert!(left.is_empty(), "{left:#?}");
}

fn make(node: &Node, target: &str) {
    let cluster = node.cluster();
    let kubectl = format!("KUBECTL={}", cluster.tools().program("kubectl").display());
    let mut make = cluster.command("make");
    make.args(["--no-print-directory", "-C", ROOT, target, "IMG=localhost/outrider:test", &kubectl]);
    // Not those of the `make` that runs this test.
    make.env_remove("MAKEFLAGS").env_remove("MAKEOVERRIDES");
    let output = make.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make {target}: {}{printed}", String::from_utf8_lossy(&output.stdout));
}
