//! `outrider migrate`: what is printed for OpenKruise's sets, and that pods get from it what OpenKruise's manual says.

use std::fs;

use outrider::cli::streams::CommandOutcome;
use serde_json::{Value, json};

use crate::golden;
use crate::run::outrider;

const INPUT: &str = "tests/offline/input/migrate";

/// Manifests of OpenKruise that can be carried over.
const CONVERTED: [&str; 9] = [
    "simple",
    "full",
    "hot-upgrade",
    "partial",
    "canary",
    "namespaces",
    "transfer-env",
    "resources-policy",
    "patch-pod-metadata",
];

fn input(name: &str) -> String {
    format!("{INPUT}/{name}.yaml")
}

/// What is printed for a manifest of OpenKruise.
fn printed(name: &str) -> String {
    let ran = outrider(&["migrate", &input(name)], "");
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{name}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn sets_of_openkruise_are_printed_as_recorded() {
    for name in CONVERTED.into_iter().chain(["refused", "invalid", "misspelt"]) {
        golden::assert(&format!("migrate/{name}.txt"), &outrider(&["migrate", &input(name)], "").transcript());
    }
}

#[test]
fn every_printed_set_passes_lint_in_one_stream() {
    for name in CONVERTED {
        let mut text = printed(name);
        if name == "partial" {
            text = format!("{text}---\n{}", fs::read_to_string(input("partial-revision")).unwrap());
        }
        let linted = outrider(&["lint", "-"], &text);
        assert_eq!(linted.outcome, CommandOutcome::Fine, "{name}: {}", linted.stderr);
    }
}

#[test]
fn json_holds_the_same_as_yaml() {
    let once = printed("full");
    assert_eq!(once, printed("full"));
    let json = outrider(&["migrate", "-o", "json", "-f", &input("full")], "").stdout;
    let yaml: Value = engine::yaml::read(&once).unwrap().remove(0).value;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), yaml);
    let list = outrider(&["migrate", "-o", "json", &input("canary")], "").stdout;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()["items"].as_array().unwrap().len(), 2);
}

#[test]
fn bases_are_printed_before_their_canaries_and_the_rest_as_given() {
    let text = ["canary", "simple"].map(|name| fs::read_to_string(input(name)).unwrap()).join("---\n");
    let list = outrider(&["migrate", "-o", "json", "-"], &text);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|set| set["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["base", "test-sidecarset", "canary"]);
}

#[test]
fn a_note_about_every_set_is_printed_once() {
    let ran =
        outrider(&["migrate", "-"], &["simple", "full"].map(|it| fs::read_to_string(input(it)).unwrap()).join("---\n"));
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("a pod may opt out by the annotation").count(), 1, "{}", ran.stderr);
    let again = ran.stderr.lines().find(|line| line.ends_with(": as for SidecarSet \"test-sidecarset\"")).unwrap();
    assert!(again.contains("spec.optOut, ") || again.contains(", spec.optOut"), "{again}");
}

#[test]
fn a_pinned_version_is_looked_for_among_the_revisions_of_its_own_set_alone() {
    let [set, revision] = ["partial", "partial-revision"].map(|name| fs::read_to_string(input(name)).unwrap());
    let other = set.replace("name: partial", "name: other").replace("name: sidecar", "name: other");
    let ran = outrider(&["migrate", "-"], &format!("{set}---\n{other}---\n{revision}"));
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches(r#"customVersion: "1""#).count(), 2, "{}", ran.stdout);
    let misspelt = set.replace(r#"customVersion: "1""#, r#"customVersion: "9""#);
    let ran = outrider(&["migrate", "-"], &format!("{misspelt}---\n{other}---\n{revision}"));
    assert_eq!(ran.outcome, CommandOutcome::Refused, "{}", ran.stderr);
}

/// A folder may hold both while they are migrated: those that are done are named, and not printed.
#[test]
fn sets_that_are_outriders_already_are_noted_and_left_out() {
    let text = fs::read_to_string(input("simple")).unwrap();
    let ours = printed("simple");
    let note =
        "note: SidecarSet \"test-sidecarset\": it is Outrider's already: it needs no migration, and is left out\n";
    let both = outrider(&["migrate", "-"], &format!("{ours}---\n{text}"));
    assert_eq!((both.outcome, &both.stdout), (CommandOutcome::Fine, &ours), "{}", both.stderr);
    assert!(both.stderr.starts_with(&format!("stdin:1: {note}")), "{}", both.stderr);
    let done = outrider(&["migrate", "-"], &ours);
    assert_eq!(
        (done.outcome, done.stderr),
        (CommandOutcome::BadInput, format!("stdin:1: {note}error: no sidecarsets.apps.kruise.io object in -\n"))
    );
}

#[test]
fn sets_come_from_stdin_too_and_nothing_else_is_printed() {
    let text = fs::read_to_string(input("simple")).unwrap();
    let other = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n";
    let ran = outrider(&["migrate", "--quiet", "-"], &format!("{other}{text}"));
    assert_eq!((ran.stdout, ran.stderr.as_str()), (printed("simple"), ""));
    let none = outrider(&["migrate", "-"], other.trim_end_matches("---\n"));
    assert_eq!(none.outcome, CommandOutcome::BadInput);
    assert_eq!(none.stderr, "error: no sidecarsets.apps.kruise.io object in -\n");
    let flag = outrider(&["migrate", "-", "--context", "prod"], &text);
    assert_eq!(flag.outcome, CommandOutcome::BadInput);
    assert_eq!(flag.stderr, "error: --context needs --cluster: without it no cluster is read\n");
}

/// A pod with the printed sets, and what else decides.
fn injected(name: &str, more: &str, pod: &Value) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("sets.yaml");
    fs::write(&sets, format!("{}---\n{more}", printed(name))).unwrap();
    let sets = sets.display().to_string();
    let ran = outrider(&["render", "--manifests", &sets, "-f", "-", "-o", "json"], &pod.to_string());
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{name}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: web}}\n";

