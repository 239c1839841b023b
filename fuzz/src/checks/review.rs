//! The body of a request, at each endpoint.

use serde_json::Value;

use super::cluster::{ALL, Cluster, MUTATE_SET, PLUGINS, VALIDATE_SET};
use super::pod;

/// Bytes of a reply for each byte of the body, at most, and those that what is injected takes.
const OF_EACH_BYTE: usize = 16;
const OF_OBJECTS: usize = 1 << 20;

/// Checks the replies of all endpoints to a body.
pub fn check(body: &[u8]) {
    for path in ALL[0].paths() {
        if let Ok(reply) = ALL[0].answer(path, body) {
            let most = OF_OBJECTS + OF_EACH_BYTE * body.len();
            assert!(reply.len() <= most, "{path}: {} bytes for a body of {}", reply.len(), body.len());
            let reply: Value = serde_json::from_slice(&reply).expect("a reply is JSON");
            assert!(reply["response"]["uid"].is_string(), "{path}: a reply without a uid");
        }
    }
    // Written anew, no field is there twice, and a reply can be compared with what was sent.
    let Ok(review) = serde_json::from_slice::<Value>(body) else { return };
    if !review["request"]["uid"].is_string() {
        return;
    }
    for cluster in ALL.iter() {
        for path in cluster.paths() {
            let Some(reply) = cluster.ask(path, &review) else { continue };
            reply.applied(&review["request"]["object"]);
        }
        pod_holds(cluster, &review["request"]);
    }
    set_holds(&ALL[0], &review);
    plugins_hold(&PLUGINS, &review);
}

/// What plugins change, they change once.
fn plugins_hold(cluster: &Cluster, review: &Value) {
    for path in cluster.paths() {
        let Some(first) = cluster.ask(path, review).filter(|reply| reply.patch.is_some()) else { continue };
        let mut changed = review.clone();
        changed["request"]["object"] = first.applied(&review["request"]["object"]);
        if let Some(second) = cluster.ask(path, &changed) {
            assert!(second.patch.is_none(), "{path}: changes on changes: {:?}", second.patch);
        }
    }
}

fn pod_holds(cluster: &Cluster, request: &Value) {
    // A creation without an object is for validation to refuse.
    if request["operation"] == "CREATE" && request["kind"]["kind"] == "Pod" && request["object"].is_object() {
        pod::holds(cluster, request["namespace"].as_str().unwrap_or_default(), &request["object"]);
    }
}

/// Defaults are filled in once.
fn set_holds(cluster: &Cluster, review: &Value) {
    if review["request"]["kind"]["kind"] != "SidecarSet" {
        return;
    }
    let Some(first) = cluster.ask(MUTATE_SET, review) else { return };
    let mut defaulted = review.clone();
    defaulted["request"]["object"] = first.applied(&review["request"]["object"]);
    if let Some(second) = cluster.ask(MUTATE_SET, &defaulted) {
        assert!(second.patch.is_none(), "defaults on defaults: {:?}", second.patch);
    }
    cluster.ask(VALIDATE_SET, &defaulted);
}
