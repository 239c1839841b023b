//! What a user reads when a SidecarSet is refused.

use crate::room::{Room, SET};

const MANY_FAULTS: &str = "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: ROOM}
spec:
  selector: {matchLabels: {app: 'not a label!'}}
  namespace: default
  namespaceSelector: {matchLabels: {team: web}}
  containers:
  - {name: Proxy_1, image: 'proxy:1'}
  - {name: agent, image: 'agent:1', volumeMounts: [{name: nowhere, mountPath: /data}]}
  - {name: shared, image: 'shared:1', transferEnv: [{sourceContainerName: app}]}
";

#[test]
#[ignore = "needs a control plane: make test"]
fn every_fault_of_a_set_is_told_at_once() {
    let room = Room::new("faulty");
    let output = room.kubectl(&["apply", "-f", "-"], Some(MANY_FAULTS));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stderr, include_str!("golden/many-faults.txt").replace("ROOM", room.name()));
    let found = room.kubectl(&["get", "sidecarset", room.name()], None);
    assert!(!found.success(), "nothing is stored: {}", found.stdout);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn what_the_schema_refuses_is_told_by_the_api_server() {
    let room = Room::new("schema");
    let output = room.kubectl(&["apply", "-f", "-"], Some(&format!("{SET}  clashPolicy: Maybe\n")));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stderr, include_str!("golden/schema.txt").replace("ROOM", room.name()));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_change_that_breaks_a_set_is_refused_and_the_good_one_stays() {
    let room = Room::new("broken");
    room.apply_set(SET);
    let output = room.kubectl(&["apply", "-f", "-"], Some(&SET.replace("'proxy:1'", "''")));
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stderr, include_str!("golden/no-image.txt").replace("ROOM", room.name()));
    let stored = room.get(&["sidecarset", room.name()]);
    assert_eq!(stored["spec"]["containers"][0]["image"], "proxy:1");
}
