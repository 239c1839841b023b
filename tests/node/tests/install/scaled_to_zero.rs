//! `webhook.failOpenWhenScaledToZero`.

use node::Node;

use crate::creates;
use crate::serving::{CONFIGURATIONS, kubectl};
use crate::workloads::{step, try_create};

/// Nothing is refused, neither on the way down nor on the way up. `upgrade` is done meanwhile.
pub fn pods_pass_without_a_companion_while_nobody_serves(node: &Node, upgrade: impl FnOnce()) {
    let replicas = kubectl(node, &["get", "deployment/outrider", "-o=jsonpath={.spec.replicas}"]);
    creates::all_are_while(node, &["companion web", "web"], || {
        step("scaled to zero: no pod of Outrider is left", || {
            scale(node, "0");
            let pods = ["get", "pods", "--selector=app.kubernetes.io/name=outrider", "--output=name"];
            node.cluster()
                .wait_for("its pods to end", || {
                    let left = kubectl(node, &pods);
                    Ok((!left.is_empty()).then_some(left))
                })
                .unwrap();
        });
        assert_eq!(policies(node), "Ignore");
        upgrade();
        assert_eq!(policies(node), "Ignore");
        assert_eq!(try_create(node).as_deref(), Ok("web"));
        step("scaled up again: failurePolicy is as it was", || {
            scale(node, &replicas);
            closed(node);
        });
    });
    assert_eq!(try_create(node).as_deref(), Ok("companion web"));
}

/// The first replica does it, after an installation too.
pub fn closed(node: &Node) {
    let open = || {
        let found = policies(node);
        Ok((found != "Fail").then_some(found))
    };
    node.cluster().wait_for("failurePolicy to be Fail", open).unwrap();
    let annotations = kubectl(node, &["get", CONFIGURATIONS, "-o=jsonpath={.items[*].metadata.annotations}"]);
    assert!(!annotations.contains("outrider.dev/fail-open"), "{annotations}");
}

fn scale(node: &Node, replicas: &str) {
    kubectl(node, &["scale", "deployment/outrider", "--replicas", replicas]);
}

/// The failure policies of all webhooks, each once.
fn policies(node: &Node) -> String {
    let found = kubectl(node, &["get", CONFIGURATIONS, "-o=jsonpath={.items[*].webhooks[*].failurePolicy}"]);
    let mut found: Vec<&str> = found.split_whitespace().collect();
    found.sort_unstable();
    found.dedup();
    found.join(" ")
}
