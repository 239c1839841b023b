//! Outrider on a real node: installed, used, upgraded and uninstalled as people do.
//!
//! Needs root, and the image that `make test-node` builds: therefore ignored by default.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod creates;
mod kustomize;
mod release;
mod scaled_to_zero;
mod serving;
mod workloads;

use node::{Image, Node, isolated};
use release::Release;

/// What people do with it once it is installed; no create fails while it is changed.
fn used_while(node: &Node, change: impl FnOnce()) {
    workloads::apply_sets(node);
    workloads::deployment_runs_with_its_companion(node);
    creates::none_fails_while(node, change);
    workloads::job_completes_beside_a_native_sidecar(node);
    serving::show_memory();
}

#[test]
#[ignore = "needs root: make test-node"]
fn the_chart_works_from_install_to_uninstall() {
    isolated("the_chart_works_from_install_to_uninstall", || {
        let node = Node::start(&[Image::outrider()]);
        let release = Release::new(&node);
        release.install(&[]);
        release.test();
        used_while(&node, || {
            release.upgrade(&["--set=log.level=debug"]);
            serving::renew_certificate(&node);
        });
        release.uninstall();
        workloads::pod_is_left_alone(&node);
    });
}

#[test]
#[ignore = "needs root: make test-node-all"]
fn certificates_of_its_own_in_a_restricted_namespace() {
    isolated("certificates_of_its_own_in_a_restricted_namespace", || {
        let node = Node::start(&[Image::outrider()]);
        let release = Release::new(&node);
        release.enforce("restricted");
        release.install(&["--set=certManager.enabled=false"]);
        used_while(&node, || release.upgrade(&["--set=certManager.enabled=false,log.level=debug"]));
        release.uninstall();
        workloads::pod_is_left_alone(&node);
    });
}

#[test]
#[ignore = "needs root: make test-node-all"]
fn the_kustomize_tree_works_from_deploy_to_undeploy() {
    isolated("the_kustomize_tree_works_from_deploy_to_undeploy", || {
        let node = Node::start(&[Image::outrider()]);
        kustomize::deploy(&node);
        used_while(&node, || serving::renew_certificate(&node));
        kustomize::undeploy(&node);
        workloads::pod_is_left_alone(&node);
    });
}

/// Values that are off by default, of which the leader writes the webhook configurations.
#[test]
#[ignore = "needs root: make test-node-all"]
fn outrider_writes_ca_bundle_and_lets_pods_pass_while_it_is_scaled_to_zero() {
    isolated("outrider_writes_ca_bundle_and_lets_pods_pass_while_it_is_scaled_to_zero", || {
        let node = Node::start(&[Image::outrider()]);
        let release = Release::new(&node);
        let values = "--set=webhook.writeCaBundle=true,webhook.failOpenWhenScaledToZero=true";
        release.install(&[values]);
        serving::ca_bundle_is_of_the_secret(&node);
        used_while(&node, || serving::renew_certificate(&node));
        scaled_to_zero::pods_pass_without_a_companion_while_nobody_serves(&node, || {
            release.upgrade(&[values, "--set=replicas=0,log.level=debug"]);
        });
        serving::ca_bundle_is_of_the_secret(&node);
        release.uninstall();
        workloads::pod_is_left_alone(&node);
    });
}