fn pod(more: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "nginx"}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx:1"}]},
    });
    json_patch::merge(&mut pod, more);
    pod
}

fn names(pod: &Value, list: &str) -> Vec<String> {
    let containers = pod["spec"][list].as_array().unwrap();
    containers.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
}

fn container<'p>(pod: &'p Value, name: &str) -> &'p Value {
    let lists = ["containers", "initContainers"].into_iter().filter_map(|list| pod["spec"][list].as_array());
    lists.flatten().find(|container| container["name"] == name).unwrap()
}

/// `name=value` of each variable.
fn env(container: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("from").to_owned();
    let env = container["env"].as_array().unwrap().iter();
    env.map(|one| format!("{}={}", text(&one["name"]), text(&one["value"]))).collect()
}

/// "Create this pod and now you will find it's injected with sidecar1", and the volume that it mounts is merged into the pod's.
#[test]
fn the_first_example_of_the_manual_injects_its_container_and_volume() {
    let pod = injected("simple", NAMESPACE, &pod(&json!({})));
    assert_eq!(names(&pod, "containers"), ["sidecar1", "nginx"]);
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "log-volume", "emptyDir": {}}]));
    assert_eq!(container(&pod, "sidecar1")["command"], json!(["sleep", "999d"]));
}

/// `podInjectPolicy`, init containers in the ascending order of their names, `shareVolumePolicy: enabled`, the pull secret once.
#[test]
fn containers_are_where_the_manual_puts_them() {
    let mounts = json!([{"name": "cache", "mountPath": "/cache"}]);
    let own = json!({"spec": {
        "containers": [{"name": "nginx", "image": "nginx:1", "volumeMounts": mounts}],
        "initContainers": [{"name": "z-own", "image": "own:1"}],
        "volumes": [{"name": "cache", "emptyDir": {}}],
    }});
    let pod = injected("full", NAMESPACE, &pod(&own));
    assert_eq!(names(&pod, "containers"), ["before", "nginx", "after"]);
    assert_eq!(names(&pod, "initContainers"), ["z-own", "a-first", "b-second"]);
    assert_eq!(container(&pod, "before")["volumeMounts"], mounts);
    assert_eq!(container(&pod, "after")["volumeMounts"], json!([{"name": "after-data", "mountPath": "/data"}]));
    assert_eq!(env(container(&pod, "before")), ["KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT=true", "IS_INJECTED=true"]);
    assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "sidecars"}]));
}

/// A pair: the first container with the image, the second with the empty one, and their versions.
#[test]
fn a_hot_upgrade_injects_two_containers() {
    let pod = injected("hot-upgrade", NAMESPACE, &pod(&json!({})));
    assert_eq!(names(&pod, "containers"), ["sidecar-1", "sidecar-2", "nginx"]);
    let images = ["sidecar-1", "sidecar-2"].map(|name| container(&pod, name)["image"].as_str().unwrap());
    assert_eq!(images, ["sidecar:1.0", "empty:1.0"]);
    let env = env(container(&pod, "sidecar-2"));
    assert_eq!(env, ["IS_INJECTED=true", "SIDECARSET_VERSION=from", "SIDECARSET_VERSION_ALT=from"]);
}

