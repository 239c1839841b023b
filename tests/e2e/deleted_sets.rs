//! What goes with a set that is deleted, and what stays.

use serde_json::Value;

use crate::process::eventually;
use crate::room::{POD, Room, SET, containers};

#[test]
#[ignore = "needs a control plane: make test"]
fn the_revisions_of_a_deleted_set_go_without_finalizers_and_its_pods_stay_as_they_are() {
    let room = Room::new("deleted");
    let revisions = || -> Vec<Value> {
        let all = room.get(&["controllerrevisions", "-n", "outrider-system"]);
        let is_of_set = |it: &&Value| it["metadata"]["ownerReferences"][0]["name"] == room.name();
        all["items"].as_array().unwrap().iter().filter(is_of_set).cloned().collect()
    };
    room.apply_set(SET);
    room.pod(POD);
    room.eventually_counts("the pod is counted", ["1", "1", "1"]);
    room.apply_set(&(SET.replace("proxy:1", "proxy:2") + "  updateStrategy: {paused: true}\n"));
    eventually("both forms are revisions", || revisions().len() == 2);
    let set = room.get(&["sidecarset", room.name()]);
    for object in revisions().iter().chain([&set]) {
        assert_eq!(object["metadata"]["finalizers"], Value::Null, "{}", object["metadata"]["name"]);
    }
    let before = room.get(&["pod", "web"]);

    // Not `--cascade=foreground`, which adds a finalizer of the API server's own.
    room.kubectl_ok(&["delete", "sidecarset", room.name()], None);
    eventually("its revisions are gone", || revisions().is_empty());
    let after = room.get(&["pod", "web"]);
    assert_eq!(containers(&after), ["proxy", "app"]);
    assert_eq!((&after["metadata"], &after["spec"]), (&before["metadata"], &before["spec"]));
}
