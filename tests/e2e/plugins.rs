//! Admission plugins on a real API server.

use std::fs;

use cluster::{Cluster, Options};
use engine::plugins::Plugin;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install, service_account};
use crate::room::may_register;

/// An API server without service accounts, so that pods can be created at once.
pub fn small(more: &[String]) -> Cluster {
    let mut extra = vec!["--disable-admission-plugins=ServiceAccount".to_owned()];
    extra.extend_from_slice(more);
    let options = Options { kwok: false, controller_manager: false, extra_apiserver_args: extra, ..Options::default() };
    Cluster::start_with(&options).unwrap()
}

pub fn apply(cluster: &Cluster, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&list)).unwrap();
}

pub fn plugin(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "metadata": {"name": name}, "spec": spec})
}

/// A cluster that Outrider serves.
pub fn served(more: &[String]) -> (Cluster, Outrider) {
    served_with(more, &[])
}

/// The same, by a process with these flags.
pub fn served_with(more: &[String], flags: &[&str]) -> (Cluster, Outrider) {
    let cluster = small(more);
    let outrider = serve(&cluster, flags);
    (cluster, outrider)
}

/// Serves a cluster.
pub fn serve(cluster: &Cluster, flags: &[&str]) -> Outrider {
    install(cluster);
    let account = service_account(cluster);
    may_register(cluster);
    let outrider = Outrider::registered_as(cluster, &account, flags);
    outrider.ready();
    eventually("the API server calls the process", || {
        let object = plugin("probe", &json!({"plugin": "AlwaysAdmit"})).to_string();
        let refused = cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], Some(&object)).unwrap();
        refused.stderr.contains("Outrider does not serve it")
    });
    outrider
}

/// Waits until every object is accepted and programmed.
pub fn all_are_programmed(cluster: &Cluster) {
    eventually("all are programmed", || {
        let found = cluster.kubectl_ok(&["get", "admissionplugins", "--no-headers"], None).unwrap();
        found.lines().all(|line| line.matches("True").count() == 2)
    });
}

pub fn condition(cluster: &Cluster, name: &str, type_: &str) -> String {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{type_}\")].status}}");
    cluster.kubectl_ok(&["get", "admissionplugin", name, "-o", &path], None).unwrap()
}

