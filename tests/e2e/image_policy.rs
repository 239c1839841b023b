//! `ImagePolicyWebhook` beside the API server's own plugin: the same pods, and backends that say the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::image_reviewer::{Answer, ImageReviewer};
use crate::plugins::{apply, condition, plugin, served_with, small};
use crate::plugins_asking::{programmed, run, said};
use crate::process::{eventually, outrider_on};

/// Refuses images that are called bad, unless somebody has a ticket.
fn reviewer() -> ImageReviewer {
    ImageReviewer::start(|spec, _| {
        let images: Vec<&str> = spec["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|container| container["image"].as_str().unwrap())
            .collect();
        let has_ticket = spec["annotations"]["tickets.image-policy.k8s.io/break-glass"] == "yes";
        match images.iter().find(|image| image.starts_with("bad") && !has_ticket) {
            Some(bad) => {
                Answer::status(&json!({"allowed": false, "reason": format!("{bad} has a known vulnerability")}))
            }
            None if images.contains(&"silent:1") => Answer::status(&json!({"allowed": false})),
            None => Answer::status(&json!({"allowed": true, "auditAnnotations": {"scanned": "yes"}})),
        }
    })
}

fn settings(default_allow: bool) -> Value {
    json!({"allowTTL": 300, "denyTTL": 30, "retryBackoff": 1, "defaultAllow": default_allow})
}

/// An API server with the plugin of its own.
fn original(reviewer: &ImageReviewer, folder: &Path) -> Cluster {
    let (config, kubeconfig) = (folder.join("admission.json"), folder.join("images.kubeconfig"));
    fs::write(&kubeconfig, reviewer.kubeconfig().to_string()).unwrap();
    let mut section = settings(false);
    section["kubeConfigFile"] = kubeconfig.to_str().unwrap().into();
    let plugins = json!([{"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": section}}]);
    let whole =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    fs::write(&config, whole.to_string()).unwrap();
    small(&[
        "--enable-admission-plugins=ImagePolicyWebhook".to_owned(),
        format!("--admission-control-config-file={}", config.display()),
    ])
}

fn pod(name: &str, init: &[&str], images: &[&str], annotations: &Value) -> Value {
    let list = |images: &[&str], prefix: &str| -> Vec<Value> {
        let named = |(at, image): (usize, &&str)| json!({"name": format!("{prefix}{at}"), "image": image});
        images.iter().enumerate().map(named).collect()
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"initContainers": list(init, "i"), "containers": list(images, "c")},
    })
}

fn pods() -> Vec<Value> {
    let (none, ticket) = (json!({}), json!({"tickets.image-policy.k8s.io/break-glass": "yes", "other": "no"}));
    vec![
        pod("good", &[], &["good:1"], &none),
        pod("bad", &[], &["bad:1"], &none),
        pod("one-bad", &[], &["good:1", "bad:2"], &none),
        pod("bad-init", &["bad:3"], &["good:1"], &none),
        pod("silent", &[], &["silent:1"], &none),
        pod("ticket", &["bad:5"], &["bad:4"], &ticket),
        pod("no-ticket", &[], &["bad:4"], &json!({"tickets.example.com/break-glass": "yes"})),
    ]
}

/// What is said to changes of the pod `good`, one after the other.
fn changed(cluster: &Cluster) -> Vec<Vec<String>> {
    let ephemeral = |image: &str| json!({"spec": {"ephemeralContainers": [{"name": format!("d-{}", &image[..3]), "image": image}]}});
    let image = |image: &str| json!({"spec": {"containers": [{"name": "c0", "image": image}]}});
    let changes = [
        (ephemeral("bad:6"), Some("--subresource=ephemeralcontainers")),
        (ephemeral("good:2"), Some("--subresource=ephemeralcontainers")),
        (json!({"metadata": {"labels": {"a": "b"}}}), None),
        (image("bad:7"), None),
        (image("good:3"), None),
    ];
    let patch = |(change, more): (Value, Option<&str>)| {
        let change = change.to_string();
        let arguments: Vec<&str> = ["patch", "pod/good", "-p", &change].into_iter().chain(more).collect();
        said(&cluster.kubectl(&arguments, None).unwrap())
    };
    changes.into_iter().map(patch).collect()
}

