//! Credentials that stop working, and a lease that is never given back, against the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::stand_in::{ApiServer, Served};

/// What is watched for the plugins below, and by the leader.
const UNGATED: [&str; 7] = ["resourcequotas", "storageclasses", "nodes", "secrets", "pods", "cronjobs", "jobs"];

/// What decisions read.
const WATCHES: [&str; 7] = [
    "sidecarsets",
    "admissionplugins",
    "clusterlimitranges",
    "podsecurityprofiles",
    "namespaces",
    "configuration",
    "controllerrevisions",
];

fn plugins_that_read_more() -> [Value; 4] {
    let limited = json!([{"resource": "pods", "matchContains": ["pods"]}]);
    [
        json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}}),
        json!({"plugin": "DefaultStorageClass"}),
        json!({"plugin": "PodTopologyLabels", "podTopologyLabels": {"nodeLabels": ["rack"]}}),
        json!({"plugin": "ImagePolicyWebhook"}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn watches_that_are_refused_for_a_minute_show_in_readiness_and_in_a_metric_until_they_work_again() {
    let (server, folder) = (ApiServer::with_plugins(&plugins_that_read_more()), tempfile::tempdir().unwrap());
    let kubeconfig = server.kubeconfig(folder.path(), &json!({"token": "t"}));
    let mut replica = Served::start(folder, &kubeconfig, &["--enable-kinds=cronjob"]);
    replica.readiness("it becomes ready", |code, _| code == 200).await;
    replica.failing(&WATCHES, |seconds| seconds == 0).await;
    replica.failing(&UNGATED, |seconds| seconds == 0).await;

    server.refuses.store(true, Ordering::Relaxed);
    assert!(replica.process.line("Watch failed, trying again")["error"].as_str().unwrap().contains("Unauthorized"));
    replica.process.discard_log();
    let failing = |text: &str| {
        let is_told = |watch: &&str| {
            let gate = format!("sync:{watch} ");
            let mut lines = text.lines().filter(|line| line.contains(&gate));
            lines.any(|line| line.contains("the watch has failed for ") && line.contains("Unauthorized"))
        };
        WATCHES.iter().all(is_told)
    };
    replica.readiness("it is told", |_, text| failing(text)).await;
    // What was known is still good for decisions.
    replica.readiness("it is ready all the same", |code, _| code == 200).await;
    replica.failing(&WATCHES, |seconds| seconds >= 60).await;
    // Those that readiness does not wait for.
    replica.failing(&UNGATED, |seconds| seconds >= 60).await;
    assert_eq!(replica.review().await, 200);

    server.refuses.store(false, Ordering::Relaxed);
    replica.readiness("it is over", |code, text| code == 200 && !text.contains("the watch has failed")).await;
    replica.failing(&WATCHES, |seconds| seconds == 0).await;
    replica.failing(&UNGATED, |seconds| seconds == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes its time: make test"]
async fn a_credential_plugin_that_hangs_shows_in_the_log_and_in_readiness_and_delays_no_review() {
    let (server, folder) = (ApiServer::start(), tempfile::tempdir().unwrap());
    let (plugin, hangs) = (folder.path().join("plugin"), folder.path().join("hangs"));
    let credentials = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}});
    let script = format!("#!/bin/sh\n[ -e {} ] && exec sleep 1000\necho '{credentials}'\n", hangs.display());
    fs::write(&plugin, script).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": plugin});
    let kubeconfig = server.kubeconfig(folder.path(), &json!({"exec": exec}));
    let mut replica = Served::start(folder, &kubeconfig, &[]);
    replica.readiness("it becomes ready", |code, _| code == 200).await;

    fs::write(&hangs, "").unwrap();
    let told = replica.process.line("Watch failed, trying again");
    assert!(told["error"].as_str().unwrap().contains("gave no answer within 30 s and was ended"), "{told}");
    replica.process.discard_log();
    // The plugin hangs meanwhile.
    for _ in 0..20 {
        assert_eq!(replica.review().await, 200);
    }
    let text = replica.readiness("it is told", |_, text| text.contains("gave no answer within 30 s")).await;
    assert!(text.contains("the watch has failed for "), "{text}");
    fs::remove_file(&hangs).unwrap();
    replica.readiness("it is over", |code, text| code == 200 && !text.contains("the watch has failed")).await;
}

#[test]
fn a_lease_that_is_to_last_absurdly_long_is_reported_with_the_time_that_its_holder_is_waited_for() {
    let (server, folder) = (ApiServer::start(), tempfile::tempdir().unwrap());
    let kubeconfig = server.kubeconfig(folder.path(), &json!({"token": "t"}));
    let mut replica = Served::start(folder, &kubeconfig, &["--leader-elect"]);
    let told = replica.process.line("The lease has an unusually long duration; waiting 600 s for its holder at most");
    assert_eq!(
        (&told["level"], &told["holder"], &told["seconds"]),
        (&json!("WARN"), &json!("somebody"), &json!(i32::MAX))
    );
}
