//! Pods that stay as they were sent.

use crate::process::eventually;
use crate::room::{POD, Room, SET, containers};

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_in_kube_system_is_untouched() {
    let room = Room::new("system");
    room.apply_set(SET);
    let (cluster, name) = (&room.stage.cluster, room.name());
    let label = format!("--labels=app={name}");
    let in_system = |args: &[&str]| cluster.kubectl(&[&["--namespace=kube-system"], args].concat(), None).unwrap();
    let created = in_system(&["run", name, "--image=app:1", &label, "-o", "json"]);
    let pod = serde_json::from_str(&created.stdout).unwrap_or_else(|_| panic!("{}", created.stderr));
    assert_eq!(containers(&pod), [name]);
    assert_eq!(pod["metadata"].get("annotations"), None);
    in_system(&["delete", "pod", name, "--wait=false"]);
    // The same pod elsewhere is not.
    assert_eq!(containers(&room.pod(POD)), ["proxy", "app"]);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn an_excluded_namespace_is_untouched_until_its_label_goes() {
    let room = Room::new("excluded");
    room.apply_set(SET);
    let (cluster, name) = (&room.stage.cluster, room.name());
    cluster.kubectl_ok(&["label", "namespace", name, "outrider.dev/exclude="], None).unwrap();
    let dry = POD.replace("name: web", "name: later");
    let would_have = |expected: &[&str]| {
        let shown = room.kubectl_ok(&["apply", "--dry-run=server", "-o", "json", "-f", "-"], Some(&dry));
        containers(&serde_json::from_str(&shown).unwrap()) == expected
    };
    // The API server and Outrider learn of a label by watches.
    eventually("pods are left alone", || would_have(&["app"]));
    assert_eq!(containers(&room.pod(POD)), ["app"]);
    cluster.kubectl_ok(&["label", "namespace", name, "outrider.dev/exclude-"], None).unwrap();
    eventually("pods are injected again", || would_have(&["proxy", "app"]));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_opts_out_by_annotation_unless_the_set_denies_it() {
    let room = Room::new("opting-out");
    room.apply_set(SET);
    let opting_out = |name: &str, value: &str| {
        let metadata = format!("name: {name}, annotations: {{outrider.dev/skip: '{value}'}}");
        POD.replace("name: web", &metadata)
    };
    for (name, value, carried) in [
        ("all", "true", &["app"][..]),
        ("by-name", "another,ROOM", &["app"]),
        ("another", "another", &["proxy", "app"]),
    ] {
        assert_eq!(containers(&room.pod(&opting_out(name, value))), carried, "{value}");
    }
    room.apply_set(&format!("{SET}  optOut: Denied\n"));
    let told = room.kubectl(&["apply", "-f", "-"], Some(&opting_out("denied", "true")));
    let warning =
        "Warning: SidecarSet \"ROOM\" lets no pod opt out (spec.optOut: Denied); outrider.dev/skip is ignored for it\n";
    assert_eq!(told.stderr, warning.replace("ROOM", room.name()), "once, though the pod is reviewed twice");
    assert_eq!(containers(&room.get(&["pod", "denied"])), ["proxy", "app"]);
}