pub fn webhooks(cluster: &Cluster) -> Vec<String> {
    let names = [
        "mutatingwebhookconfiguration/outrider-on-demand-mutating",
        "validatingwebhookconfiguration/outrider-on-demand-validating",
    ];
    names
        .iter()
        .flat_map(|name| {
            let found = cluster.kubectl(&["get", name, "-o", "jsonpath={.webhooks[*].name}"], None).unwrap();
            found.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Gives a pod an ephemeral container whose image is not to be pulled.
fn debug(cluster: &Cluster, pod: &str) -> cluster::Output {
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "sh", "imagePullPolicy": "Never"}]}});
    cluster
        .kubectl(&["patch", pod, "--subresource=ephemeralcontainers", "-p", &debug.to_string(), "-o", "json"], None)
        .unwrap()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_plugin_comes_and_goes_while_pods_are_created() {
    let (cluster, outrider) = served(&[]);
    let mut count = 0;
    let mut create = |spec: Value| {
        count += 1;
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{count}"), "namespace": "default"}, "spec": spec});
        let created = cluster.kubectl(&["create", "-f", "-"], Some(&pod.to_string())).unwrap();
        assert!(created.success(), "{}", created.stderr);
        // While entries come and go, a debug container is never refused.
        let debugged = debug(&cluster, &format!("pod/p{count}"));
        assert!(debugged.success(), "{}", debugged.stderr);
        serde_json::from_str::<Value>(&debugged.stdout).unwrap()["spec"].take()
    };
    let pod = || json!({"containers": [{"name": "a", "image": "a:1", "imagePullPolicy": "IfNotPresent"}]});
    assert_eq!(create(pod())["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let section = json!({"includeEphemeralContainers": true});
    apply(&cluster, &[plugin("pull", &json!({"plugin": "AlwaysPullImages", "alwaysPullImages": section}))]);
    eventually("it is programmed", || {
        create(pod());
        condition(&cluster, "pull", "Programmed") == "True"
    });
    assert_eq!(
        (condition(&cluster, "pull", "Accepted"), condition(&cluster, "pull", "Conflict")),
        ("True".into(), "False".into())
    );
    let stored = create(pod());
    for list in ["containers", "ephemeralContainers"] {
        assert_eq!(stored[list][0]["imagePullPolicy"], "Always", "{list}");
    }
    let entries = webhooks(&cluster);
    assert_eq!(entries.len(), 3, "{entries:?}");
    // A debug container is pulled as well; a new image of a pod that was there before is not, and cannot be.
    let image = cluster.kubectl(&["set", "image", "pod/p1", "a=a:2"], None).unwrap();
    assert!(image.stderr.contains("recreate the pod"), "{}", image.stderr);
    assert!(cluster.kubectl(&["label", "pod/p1", "a=b"], None).unwrap().success());
    let metrics = outrider.metrics();
    assert!(
        metrics.contains(
            "outrider_plugin_decisions_total{plugin=\"AlwaysPullImages\",mode=\"Enforce\",verdict=\"changed\"}"
        )
    );

    cluster.kubectl_ok(&["delete", "admissionplugin/pull"], None).unwrap();
    eventually("the entries are withdrawn", || {
        create(pod());
        webhooks(&cluster).is_empty()
    });
    assert_eq!(create(pod())["containers"][0]["imagePullPolicy"], "IfNotPresent");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_definition_and_the_webhook_say_what_is_wrong() {
    let (cluster, _outrider) = served_with(&[], &["--on-demand-all-resources"]);
    let refused = |object: Value, part: &str| {
        let output = cluster.kubectl(&["create", "-f", "-"], Some(&object.to_string())).unwrap();
        assert!(!output.success() && output.stderr.contains(part), "{part}: {}", output.stderr);
    };
    refused(plugin("a", &json!({"plugin": "NamespaceAutoProvision"})), "Outrider does not serve it");
    refused(
        plugin("a", &json!({"plugin": "EventRateLimit", "failurePolicy": "Fail"})),
        "failurePolicy must be Ignore for plugin: EventRateLimit",
    );
    refused(plugin("a", &json!({"plugin": "AlwaysPullImages", "backend": "Policy"})), "spec.backend: Forbidden");
    refused(
        plugin("a", &json!({"plugin": "AlwaysPullImages", "podNodeSelector": {}})),
        "podNodeSelector is only for plugin: PodNodeSelector",
    );
    // Before the webhook, which lists the names too, the API server judges the section.
    refused(
        plugin("a", &json!({"plugin": "DefaultStorageClas", "defaultStorageClass": {}})),
        "plugin DefaultStorageClas is not served: Outrider serves AlwaysPullImages, PodNodeSelector",
    );
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples");
    for entry in fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("policy_") {
            cluster.kubectl_ok(&["apply", "-f", path.to_str().unwrap()], None).unwrap();
        }
    }
    let change = cluster.kubectl(
        &["patch", "admissionplugin/fast-failover", "--type=merge", "-p", r#"{"spec":{"plugin":"AlwaysPullImages"}}"#],
        None,
    );
    assert!(change.unwrap().stderr.contains("immutable"));
    let table = cluster.kubectl_ok(&["get", "admissionplugins"], None).unwrap();
    assert_eq!(table.lines().count(), 1 + Plugin::ALL.len(), "{table}");
    let has_mode = |line: &str| ["Enforce", "Warn", "Audit", "Off"].iter().any(|mode| line.contains(mode));
    assert!(table.lines().skip(1).all(has_mode), "the mode of an object that names none: {table}");
    // There is no Secret with a backend to review images.
    eventually("all others are programmed", || {
        let found = cluster.kubectl_ok(&["get", "admissionplugins", "--no-headers"], None).unwrap();
        found.lines().all(|line| (line.matches("True").count() == 2) != line.starts_with("image-policy "))
    });
    let of_images = cluster.kubectl_ok(&["get", "admissionplugin/image-policy", "-o", "jsonpath={.status}"], None);
    assert!(of_images.unwrap().contains("NoBackend"));
}

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// The objects of namespaces, which leave alone one namespace and one user.
fn of_namespaces() -> Vec<Value> {
    let scope = json!({"excludeNamespaces": ["free"], "excludeUsers": ["o'\"neil"], "excludeGroups": ["exempt"]});
    vec![
        plugin(
            "security",
            &json!({"plugin": "PodSecurity", "match": scope, "podSecurity": {"defaults": {"enforce": "baseline"}}}),
        ),
        plugin(
            "lifecycle",
            &json!({"plugin": "NamespaceLifecycle", "match": scope, "namespaceLifecycle": {
                "protectedNamespaces": ["prod-*", "free"], "breakGlassAnnotation": "example.com/delete"}}),
        ),
    ]
}

#[test]
#[ignore = "needs a control plane: make test"]
fn namespaces_are_labelled_and_protected_and_exemptions_hold_while_no_replica_answers() {
    let (cluster, outrider) = served(&[]);
    let kubectl = |args: &[&str]| cluster.kubectl(args, None).unwrap();
    let mut count = 0;
    let mut create = || {
        count += 1;
        let created = kubectl(&["create", "namespace", &format!("n{count}")]);
        assert!(created.success(), "{}", created.stderr);
        format!("n{count}")
    };
    create();
    apply(&cluster, &of_namespaces());
    eventually("both are programmed", || {
        create();
        ["security", "lifecycle"].iter().all(|name| condition(&cluster, name, "Programmed") == "True")
    });
    let label = format!("jsonpath={{.metadata.labels.{}}}", ENFORCE.replace('.', "\\."));
    let level = |name: &str| cluster.kubectl_ok(&["get", "namespace", name, "-o", &label], None).unwrap();
    assert_eq!(level(&create()), "baseline");
    kubectl(&["create", "namespace", "free"]);
    assert_eq!(level("free"), "");

    // Who may change a namespace evades nothing by labelling it.
    kubectl(&["create", "namespace", "prod-a"]);
    let removed = format!("{ENFORCE}-");
    for evasion in [
        &["label", "namespace", "prod-a", &removed][..],
        &["label", "namespace", "prod-a", "outrider.dev/exclude=x", &removed],
    ] {
        let refused = kubectl(evasion);
        assert!(!refused.success() && refused.stderr.contains("may not be removed"), "{}", refused.stderr);
    }
    assert!(kubectl(&["label", "namespace", "prod-a", "outrider.dev/exclude=x"]).success());
    let refused = kubectl(&["delete", "namespace", "prod-a", "--dry-run=server"]);
    assert!(refused.stderr.contains("this namespace may not be deleted"), "{}", refused.stderr);
    assert!(
        kubectl(&["delete", "namespace", "prod-a", "--dry-run=server", "--as=o'\"neil", "--as-group=system:masters"])
            .success()
    );
    assert!(
        kubectl(&[
            "delete",
            "namespace",
            "prod-a",
            "--dry-run=server",
            "--as=x",
            "--as-group=exempt",
            "--as-group=system:masters"
        ])
        .success()
    );
    assert!(kubectl(&["annotate", "namespace", "prod-a", "example.com/delete=true"]).success());
    assert!(kubectl(&["delete", "namespace", "prod-a", "--dry-run=server"]).success());

    // The API server itself evaluates who is exempt.
    outrider.kill();
    let failed = kubectl(&["create", "namespace", "later"]);
    assert!(!failed.success() && failed.stderr.contains("failed calling webhook"), "{}", failed.stderr);
    assert!(kubectl(&["label", "namespace", "free", "a=b"]).success());
    assert!(kubectl(&["delete", "namespace", "free", "--dry-run=server"]).success());
    let exempt = kubectl(&["create", "namespace", "later", "--as=o'\"neil", "--as-group=system:masters"]);
    assert!(exempt.success(), "{}", exempt.stderr);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn objects_that_fail_and_objects_that_ignore_have_entries_with_the_selector_that_they_share() {
    let (cluster, _outrider) = served(&[]);
    let object = |name: &str, policy: &str| {
        plugin(
            name,
            &json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": policy, "match": {
            "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["net"]}]}}}),
        )
    };
    apply(&cluster, &[object("a", "Fail"), object("b", "Ignore")]);
    eventually("both are programmed", || {
        ["a", "b"].iter().all(|name| condition(&cluster, name, "Programmed") == "True")
    });
    let configuration = "validatingwebhookconfiguration/outrider-on-demand-validating";
    let entries = || -> Value {
        let found = cluster.kubectl_ok(&["get", configuration, "-o", "json"], None).unwrap();
        serde_json::from_str::<Value>(&found).unwrap()["webhooks"].take()
    };
    let found = entries();
    let policies: Vec<&Value> = found.as_array().unwrap().iter().map(|entry| &entry["failurePolicy"]).collect();
    assert_eq!(policies, ["Fail", "Ignore"]);
    assert!(found[0]["namespaceSelector"].to_string().contains("team"), "{}", found[0]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}});
    let refused = cluster.kubectl(&["create", "-f", "-"], Some(&service.to_string())).unwrap();
    assert!(refused.stderr.contains("Use of external IPs is denied"), "{}", refused.stderr);
}
