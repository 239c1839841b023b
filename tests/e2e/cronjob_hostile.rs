//! `CronJob`s that a webhook would refuse, stored while there is none: they keep no other object from being read, nor any namespace
//! from being deleted.

use std::collections::{BTreeMap, BTreeSet};

use admission::raw::{member, members, string};
use cluster::{Cluster, Namespace, Options};
use outrider::workshop::cronjob::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::beside::AtRest;
use crate::cronjob::{KINDS, cronjob, registered};
use crate::hostile_objects;
use crate::process::{Outrider, eventually, eventually_counts, install_of};
use crate::stored_attacks::reviews_of;

/// Bytes of annotations that the API server stores at most.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

const VERSIONS: [&str; 2] = ["cronjobs.v1.batch.outrider.dev", "cronjobs.v2.batch.outrider.dev"];

/// Objects by name, as JSON: some are deeper than a value that we would decode.
fn hostile() -> Vec<(String, String)> {
    let annotated = |name: &str, schedule: &str, annotations: Value| {
        let mut object = cronjob(name, &json!({"schedule": schedule, "suspend": true}));
        object["metadata"]["annotations"] = annotations;
        (name.to_owned(), object.to_string())
    };
    let deep = |name: &str, depth: usize| {
        let template = format!("{}0{}", r#"{"a":["#.repeat(depth / 2), "]}".repeat(depth / 2));
        let mut object = cronjob(name, &json!({"schedule": "@hourly", "suspend": true}));
        object["spec"]["jobTemplate"] = json!({"deep": 0});
        (name.to_owned(), object.to_string().replace(r#"{"deep":0}"#, &template))
    };
    let nested = format!("{{\"minute\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    vec![
        annotated("full", "@every 5h", json!({"a": "x".repeat(ANNOTATIONS_MAX_BYTES - 1)})),
        annotated("nearly-full", "@every 5h", json!({"a": "x".repeat(ANNOTATIONS_MAX_BYTES - 20)})),
        annotated("forged-list", "0 0 1 1 *", json!({V2_SCHEDULE: nested, V1_SCHEDULE: nested})),
        annotated("forged-number", "* * * * *", json!({V2_SCHEDULE: r#"{"minute":5}"#})),
        annotated("forged-null", "5 * * * *", json!({V2_SCHEDULE: r#"{"minute":"5","hour":null}"#})),
        annotated("forged-field", "5 * * * *", json!({V2_SCHEDULE: r#"{"minute":"5","second":"*"}"#})),
        annotated(
            "large",
            "@every 5h",
            json!({"a": "x".repeat(ANNOTATIONS_MAX_BYTES / 2), V1_SCHEDULE: "y".repeat(100_000)}),
        ),
        annotated("nonsense", &"no schedule ".repeat(80), json!({})),
        deep("deep-200", 200),
        deep("deep-2000", 2_000),
    ]
}

/// What kubectl prints. 429 "storage is (re)initializing" is no answer: the API server's cache begins anew for a while after a conversion
/// that failed.
fn read(cluster: &Cluster, args: &[&str]) -> String {
    let mut read = None;
    eventually("the objects are read", || match cluster.kubectl_ok(args, None) {
        Ok(text) => {
            read = Some(text);
            true
        }
        Err(error) if error.to_string().contains("(re)initializing") => false,
        Err(error) => panic!("{error}"),
    });
    read.unwrap()
}

fn names(cluster: &Cluster, what: &[&str]) -> Vec<String> {
    let listed = read(cluster, &[&["get", "-o", "name"], what].concat());
    let mut names: Vec<String> = listed.lines().filter_map(|line| Some(line.rsplit_once('/')?.1.to_owned())).collect();
    names.sort();
    names
}

fn is_gone(cluster: &Cluster, namespace: &Namespace<'_>) {
    cluster.kubectl_ok(&["delete", "namespace", namespace.name(), "--wait=false"], None).unwrap();
    eventually("the namespace goes", || {
        !cluster.kubectl(&["get", "namespace", namespace.name()], None).unwrap().success()
    });
}

#[test]
#[ignore = "needs a control plane: make test"]
fn hostile_objects_are_listed_and_deleted_in_both_versions_and_keep_no_namespace() {
    // Namespaces are emptied by the controller-manager.
    let cluster = Cluster::start_with(&Options { kwok: false, ..Options::default() }).unwrap();
    install_of(&cluster, &[KINDS]);
    let rooms = ["hostile-a", "hostile-b"].map(|name| cluster.namespace(name).unwrap());
    let foreign = cluster.namespace("foreign").unwrap();
    let mut stored = Vec::new();
    for room in &rooms {
        for (name, object) in hostile() {
            room.kubectl_ok(&["create", "-f", "-"], Some(&object)).unwrap();
            stored.push(name);
        }
    }
    foreign.kubectl_ok(&["create", "-f", "-"], Some(&cronjob("good", &json!({"suspend": true})).to_string())).unwrap();
    stored.push("good".to_owned());
    stored.sort();

    let outrider = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &[KINDS]);
    registered(&cluster, &outrider);
    let server = reviews_of(&cluster, &outrider);
    let beside = AtRest::of(&server).beside(&server, "of CronJobs that are listed and deleted in both versions");
    for version in VERSIONS {
        assert_eq!(names(&cluster, &["-A", version]), stored, "{version}");
        // Too deep for a value of ours.
        let deep = rooms[0].kubectl_ok(&["get", "-o", "json", version, "deep-200"], None).unwrap();
        assert_eq!(deep.matches("\"a\": [").count(), 100, "{deep}");
    }
    is_gone(&cluster, &foreign);
    // One by one in both versions, and the rest with its namespace.
    for (name, version) in
        [("full", VERSIONS[0]), ("nearly-full", VERSIONS[1]), ("deep-2000", VERSIONS[1]), ("forged-list", VERSIONS[1])]
    {
        rooms[0].kubectl_ok(&["delete", version, name, "--timeout=30s"], None).unwrap();
    }
    for room in &rooms {
        is_gone(&cluster, room);
    }
    assert_eq!(names(&cluster, &["-A", VERSIONS[1]]), Vec::<String>::new());
    beside.end();
    outrider.end();
}

/// Objects of any kind in all, in three namespaces; their seed, unless the environment has another.
const MANY: usize = 201;
const SEED: u64 = 1;

/// All objects of a version in a namespace by name, as the API server writes them.
fn listed(cluster: &Cluster, version: &str, namespace: &Namespace<'_>) -> BTreeMap<String, Box<RawValue>> {
    let path = format!("/apis/batch.outrider.dev/{version}/namespaces/{}/cronjobs", namespace.name());
    let list: Box<RawValue> = serde_json::from_str(&read(cluster, &["get", "--raw", &path])).unwrap();
    let items: Vec<&RawValue> = serde_json::from_str(member(&list, "items").unwrap().get()).unwrap();
    let name = |item: &RawValue| string(member(member(item, "metadata")?, "name")?).map(std::borrow::Cow::into_owned);
    items.into_iter().map(|item| (name(item).unwrap(), item.to_owned())).collect()
}

/// What must be the same in both versions: all but the schedule and what remembers it. Compared as text, so that no depth, number or
/// character is lost in comparing.
fn lasting(object: &RawValue) -> BTreeMap<String, String> {
    let mut lasting = BTreeMap::new();
    for (part, left_out) in [("metadata", "annotations"), ("spec", "schedule")] {
        members(member(object, part).unwrap(), |key, value| {
            if key.name() != left_out {
                lasting.insert(format!("{part}.{}", key.name()), value.get().to_owned());
            }
        });
    }
    if let Some(annotations) = member(member(object, "metadata").unwrap(), "annotations") {
        members(annotations, |key, value| {
            if ![V1_SCHEDULE, V2_SCHEDULE].contains(&key.name()) {
                lasting.insert(format!("annotation {}", key.name()), value.get().to_owned());
            }
        });
    }
    lasting
}

/// Objects from a seed, a third in each namespace. Of each can be read in both versions what is not the schedule; one namespace is
/// emptied through v1, one through v2, and one is deleted as a whole.
#[test]
#[ignore = "needs a control plane: make test"]
fn every_stored_object_can_be_read_and_deleted_in_both_versions() {
    let seed = std::env::var("OUTRIDER_HOSTILE_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    println!("OUTRIDER_HOSTILE_SEED={seed}");
    let cluster = Cluster::start_with(&Options { kwok: false, ..Options::default() }).unwrap();
    install_of(&cluster, &[KINDS]);
    let rooms = ["through-v1", "through-v2", "as-a-whole"].map(|name| cluster.namespace(name).unwrap());
    let objects = hostile_objects::cronjobs(seed, MANY);
    let parts: Vec<_> = objects.chunks(MANY / rooms.len()).collect();
    for (room, part) in rooms.iter().zip(&parts) {
        // A request to etcd for each; one of all would be too large for kubectl.
        for few in part.chunks(10) {
            let texts: Vec<&str> = few.iter().map(|(_, object)| object.as_str()).collect();
            let list = format!(r#"{{"apiVersion":"v1","kind":"List","items":[{}]}}"#, texts.join(","));
            room.kubectl_ok(&["create", "--validate=false", "-f", "-"], Some(&list)).unwrap();
        }
    }

    let outrider = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &[KINDS]);
    registered(&cluster, &outrider);
    for (room, part) in rooms.iter().zip(&parts) {
        let stored: BTreeSet<&String> = part.iter().map(|(name, _)| name).collect();
        let mut unread = stored.clone();
        // The controller writes meanwhile: what changed between the two lists is read again.
        let of_room = stored.len() as u64;
        eventually_counts("every object is read in both versions", of_room, || {
            let (v1, v2) = (listed(&cluster, "v1", room), listed(&cluster, "v2", room));
            assert_eq!(v1.keys().collect::<BTreeSet<_>>(), stored);
            assert_eq!(v2.keys().collect::<BTreeSet<_>>(), stored);
            unread.retain(|&name| {
                let [of_v1, of_v2] = [&v1[name], &v2[name]].map(|object| lasting(object));
                let changed = of_v1["metadata.resourceVersion"] != of_v2["metadata.resourceVersion"];
                assert!(changed || of_v1 == of_v2, "{name} of seed {seed} is another object in v2");
                changed
            });
            of_room - unread.len() as u64
        });
    }
    for (room, version) in rooms.iter().zip(VERSIONS) {
        room.kubectl_ok(&["delete", version, "--all", "--wait=false"], None).unwrap();
        let of_room = MANY / rooms.len();
        eventually_counts("every object is deleted", of_room as u64, || {
            (of_room - names(&cluster, &["--namespace", room.name(), version]).len()) as u64
        });
    }
    for room in &rooms {
        is_gone(&cluster, room);
    }
    assert_eq!(names(&cluster, &["-A", VERSIONS[0]]), Vec::<String>::new());
    outrider.end();
}
