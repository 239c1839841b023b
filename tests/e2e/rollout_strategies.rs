//! Which pods a rollout updates, and in which order, on the nodes of kwok: there a container restarts when its image changes. Numbers are
//! those of the cases of the reference for `OpenKruise`'s behaviour.

use std::collections::BTreeSet;

use cluster::{Cluster, Options, POD_CHANGES};
use serde_json::{Value, json};

use crate::process::{Outrider, eventually};
use crate::rollout::{applied, condition, counts, deployment, pods, stage_with, status, wait_ready};

/// A cluster of its own, whose pods run in the namespace default.
pub struct Room {
    pub cluster: Cluster,
    outrider: Outrider,
}

impl Room {
    pub fn new() -> Self {
        let (cluster, outrider) =
            stage_with(&Options { kwok_stages: vec![POD_CHANGES.into()], audit: true, ..Options::default() });
        Self { cluster, outrider }
    }

    /// A set for the pods of the app of its name. `proxy` is what its container has beside the name, and `more` are other fields.
    pub fn set(&self, name: &str, strategy: &Value, proxy: &Value, more: &Value) {
        let mut container = json!({"name": format!("{name}-proxy")});
        let mut spec = json!({
            "namespace": "default", "selector": {"matchLabels": {"app": name}}, "updateStrategy": strategy,
        });
        merge(&mut container, proxy);
        spec["containers"] = json!([container]);
        merge(&mut spec, more);
        let set = json!({
            "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec,
        });
        applied(&self.cluster, &set.to_string());
    }

    /// The set with that image and nothing else.
    pub fn image(&self, name: &str, strategy: &Value, image: &str) {
        self.set(name, strategy, &json!({"image": image}), &json!({}));
    }

    /// The first form, which new pods have when this returns.
    pub fn begins(&self, name: &str, strategy: &Value) {
        self.image(name, strategy, "proxy:1");
        wait_ready(&self.cluster, name);
    }

