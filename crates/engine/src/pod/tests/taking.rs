//! Laws that hold for sets that take something from every pod, and give it annotations.

use std::collections::BTreeSet;

use admission::Decision;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::properties::{cluster_objects, config, pod};
use crate::testing::Cluster;

/// Choices, in an endless row.
struct Choices(Vec<u8>, usize);

impl Choices {
    fn next(&mut self, below: u8) -> u8 {
        self.1 += 1;
        self.0[self.1 % self.0.len()].wrapping_mul(u8::try_from(self.1 % 251).unwrap() | 1) % below
    }

    fn one_of(&mut self, values: &[&str]) -> String {
        values[usize::from(self.next(u8::try_from(values.len()).unwrap()))].to_owned()
    }
}

const NAMES: [&str; 3] = ["A", "B", "N"];
const PATHS: [&str; 4] = ["/v", "/x", "/y", "/y/"];

fn taking(container: &mut Value, set: &str, choices: &mut Choices) {
    let switch = |on: u8| json!({"type": if on == 0 { "disabled" } else { "enabled" }});
    container["shareVolumePolicy"] = switch(choices.next(3));
    container["shareVolumeDevicePolicy"] = switch(choices.next(2));
    container["shareServiceAccountToken"] = json!(choices.next(4) == 0);
    let names: Vec<String> = (0..choices.next(3)).map(|_| choices.one_of(&NAMES)).collect();
    let source = match choices.next(3) {
        0 => json!({"fieldRef": {"fieldPath": "metadata.labels['k']"}}),
        1 => json!({"fieldRef": {"fieldPath": format!("metadata.annotations['of-{set}']")}}),
        _ => Value::Null,
    };
    container["transferEnv"] =
        json!([{"sourceContainerName": "app", "sourceContainerNameFrom": source, "envNames": names}]);
    if choices.next(3) == 0 {
        container["env"] = json!([{"name": choices.one_of(&NAMES), "value": "own"}]);
    }
    if choices.next(4) == 0 && container["ports"].is_null() {
        container["upgradeStrategy"] = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
    }
}

fn giving(container: &mut Value, choices: &mut Choices) {
    let reference = |choices: &mut Choices| format!("$({})", choices.one_of(&NAMES));
    let env: Vec<Value> = (0..choices.next(4))
        .map(|at| {
            let value = if choices.next(3) == 0 { reference(choices) } else { at.to_string() };
            json!({"name": choices.one_of(&NAMES), "value": value})
        })
        .collect();
    let mounts: Vec<Value> = (0..choices.next(4))
        .map(|_| {
            let expression = if choices.next(2) == 0 { reference(choices) } else { String::new() };
            let name = choices.one_of(&["v", "w", "own"]);
            json!({"name": name, "mountPath": choices.one_of(&PATHS), "subPathExpr": expression})
        })
        .collect();
    let devices: Vec<Value> = (0..choices.next(3))
        .map(
            |_| json!({"name": choices.one_of(&["d", "e"]), "devicePath": choices.one_of(&["/dev/a", "/dev/b", "/x"])}),
        )
        .collect();
    container["env"] = json!(env);
    container["volumeMounts"] = json!(mounts);
    container["volumeDevices"] = json!(devices);
}

fn in_lists(value: &mut Value, mut each: impl FnMut(&mut Value)) {
    for list in ["containers", "initContainers"] {
        if let Value::Array(list) = &mut value["spec"][list] {
            list.iter_mut().for_each(&mut each);
        }
    }
}

fn prepared(mut objects: Vec<Value>, mut pod: Value, choices: Vec<u8>) -> (Cluster, Value) {
    let mut choices = Choices(choices, 0);
    // No set is accepted that overwrites what another merges into.
    let changes = choices.one_of(&["Overwrite", "MergePatchJson"]);
    for object in objects.iter_mut().filter(|object| object["kind"] == "SidecarSet") {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        in_lists(object, |container| taking(container, &name, &mut choices));
        let policy = choices.one_of(&["Retain", &changes]);
        let value = if policy == "MergePatchJson" {
            format!("{{\"x\":{}}}", choices.next(3))
        } else {
            choices.one_of(&["app", "web", "{}"])
        };
        object["spec"]["patchPodMetadata"] = json!([
            {"annotations": {"given": value}, "patchPolicy": policy},
            {"annotations": {format!("of-{name}"): choices.one_of(&["app", "web"])}, "patchPolicy": choices.one_of(&["Retain", "Overwrite"])},
        ]);
    }
    in_lists(&mut pod, |container| giving(container, &mut choices));
    (Cluster::from_objects(&objects), pod)
}

fn doubled<'v>(container: &'v Value, list: &str, field: &str) -> Option<&'v str> {
    let mut seen = BTreeSet::new();
    let elements = container[list].as_array().map(Vec::as_slice).unwrap_or_default();
    elements.iter().filter_map(|element| element[field].as_str()).find(|name| !seen.insert(*name))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_second_pass_changes_nothing_that_was_taken(
        objects in cluster_objects(), pod in pod(), choices in prop::collection::vec(any::<u8>(), 8..64),
    ) {
        let (cluster, pod) = prepared(objects, pod, choices);
        let first = cluster.mutate(&pod);
        prop_assume!(first.decision != Decision::Denied);
        let second = cluster.mutate(&first.pod);
        prop_assert!(second.patch.is_none(), "{:?}", second.patch);
        prop_assert_eq!(second.decision, Decision::Allowed, "{}", second.message);
        let twin = cluster.validate(&first.pod);
        prop_assert_eq!(twin.decision, Decision::Allowed, "{}", twin.message);
    }

    #[test]
    fn nothing_is_twice_in_a_container_of_a_set(
        objects in cluster_objects(), pod in pod(), choices in prop::collection::vec(any::<u8>(), 8..64),
    ) {
        let (cluster, pod) = prepared(objects, pod, choices);
        let mut patched = cluster.mutate(&pod).pod;
        let own: Vec<Value> = ["containers", "initContainers"]
            .iter()
            .flat_map(|list| pod["spec"][*list].as_array().cloned().unwrap_or_default())
            .collect();
        let mut wrong = None;
        in_lists(&mut patched, |container| {
            if !own.contains(container) {
                let lists = [("env", "name"), ("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"), ("volumeDevices", "name")];
                let twice = lists.iter().find_map(|(list, field)| doubled(container, list, field));
                if let Some(twice) = twice {
                    wrong = Some(format!("{twice} twice in {container}"));
                }
            }
        });
        prop_assert!(wrong.is_none(), "{wrong:?}");
    }
}
