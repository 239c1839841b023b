//! `SidecarSets` in kubectl: defaults, warnings, help, server-side apply.

use crate::process::eventually;
use crate::room::{Room, SET};

#[test]
#[ignore = "needs a control plane: make test"]
fn defaults_are_stored_and_can_be_read() {
    let room = Room::new("defaults");
    room.apply(SET);
    let printed = room.kubectl_ok(&["get", "sidecarset", room.name(), "-o", "yaml"], None);
    let (_, spec) = printed.split_once("\nspec:\n").unwrap();
    let spec = spec.split("\nstatus:").next().unwrap();
    assert_eq!(spec.trim_end(), include_str!("golden/defaults.txt").replace("ROOM", room.name()).trim_end());
}

#[test]
#[ignore = "needs a control plane: make test"]
fn an_unknown_field_of_a_container_is_kept_with_a_warning() {
    let room = Room::new("unknown");
    let manifest = SET.replace("image: 'proxy:1'", "image: 'proxy:1', imagePullPolcy: Always");
    let output = room.kubectl(&["apply", "--validate=warn", "-f", "-"], Some(&manifest));
    assert!(output.success(), "{}", output.stderr);
    assert_eq!(output.stderr, include_str!("golden/unknown-field.txt"));
    let stored = room.get(&["sidecarset", room.name()]);
    assert_eq!(stored["spec"]["containers"][0]["imagePullPolcy"], "Always");
}

/// `KUBE_VERSION=v1.30.14` shows the other side of it.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_set_whose_pods_the_api_server_is_too_old_for_is_taken_with_a_warning() {
    let room = Room::new("too-new");
    let minor = room.stage.cluster.minor_version();
    let manifest = SET.replace("image: 'proxy:1'", "image: 'proxy:1', env: [{name: 1st}]");
    let output = room.kubectl(&["apply", "-f", "-"], Some(&manifest));
    assert!(output.success(), "{}", output.stderr);
    let expected = format!(
        "Warning: spec.containers[0].env[0].name: the API server refuses pods with variables of such a name: it is Kubernetes 1.{minor}, \
         and 1.32 is the first that takes them\n"
    );
    assert_eq!(output.stderr, if minor < 32 { expected } else { String::new() });
}

#[test]
#[ignore = "needs a control plane: make test"]
fn kubectl_explains_the_fields() {
    let room = Room::new("explained");
    // The API server publishes the schema of a new kind some time after it serves it.
    let mut printed = String::new();
    eventually("the schema is published", || {
        let output = room.kubectl(&["explain", "sidecarset.spec.containers"], None);
        let published = output.success();
        printed = output.stdout;
        published
    });
    for expected in [
        "KIND:       SidecarSet",
        "FIELD: containers <[]Object>",
        "podInjectPolicy\t<string>",
        "\n  name\t<string> -required-",
    ] {
        assert!(printed.contains(expected), "{expected:?} in\n{printed}");
    }
    let policy = room.kubectl_ok(&["explain", "sidecarset.spec.clashPolicy"], None);
    assert!(policy.contains("Refuse") && policy.contains("Skip"), "{policy}");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn applying_the_same_set_again_changes_nothing() {
    let room = Room::new("again");
    room.apply_set(SET);
    for how in [&["apply", "-f", "-"][..], &["apply", "--server-side", "--force-conflicts", "-f", "-"]] {
        // The first server-side apply records its fields.
        room.kubectl_ok(how, Some(SET));
        let before = room.set_at_rest();
        room.kubectl_ok(how, Some(SET));
        assert_eq!(room.get(&["sidecarset", room.name()]), before, "{how:?}");
        assert_eq!(before["metadata"]["generation"], 1);
    }
    // `kubectl apply` says "configured" where a list has got defaults: it compares lists of custom resources as a whole.
    let diff = room.kubectl(&["diff", "-f", "-"], Some(SET));
    assert!(diff.success() && diff.stdout.is_empty(), "{}{}", diff.stdout, diff.stderr);
}
