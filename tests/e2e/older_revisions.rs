//! Older revisions and canaries in new pods, on a real API server: what is documented of pins, percentages, rollouts and history.
#![allow(clippy::needless_pass_by_value)]

use std::collections::BTreeSet;

use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, outrider_on};
use crate::replicas::{get, small_cluster};
use crate::rollout::status;
use crate::room::may_register;

/// How many revisions are kept.
const LIMIT: u32 = 2;

/// A set of pods `app: NAME` with an image of this tag, and more of a spec.
fn set(name: &str, tag: u32, more: Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": name}}, "namespace": "default", "revisionHistoryLimit": LIMIT,
        "customVersion": format!("v{tag}"), "containers": [{"name": "proxy", "image": format!("proxy:{tag}")}],
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec})
}

fn pinned(revision: Value, update: Value) -> Value {
    json!({"injectionStrategy": {"revision": revision}, "updateStrategy": update})
}

/// Applies the set and waits until new pods get what it says.
fn apply(cluster: &Cluster, set: &Value) {
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&set.to_string())).unwrap();
    let name = format!("sidecarset/{}", set["metadata"]["name"].as_str().unwrap());
    let generation = get(cluster, &[name.as_str()])["metadata"]["generation"].clone();
    eventually("the set is in force", || {
        let status = get(cluster, &[name.as_str()])["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|it| it["type"] == "Ready").cloned().unwrap_or_default();
        status["observedGeneration"] == generation
            && ready["observedGeneration"] == generation
            && ready["status"] == "True"
    });
}

/// Creates a pod of the set, which a Deployment of this name may own; returns it.
fn create(cluster: &Cluster, app: &str, name: &str, more: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    json_patch::merge(&mut pod["metadata"], &more);
    let printed = cluster.kubectl_ok(&["create", "-n", "default", "-o", "json", "-f", "-"], Some(&pod.to_string()));
    serde_json::from_str(&printed.unwrap()).unwrap()
}

/// As the controllers of a Deployment make it.
fn of_deployment(deployment: &str, template: &str) -> Value {
    let name = format!("{deployment}-{template}");
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": true}]);
    json!({"labels": {"pod-template-hash": template}, "ownerReferences": owner})
}

fn image(pod: &Value) -> String {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    let proxy = containers.iter().find(|it| it["name"] == "proxy").unwrap();
    proxy["image"].as_str().unwrap().to_owned()
}

