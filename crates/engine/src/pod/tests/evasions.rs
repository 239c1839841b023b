//! The table of evasions, on the engine alone. `tests/e2e/evasions.rs` goes through it with a real API server.

#[path = "../../../../../tests/evasions/mod.rs"]
#[allow(clippy::panic, dead_code)]
mod table;

use admission::Decision;
use serde_json::Value;

use self::table::{LINUX_LINE, Outcome, SET, System, WINDOWS_LINE, outcome, plain, rows};
use crate::testing::Cluster;
use crate::yaml;

const ROOM: &str = "pay";

fn read(text: &str) -> Value {
    yaml::read(text).unwrap().swap_remove(0).value
}

/// The pod as it would be stored, or the refusal.
fn admit(cluster: &Cluster, pod: &Value) -> Result<Value, String> {
    let mutated = cluster.mutate(pod);
    if mutated.decision == Decision::Denied {
        return Err(mutated.message);
    }
    let again = cluster.mutate(&mutated.pod);
    assert_eq!((again.decision, again.patch), (Decision::Allowed, None), "the second pass adds nothing");
    let validated = cluster.validate(&mutated.pod);
    if validated.decision == Decision::Denied { Err(validated.message) } else { Ok(mutated.pod) }
}

#[test]
fn nobody_who_may_create_a_pod_evades_a_must() {
    let set = SET.replace("ROOM", ROOM);
    let cluster = Cluster::from_objects(&[read(&set)]);
    let windows = set.replace(LINUX_LINE, WINDOWS_LINE);
    assert!(windows.contains(WINDOWS_LINE), "the set is not what it was");
    let windows = Cluster::from_objects(&[read(&windows)]);
    let plain = plain(ROOM);
    let carried = admit(&cluster, &plain).unwrap();
    for row in rows(ROOM, read).iter().filter(|row| !row.cluster_only) {
        let pod = row.tried_on(if row.from_carried { &carried } else { &plain });
        let cluster = if row.system == System::Windows { &windows } else { &cluster };
        match admit(cluster, &pod) {
            Ok(stored) => assert_eq!(outcome(&stored), row.outcome, "{}", row.name),
            Err(message) => {
                assert_eq!(row.outcome, Outcome::Refused, "{}: {message}", row.name);
                assert!(message.contains(&row.says), "{}: {message}", row.name);
            }
        }
        // Validation alone refuses what another webhook may have made of the pod after injection.
        if (row.from_carried || row.system == System::Windows) && row.outcome == Outcome::Refused {
            assert_eq!(cluster.validate(&pod).decision, Decision::Denied, "{}", row.name);
        }
    }
}