    pub fn pod(&self, app: &str, name: &str, labels: &Value, spec: &Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        });
        merge(&mut pod["metadata"]["labels"], labels);
        merge(&mut pod["spec"], spec);
        applied(&self.cluster, &pod.to_string());
    }

    /// Waits until the set has `[matched, updated, ready, updated and ready]` pods.
    pub fn counts(&self, name: &str, expected: [i64; 4]) {
        eventually(&format!("{name}: {expected:?}"), || counts(&self.cluster, name) == expected);
    }

    pub fn reason(&self, name: &str, type_: &str) -> (String, String) {
        condition(&status(&self.cluster, name), type_)
    }

    /// Names of the app's pods whose container of the set has that image.
    pub fn with_image(&self, app: &str, image: &str) -> BTreeSet<String> {
        let all = pods(&self.cluster, app);
        let has = |pod: &&Value| {
            let containers = pod["spec"]["containers"].as_array().unwrap();
            containers.iter().any(|it| it["name"].as_str().unwrap().ends_with("-proxy") && it["image"] == image)
        };
        all.iter().filter(has).map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Names of the pods that Outrider has patched whose name begins so, in its order, each once.
    fn order(&self, prefix: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for event in self.cluster.audit_events().unwrap() {
            let (object, name) = (&event["objectRef"], event["objectRef"]["name"].as_str().unwrap_or_default());
            let is_update = object["resource"] == "pods" && event["verb"] == "patch" && object["subresource"].is_null();
            let is_ours = event["user"]["username"] == crate::room::USER && event["responseStatus"]["code"] == 200;
            if is_update && is_ours && name.starts_with(prefix) && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    pub fn ends(self) {
        assert_eq!(self.outrider.forbidden(), Vec::<String>::new());
        self.outrider.end();
    }
}

/// Puts all fields into an object.
fn merge(object: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
}

pub fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn case_86_and_88_to_91_a_strategy_says_which_pods_are_updated_and_in_which_order() {
    let room = Room::new();
    stays_begin(&room);
    of_a_hundred_pods_those_that_can_be_updated_are(&room);
    percentages_of_five(&room);
    priorities_order_the_pods(&room);
    scattered_pods_are_not_neighbours(&room);
    stays_end(&room);
    room.ends();
}

/// Case 86: sets whose pods are to stay as they are, and one whose pod does not serve.
fn stays_begin(room: &Room) {
    let nowhere = json!({"nodeSelector": {"no": "node"}});
    for (name, spec) in [("not", json!({})), ("paused", json!({})), ("kept", json!({})), ("pending", nowhere)] {
        room.begins(name, &json!({}));
        room.pod(name, name, &json!({}), &spec);
    }
    for (name, strategy) in [
        ("not", json!({"type": "NotUpdate"})),
        ("paused", json!({"paused": true})),
        ("kept", json!({"partition": 1})),
        ("pending", json!({})),
    ] {
        let serves = i64::from(name != "pending");
        room.counts(name, [1, 1, serves, serves]);
        room.image(name, &strategy, "proxy:2");
    }
    room.counts("pending", [1, 1, 0, 0]);
    assert_eq!(room.with_image("pending", "proxy:2"), names(&["pending"]), "it serves nobody");
}

/// At the end of all the other rollouts of the same process.
fn stays_end(room: &Room) {
    for name in ["not", "paused", "kept"] {
        assert_eq!(counts(&room.cluster, name), [1, 0, 1, 0], "{name}");
        assert_eq!(room.with_image(name, "proxy:1"), names(&[name]));
    }
}

fn of_a_hundred_pods_those_that_can_be_updated_are(room: &Room) {
    let strategy = |paused: bool| json!({"maxUnavailable": "50%", "paused": paused});
    let form = |paused: bool, tag: &str, value: &str| {
        let proxy = json!({"image": format!("proxy:{tag}"), "env": [{"name": "A", "value": value}]});
        room.set("hundred", &strategy(paused), &proxy, &json!({}));
    };
    let half = |name: &str| {
        let pods = deployment(name, 50).replace(&format!("app: {name}"), &format!("app: hundred, part: {name}"));
        applied(&room.cluster, &pods);
    };
    form(true, "1", "old");
    wait_ready(&room.cluster, "hundred");
    half("older");
    room.counts("hundred", [50, 50, 50, 50]);
    form(true, "1", "new");
    wait_ready(&room.cluster, "hundred");
    half("newer");
    room.counts("hundred", [100, 50, 100, 50]);
    form(false, "2", "new");
    room.counts("hundred", [100, 50, 100, 50]);
    eventually("those that can follow have the image", || room.with_image("hundred", "proxy:2").len() == 50);
    room.counts("hundred", [100, 50, 100, 50]);
    assert!(room.with_image("hundred", "proxy:2").iter().all(|name| name.starts_with("newer-")));
    eventually("the others are named", || {
        room.reason("hundred", "Degraded") == ("True".to_owned(), "NotUpdatableInPlace".to_owned())
    });
    assert!(room.order("older-").is_empty());
}

/// The last rows of case 89.
fn percentages_of_five(room: &Room) {
    room.begins("five", &json!({}));
    applied(&room.cluster, &deployment("five", 5));
    room.counts("five", [5, 5, 5, 5]);
    let mut tag = 1;
    for (strategy, updated) in [
        (json!({"maxUnavailable": "5%", "partition": "99%"}), 1),
        (json!({"maxUnavailable": "100%", "partition": "1%"}), 4),
        (json!({"maxUnavailable": "5%"}), 5),
    ] {
        tag += 1;
        room.image("five", &strategy, &format!("proxy:{tag}"));
        room.counts("five", [5, updated, 5, updated]);
        eventually("it is known how far it goes", || {
            let reason = if updated == 5 { "Complete" } else { "Kept" };
            room.reason("five", "Progressing").1 == reason
        });
        assert_eq!(counts(&room.cluster, "five"), [5, updated, 5, updated]);
    }
}

/// Case 90, one pod at a time.
fn priorities_order_the_pods(room: &Room) {
    let labelled = [("foo", "a-5"), ("bar", "a-10"), ("foo", "a-20"), ("none", "")];
    let weights = json!([
        {"weight": 30, "matchSelector": {"matchLabels": {"tier": "bar"}}},
        {"weight": 50, "matchSelector": {"matchLabels": {"tier": "foo"}}},
    ]);
    let weighted = json!({"maxUnavailable": 1, "priorityStrategy": {"weightPriority": weights}});
    let by_order = json!({"orderPriority": [{"orderedKey": "step"}]});
    let ordered = json!({"maxUnavailable": 1, "priorityStrategy": by_order});
    for name in ["weighted", "ordered"] {
        room.begins(name, &json!({"paused": true}));
        for (n, (tier, step)) in labelled.iter().enumerate() {
            let mut labels = json!({"tier": tier});
            if !step.is_empty() {
                labels["step"] = json!(step);
            }
            room.pod(name, &format!("{name}-{n}"), &labels, &json!({}));
        }
        room.counts(name, [4, 4, 4, 4]);
    }
    room.image("weighted", &weighted, "proxy:2");
    room.image("ordered", &ordered, "proxy:2");
    for name in ["weighted", "ordered"] {
        room.counts(name, [4, 4, 4, 4]);
        eventually("all follow", || room.with_image(name, "proxy:2").len() == 4);
    }
    eventually("the audit log has the last patch", || {
        room.order("weighted-").len() == 4 && room.order("ordered-").len() == 4
    });
    let order = room.order("weighted-");
    let first: BTreeSet<String> = order[..2].iter().cloned().collect();
    assert_eq!(
        (first, &order[2..]),
        (names(&["weighted-0", "weighted-2"]), &["weighted-1".to_owned(), "weighted-3".to_owned()][..])
    );
    assert_eq!(room.order("ordered-"), ["ordered-2", "ordered-1", "ordered-0", "ordered-3"]);
}

/// Case 91. Of two pods of the zone among six, one is the first to be updated, and the other the last.
fn scattered_pods_are_not_neighbours(room: &Room) {
    room.begins("scattered", &json!({"paused": true}));
    for n in 0..6 {
        let zone = if n < 2 { "m" } else { "o" };
        room.pod("scattered", &format!("scattered-{zone}{n}"), &json!({"zone": zone}), &json!({}));
    }
    room.counts("scattered", [6, 6, 6, 6]);
    let scatter = json!([{"key": "zone", "value": "m"}]);
    for kept in [5, 3, 1] {
        // In one step: how the pods that are left are spread is decided anew after each.
        let strategy = json!({"maxUnavailable": 6, "partition": kept, "scatterStrategy": scatter});
        let image = format!("proxy:{}", 10 - kept);
        room.image("scattered", &strategy, &image);
        room.counts("scattered", [6, 6 - kept, 6, 6 - kept]);
        let updated = room.with_image("scattered", &image);
        let of_zone = updated.iter().filter(|name| name.starts_with("scattered-m")).count();
        assert_eq!(of_zone, 1, "{kept}: {updated:?}");
    }
}
