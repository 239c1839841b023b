//! `CronJob`s that a webhook would refuse, stored while there is none: they keep no other object from being read, nor any namespace
//! from being deleted.

use cluster::{Cluster, Namespace, Options};
use outrider::workshop::cronjob::vocabulary::{V1_SCHEDULE, V2_SCHEDULE};
use serde_json::{Value, json};

use crate::cronjob::{KINDS, cronjob, registered};
use crate::process::{Outrider, eventually, install_of};

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

fn names(cluster: &Cluster, what: &[&str]) -> Vec<String> {
    let listed = cluster.kubectl_ok(&[&["get", "-o", "name"], what].concat(), None).unwrap();
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
    outrider.end();
}
