//! Outrider on a real node: installed, used, upgraded and uninstalled as people do.
//!
//! Needs root, and the image that `make test-node` builds: therefore ignored by default.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod creates;
mod kustomize;
mod plugins;
mod release;
mod rollout;
mod scaled_to_zero;
mod serving;
mod workloads;

use node::{Image, Node, isolated};
use release::Release;
use rollout::Rollout;
use workloads::step;

/// What people do with it once it is installed; no create fails while it is changed.
fn used_while(node: &Node, change: impl FnOnce()) {
    workloads::apply_sets(node);
    workloads::deployment_runs_with_its_companion(node);
    creates::none_fails_while(node, || {
        change();
        plugins::come_and_go(node);
    });
    // The kubelet restarts containers while the Job runs.
    let rollout = Rollout::start(node);
    workloads::job_completes_beside_a_native_sidecar(node);
    rollout.complete();
    serving::show_memory();
}

/// One way to install it on a node of its own, after which nothing of it is left.
fn on_a_node(test: &str, way: impl FnOnce(&Node)) {
    isolated(test, || {
        let node = Node::start(&[Image::outrider()]);
        way(&node);
        workloads::pod_is_left_alone(&node);
    });
}

#[test]
#[ignore = "needs root: make test-node"]
fn the_chart_works_from_install_to_uninstall() {
    on_a_node("the_chart_works_from_install_to_uninstall", |node| {
        let release = Release::new(node);
        release.install(&[]);
        release.test();
        used_while(node, || {
            release.upgrade(&["--set=log.level=debug"]);
            serving::renew_certificate(node);
        });
        release.uninstall();
    });
}

#[test]
#[ignore = "needs root: make test-node-all"]
fn certificates_of_its_own_in_a_restricted_namespace() {
    on_a_node("certificates_of_its_own_in_a_restricted_namespace", |node| {
        let release = Release::new(node);
        release.enforce("restricted");
        release.install(&["--set=certManager.enabled=false"]);
        used_while(node, || release.upgrade(&["--set=certManager.enabled=false,log.level=debug"]));
        release.uninstall();
    });
}

#[test]
#[ignore = "needs root: make test-node-all"]
fn the_kustomize_tree_works_from_deploy_to_undeploy() {
    on_a_node("the_kustomize_tree_works_from_deploy_to_undeploy", |node| {
        kustomize::deploy(node);
        used_while(node, || serving::renew_certificate(node));
        kustomize::undeploy(node);
    });
}

/// Values that are off by default, of which the leader writes the webhook configurations.
#[test]
#[ignore = "needs root: make test-node-all"]
fn outrider_writes_ca_bundle_and_lets_pods_pass_while_it_is_scaled_to_zero() {
    on_a_node("outrider_writes_ca_bundle_and_lets_pods_pass_while_it_is_scaled_to_zero", |node| {
        let release = Release::new(node);
        let values = "--set=webhook.writeCaBundle=true,webhook.failOpenWhenScaledToZero=true";
        release.install(&[values]);
        step("installed open: failurePolicy is Fail from when a replica serves", || scaled_to_zero::closed(node));
        serving::ca_bundle_is_of_the_secret(node);
        used_while(node, || serving::renew_certificate(node));
        scaled_to_zero::pods_pass_without_a_companion_while_nobody_serves(node, || {
            release.upgrade(&[values, "--set=replicas=0,log.level=debug"]);
        });
        serving::ca_bundle_is_of_the_secret(node);
        release.uninstall();
    });
}
