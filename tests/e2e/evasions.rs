//! The table of evasions, through a real API server, as a user who may create pods in one namespace and nothing else.

#[path = "../evasions/mod.rs"]
#[allow(dead_code)]
mod table;

use serde_json::{Value, json};

use self::table::{Outcome, SET, outcome, plain, rows};
use crate::room::Room;

const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pods}
rules: [{apiGroups: [''], resources: [pods], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
";

/// The pod as it would be stored, or the refusal.
fn create(room: &Room, pod: &Value) -> Result<Value, String> {
    let create = ["create", "--as=mallory", "--dry-run=server", "-o", "json", "-f", "-"];
    let output = room.kubectl(&create, Some(&pod.to_string()));
    if output.success() { Ok(serde_json::from_str(&output.stdout).unwrap()) } else { Err(output.stderr) }
}

/// What of a stored pod can be created again.
fn again(stored: &Value) -> Value {
    let metadata = &stored["metadata"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"]},
        "spec": stored["spec"],
    })
}

fn read(text: &str) -> Value {
    engine::yaml::read(text).unwrap().swap_remove(0).value
}

#[test]
#[ignore = "needs a control plane: make test"]
fn nobody_who_may_create_a_pod_evades_a_must() {
    let room = Room::new("evasions");
    room.apply_set(SET);
    room.apply(RIGHTS);
    let plain = plain(room.name());
    let carried = again(&create(&room, &plain).unwrap());
    assert_eq!(outcome(&carried), Outcome::Carried);
    let mut wrong = Vec::new();
    for row in rows(room.name(), read).iter().filter(|row| !row.unit_only) {
        let pod = row.tried_on(if row.from_carried { &carried } else { &plain });
        let found = create(&room, &pod);
        let is_right = match &found {
            Ok(stored) => outcome(stored) == row.outcome,
            Err(message) => row.outcome == Outcome::Refused && message.replace("\\\"", "\"").contains(&row.says),
        };
        if !is_right {
            let found = found.map(|stored| outcome(&stored));
            wrong.push(format!("{}: expected {:?} {:?}, found {found:?}", row.name, row.outcome, row.says));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // The API server takes it from what is posted, and hands it on where server-side apply creates.
    let mut leaving = plain.clone();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let apply = ["apply", "--as=mallory", "--server-side", "--dry-run=server", "-o", "json", "-f", "-"];
    let output = room.kubectl(&apply, Some(&leaving.to_string()));
    assert!(output.success(), "{}", output.stderr);
    let stored: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(outcome(&stored), Outcome::Carried, "{stored}");
}