/// The questions of the reviews, each once.
fn asked(reviewer: &ImageReviewer) -> BTreeSet<String> {
    let question = |review: Value| {
        assert_eq!(
            (&review["apiVersion"], &review["kind"]),
            (&json!("imagepolicy.k8s.io/v1alpha1"), &json!("ImageReview"))
        );
        let mut spec = review["spec"].clone();
        if spec["annotations"] == json!({}) {
            spec.as_object_mut().unwrap().remove("annotations");
        }
        spec.to_string()
    };
    reviewer.reviews().into_iter().map(question).collect()
}

/// Flags for an audit log in the folder.
fn audited(folder: &Path) -> Vec<String> {
    let policy = folder.join("audit.yaml");
    fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n").unwrap();
    vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.join("audit.log").display()),
    ]
}

fn give_backend(cluster: &Cluster, reviewer: &ImageReviewer) {
    let kubeconfig = format!("--from-literal=kubeconfig={}", reviewer.kubeconfig());
    let arguments = ["create", "secret", "generic", "outrider-image-policy", "-n", "outrider-system", &kubeconfig];
    cluster.kubectl_ok(&arguments, None).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn images_are_reviewed_as_by_the_plugin_of_the_api_server() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (reviewer(), reviewer());
    let original = original(&theirs, folder.path());
    let (replaced, outrider) = served_with(&audited(folder.path()), &[]);
    let object = |default_allow| {
        let section = settings(default_allow);
        plugin("images", &json!({"plugin": "ImagePolicyWebhook", "imagePolicyWebhook": section}))
    };
    apply(&replaced, &[object(false)]);
    let message = || {
        let path = "jsonpath={.status.conditions[?(@.type==\"Programmed\")].message}";
        replaced.kubectl_ok(&["get", "admissionplugin", "images", "-o", path], None).unwrap()
    };
    eventually("that there is no Secret is said", || message().contains("there is no Secret outrider-image-policy"));
    assert_eq!(condition(&replaced, "images", "Programmed"), "False");
    let doctor = outrider_on(&replaced.kubeconfig(), &["doctor"]);
    assert!(doctor.stdout.contains("images are not reviewed"), "{}{}", doctor.stdout, doctor.stderr);
    give_backend(&replaced, &ours);
    programmed(&replaced, "images");

    let (from_theirs, from_ours) = (run(&original, "create", "", &pods()), run(&replaced, "create", "", &pods()));
    assert_eq!(from_ours, from_theirs);
    let expected = "pods \"bad\" is forbidden: image policy webhook backend denied one or more images: bad:1 has a known vulnerability";
    assert!(from_ours.len() == 5 && from_ours.iter().any(|line| line == expected), "{from_ours:?}");
    let (to_theirs, to_ours) = (changed(&original), changed(&replaced));
    assert_eq!(to_ours, to_theirs);
    assert_eq!(to_ours.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0, 1, 0], "{to_ours:?}");
    assert_eq!(asked(&ours), asked(&theirs));

    // Without a backend, what it said still counts, and nothing else runs.
    drop((theirs, ours));
    let new = || vec![pod("known", &[], &["good:1"], &json!({})), pod("gone", &[], &["good:9"], &json!({}))];
    for cluster in [&original, &replaced] {
        let refused = run(cluster, "create", "", &new());
        assert!(refused.len() == 1 && refused[0].starts_with("pods \"gone\" is forbidden: "), "{refused:?}");
    }
    eventually("that there is no verdict is said", || {
        message().contains("no verdict when the leader last sent it a review")
    });
    assert_eq!(condition(&replaced, "images", "Programmed"), "False");
    apply(&replaced, &[object(true)]);
    eventually("the backend is not waited for any more", || {
        run(&replaced, "create", "", &new()).iter().all(|line| line.contains("already exists"))
    });
    let log = || fs::read_to_string(folder.path().join("audit.log")).unwrap();
    eventually("the audit log says so", || {
        log().contains("\"imagepolicywebhook.policy.outrider.dev/failed-open\":\"true\"")
    });
    assert!(log().contains("\"imagepolicywebhook.policy.outrider.dev/scanned\":\"yes\""));
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
}