/// Partial: some pods get the pinned revision, the others the current form, here always the same ones.
#[test]
fn a_partial_injection_gives_some_pods_the_pinned_revision() {
    let more = format!("{NAMESPACE}---\n{}", fs::read_to_string(input("partial-revision")).unwrap());
    let mut images: Vec<String> = (0..20)
        .map(|number| {
            let pod = injected("partial", &more, &pod(&json!({"metadata": {"name": format!("web-{number}")}})));
            container(&pod, "sidecar")["image"].as_str().unwrap().to_owned()
        })
        .collect();
    images.sort();
    images.dedup();
    assert_eq!(images, ["sidecar:1", "sidecar:2"]);
}

/// The canary takes the place of its base in pods that both select.
#[test]
fn a_canary_takes_the_place_of_its_base() {
    for (labels, image) in [(json!({}), "sidecar:1"), (json!({"track": "canary"}), "sidecar:2")] {
        let pod = injected("canary", NAMESPACE, &pod(&json!({"metadata": {"labels": labels}})));
        assert_eq!(container(&pod, "sidecar")["image"], image);
    }
}

/// `namespace` takes the place of a selector, and no namespace with the label `control-plane` is reached by labels.
#[test]
fn namespaces_are_those_that_openkruise_reaches() {
    let of = |labels: &str, name: &str| {
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {labels}}}\n");
        names(&injected("namespaces", &namespace, &pod(&json!({"metadata": {"namespace": name}}))), "containers")
    };
    assert_eq!(of("{team: other}", "shop"), ["by-name", "by-names", "nginx"]);
    assert_eq!(of("{team: web}", "stock"), ["by-label", "by-names", "nginx"]);
    assert_eq!(of("{team: web}", "elsewhere"), ["by-label", "nginx"]);
    assert_eq!(of("{team: web, control-plane: manager}", "elsewhere"), ["nginx"]);
}

/// Variables by a container's name and by a label; the sidecar's own take precedence; those of a shared `subPathExpr` come along.
#[test]
fn variables_are_transferred() {
    let own = json!({
        "metadata": {"labels": {"biz": "nginx"}},
        "spec": {
            "containers": [{
                "name": "nginx", "image": "nginx:1",
                "env": [
                    {"name": "PROXY_IP", "value": "127.0.0.1"}, {"name": "TZ", "value": "CET"}, {"name": "POD_NAME", "value": "bar"},
                    {"name": "DIR", "value": "d"},
                ],
                "volumeMounts": [{"name": "data", "mountPath": "/data", "subPathExpr": "foo/$(DIR)"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    });
    let pod = injected("transfer-env", NAMESPACE, &pod(&own));
    let found = env(container(&pod, "sidecar"));
    assert_eq!(found, ["TZ=UTC", "IS_INJECTED=true", "PROXY_IP=127.0.0.1", "POD_NAME=bar", "DIR=d"]);
    assert_eq!(container(&pod, "sidecar")["volumeMounts"][0]["subPathExpr"], "foo/$(DIR)");
}

/// Half of the sum of the limits of 200m and 400m is 300m, of the requests of 50m and 100m it is 75m; constants are as written.
#[test]
fn resources_are_computed_from_the_pods_own_containers() {
    let of = |name: &str, limit: &str, request: &str| {
        let (limits, requests) = (json!({"cpu": limit, "memory": "400Mi"}), json!({"cpu": request, "memory": "10Mi"}));
        json!({"name": name, "image": "a:1", "resources": {"limits": limits, "requests": requests}})
    };
    let own = json!({"spec": {"containers": [of("nginx", "200m", "50m"), of("more", "400m", "100m")]}});
    let pod = injected("resources-policy", NAMESPACE, &pod(&own));
    let expected = json!({"limits": {"cpu": "300m", "memory": "200Mi"}, "requests": {"cpu": "75m", "memory": "100Mi"}});
    assert_eq!(container(&pod, "sidecar")["resources"], expected);
}

/// `MergePatchJson` merges into the pod's annotation, `Retain` adds what is not there.
#[test]
fn annotations_are_merged_and_kept() {
    let own = json!({"metadata": {"annotations": {"oom-score": "{\"envoy\": 2}", "key1": "own"}}});
    let pod = injected("patch-pod-metadata", NAMESPACE, &pod(&own));
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(
        (&annotations["oom-score"], &annotations["key1"]),
        (&r#"{"envoy":2,"log-agent":1}"#.into(), &"own".into())
    );
}