/// The name of the revision that the pod's record has of the set.
fn revision_in(pod: &Value, set: &str) -> String {
    let record = pod["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    record[set]["revision"].as_str().unwrap().to_owned()
}

/// The custom versions of the revisions of a set.
fn versions(cluster: &Cluster, set: &str) -> BTreeSet<String> {
    let list = get(cluster, &["controllerrevisions", "-n", "outrider-system"]);
    let of_set =
        list["items"].as_array().unwrap().iter().filter(|it| it["metadata"]["ownerReferences"][0]["name"] == set);
    let version = |it: &Value| it["metadata"]["labels"]["apps.outrider.dev/sidecarset-custom-version"].clone();
    of_set.map(|it| version(it).as_str().unwrap_or_default().to_owned()).collect()
}

fn named(versions: &[u32]) -> BTreeSet<String> {
    versions.iter().map(|tag| format!("v{tag}")).collect()
}

fn counts(cluster: &Cluster, set: &str) -> [i64; 2] {
    let status = status(cluster, set);
    ["matchedPods", "updatedPods"].map(|field| status[field].as_i64().unwrap_or(-1))
}

fn stage() -> (Cluster, Outrider) {
    let (cluster, account) = small_cluster();
    may_register(&cluster);
    let outrider = Outrider::registered_as(&cluster, &account, &[]);
    outrider.ready();
    outrider.called(&cluster);
    (cluster, outrider)
}

/// Cases 52 and 54, and what the history keeps.
#[test]
#[ignore = "needs a control plane: make test"]
fn new_pods_get_the_pinned_revision_which_the_history_keeps_and_a_rollout_brings_the_current_form() {
    let (cluster, outrider) = stage();
    let paused = json!({"paused": true});
    apply(&cluster, &set("web", 1, json!({})));
    let first = create(&cluster, "web", "first", json!({}));
    eventually("the pod is counted", || counts(&cluster, "web") == [1, 1]);
    apply(&cluster, &set("web", 2, json!({"updateStrategy": paused})));
    eventually("the pod keeps what it has", || counts(&cluster, "web") == [1, 0]);

    // By its version.
    apply(&cluster, &set("web", 2, pinned(json!({"customVersion": "v1"}), paused.clone())));
    let second = create(&cluster, "web", "second", json!({}));
    assert_eq!((image(&second), revision_in(&second, "web")), ("proxy:1".to_owned(), revision_in(&first, "web")));
    // By its name, while the set goes on.
    let by_name = pinned(json!({"revisionName": revision_in(&first, "web")}), paused.clone());
    for tag in 3..=6 {
        apply(&cluster, &set("web", tag, by_name.clone()));
    }
    let third = create(&cluster, "web", "third", json!({}));
    assert_eq!(revision_in(&third, "web"), revision_in(&first, "web"));
    cluster.kubectl_ok(&["delete", "pods", "--all", "-n", "default", "--grace-period=0", "--force"], None).unwrap();
    eventually("no pod carries the set", || counts(&cluster, "web") == [0, 0]);
    apply(&cluster, &set("web", 7, by_name.clone()));
    eventually("of six old forms the pinned one stays", || versions(&cluster, "web") == named(&[1, 7]));
    let fourth = create(&cluster, "web", "fourth", json!({}));
    assert_eq!(image(&fourth), "proxy:1");

    // One that is no longer pinned stays while a pod has it.
    apply(&cluster, &set("web", 8, json!({"updateStrategy": paused})));
    eventually("the pod is counted", || counts(&cluster, "web") == [1, 0]);
    apply(&cluster, &set("web", 9, json!({"updateStrategy": paused})));
    eventually("the used one stays", || versions(&cluster, "web") == named(&[1, 9]));
    // A rollout brings the pod to the current form, whatever new pods get, and then no pod needs it.
    apply(&cluster, &set("web", 9, pinned(json!({"customVersion": "v1"}), json!({}))));
    eventually("the pod follows", || counts(&cluster, "web") == [1, 1]);
    assert_eq!(image(&get(&cluster, &["pod", "fourth", "-n", "default"])), "proxy:9");
    apply(&cluster, &set("web", 10, json!({})));
    eventually("the first is needed no longer", || versions(&cluster, "web") == named(&[9, 10]));

    // One that does not exist is refused when the set is written.
    let missing = set("web", 10, pinned(json!({"customVersion": "v1"}), json!({}))).to_string();
    eventually("it is refused", || {
        let refused = cluster.kubectl(&["apply", "--dry-run=server", "-f", "-"], Some(&missing)).unwrap();
        refused.stderr.contains("no ControllerRevision of the set has the custom version \"v1\"")
    });
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// What is said about a percentage: by workload, for new pods and for running ones.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_percentage_holds_back_workloads_at_creation_and_in_the_rollout_alike() {
    let (cluster, outrider) = stage();
    apply(&cluster, &set("web", 1, json!({})));
    let names: Vec<String> = (0..8).map(|number| format!("web-{number}")).collect();
    for name in &names {
        create(&cluster, "web", &format!("{name}-old"), of_deployment(name, "1a"));
    }
    eventually("all are counted", || counts(&cluster, "web") == [8, 8]);
    let partial = |partition: &str| {
        let revision = json!({"customVersion": "v1", "policy": "Partial"});
        set("web", 2, pinned(revision, json!({"partition": partition, "maxUnavailable": "100%"})))
    };
    // The revision has to be there before it can be pinned: it is, as the set is in force.
    apply(&cluster, &partial("50%"));
    let new: Vec<String> = names
        .iter()
        .map(|name| image(&create(&cluster, "web", &format!("{name}-new"), of_deployment(name, "2b"))))
        .collect();
    let held = i64::try_from(new.iter().filter(|image| *image == "proxy:1").count()).unwrap();
    assert!((1..8).contains(&held), "{new:?}");
    let progress = || {
        let conditions = get(&cluster, &["sidecarset", "web"])["status"]["conditions"].clone();
        let found = conditions.as_array().unwrap().iter().find(|it| it["type"] == "Progressing").cloned().unwrap();
        (found["status"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
    };
    eventually("the rollout ends where new pods end", || {
        counts(&cluster, "web") == [16, 16 - 2 * held] && progress() == ("False".to_owned(), "Kept".to_owned())
    });
    for (name, new) in names.iter().zip(&new) {
        let old = get(&cluster, &["pod", &format!("{name}-old"), "-n", "default"]);
        assert_eq!(image(&old), *new, "both pods of {name}");
    }
    // A pod of a held back workload is explained from the cluster.
    let at = new.iter().position(|image| image == "proxy:1").unwrap();
    let pod = format!("{}-new", names[at]);
    let explained = outrider_on(&cluster.kubeconfig(), &["explain", "pod", &pod, "-n", "default", "-o", "json"]);
    assert!(explained.success(), "{explained:?}");
    let found: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!(found["pods"][0]["sets"][0]["result"], "injected", "{found:#}");
    apply(&cluster, &partial("0%"));
    eventually("all follow", || counts(&cluster, "web") == [16, 16]);
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// Whatever becomes of the revision meanwhile.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_keeps_the_older_form_of_a_must_that_it_was_created_with() {
    let (cluster, outrider) = stage();
    let must = |tag: u32, container: &str, mut more: Value| {
        more["optOut"] = json!("Denied");
        more["containers"] = json!([{"name": container, "image": format!("{container}:{tag}")}]);
        set("web", tag, more)
    };
    apply(&cluster, &must(1, "dns", json!({})));
    apply(&cluster, &must(2, "proxy", json!({"updateStrategy": {"paused": true}})));
    let pin = pinned(json!({"customVersion": "v1"}), json!({"paused": true}));
    apply(&cluster, &must(2, "proxy", pin));
    let pod = create(&cluster, "web", "web", json!({}));
    let names: Vec<&str> =
        pod["spec"]["containers"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dns", "app"]);
    let changes =
        |args: &[&str]| cluster.kubectl(&[args, &["-n", "default", "--dry-run=server"]].concat(), None).unwrap();
    let evil = ["set", "image", "pod/web", "dns=evil:1"];
    eventually("the entry is there", || !changes(&evil).success());
    let holds = || {
        for refused in [&evil[..], &["label", "pod/web", "app-"]] {
            let output = changes(refused);
            assert!(output.stderr.contains("pod must carry SidecarSet"), "{refused:?}: {output:?}");
        }
        for allowed in [&["set", "image", "pod/web", "app=app:2"][..], &["label", "pod/web", "more=1"]] {
            let output = changes(allowed);
            assert!(output.success(), "{allowed:?}: {output:?}");
        }
    };
    holds();
    let name = revision_in(&pod, "web");
    cluster.kubectl_ok(&["delete", "controllerrevision", &name, "-n", "outrider-system"], None).unwrap();
    eventually("new pods cannot have the set", || {
        let status = get(&cluster, &["sidecarset", "web"])["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Ready" && it["reason"] == "RevisionUnusable")
    });
    holds();
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// Cases 56, 57 and 60.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_canary_takes_the_place_of_its_base_in_new_pods_and_the_base_can_be_changed() {
    let (cluster, outrider) = stage();
    apply(&cluster, &set("web", 1, json!({})));
    let old = create(&cluster, "web", "old", json!({}));
    let canary = |paused: bool| {
        let mut canary = set(
            "web",
            2,
            json!({
                "updateStrategy": {"type": "NotUpdate"}, "injectionStrategy": {"paused": paused},
            }),
        );
        canary["metadata"] = json!({"name": "web-canary", "annotations": {
            "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "web",
        }});
        canary
    };
    apply(&cluster, &canary(false));
    let new = create(&cluster, "web", "new", json!({}));
    assert_eq!((image(&old), image(&new)), ("proxy:1".to_owned(), "proxy:2".to_owned()));
    eventually("each counts its own", || counts(&cluster, "web") == [1, 1] && counts(&cluster, "web-canary") == [1, 1]);
    assert_eq!(get(&cluster, &["sidecarset", "web"])["status"]["uninjectedPods"], 0);
    apply(&cluster, &set("web", 3, json!({})));
    eventually("the base's pods follow it", || image(&get(&cluster, &["pod", "old", "-n", "default"])) == "proxy:3");
    assert_eq!(image(&get(&cluster, &["pod", "new", "-n", "default"])), "proxy:2");
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&canary(true).to_string())).unwrap();
    eventually("a paused one leaves its place", || {
        let pod = create(&cluster, "web", "next", json!({}));
        cluster.kubectl_ok(&["delete", "pod", "next", "-n", "default", "--grace-period=0", "--force"], None).unwrap();
        image(&pod) == "proxy:3"
    });
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}
