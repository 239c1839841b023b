//! Hot upgrades of running pods, step by step. Numbers are those of the cases of the reference for `OpenKruise`'s behaviour.

use std::collections::BTreeSet;

use admission::Decision;
use serde_json::{Value, json};

use crate::pod::in_place::{Change, InPlace, hand_over, in_place};
use crate::pod::tests::after_creation_forms::update;
use crate::pod::tests::in_place::changed;
use crate::testing::{Cluster, NAMESPACE, pod, set};

const WORKING: &str = "outrider.dev/sidecarset-working-hotupgrade-container";

/// A set with one pair, with these images.
fn spec_of(image: &str, empty: &str) -> Value {
    let upgrade = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": empty});
    json!({"containers": [{"name": "log", "image": image, "upgradeStrategy": upgrade}]})
}

fn spec(image: &str) -> Value {
    spec_of(image, "empty:1")
}

fn cluster(spec: &Value) -> Cluster {
    Cluster::from_objects(&[set("log", spec.clone())])
}

fn created(spec: &Value) -> Value {
    cluster(spec).mutate(&pod(json!({}))).pod
}

fn begun(pod: &Value, spec: &Value) -> InPlace {
    in_place(pod, NAMESPACE, "log", &cluster(spec).snapshot).unwrap()
}

/// The pod after the next step, and which containers are to take over then.
fn step(pod: &Value, spec: &Value) -> (Value, BTreeSet<String>) {
    match begun(pod, spec) {
        InPlace::Change(change) => (changed(pod, &change), change.hand_over),
        other => panic!("{other:?}"),
    }
}

/// The pod after these have taken over.
fn taken_over(pod: &Value, spec: &Value, started: &BTreeSet<String>) -> Value {
    changed(pod, &hand_over(pod, NAMESPACE, "log", started, &cluster(spec).snapshot).unwrap().unwrap())
}

fn image(pod: &Value, name: &str) -> String {
    let lists =
        ["containers", "initContainers"].iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let mut found = lists.filter(|container| container["name"] == name);
    found.next().unwrap()["image"].as_str().unwrap().to_owned()
}

fn annotation<'v>(pod: &'v Value, key: &str) -> &'v str {
    pod["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

/// Images of both, which one works, and the versions of the first and of the second, each with what it knows of the other.
fn said(pod: &Value) -> String {
    let working: Value = serde_json::from_str(annotation(pod, WORKING)).unwrap();
    let versions: Vec<&str> = ["log-1", "log-2"]
        .iter()
        .flat_map(|name| {
            ["version", "versionalt"].map(|of| annotation(pod, &format!("{of}.sidecarset.outrider.dev/{name}")))
        })
        .collect();
    format!(
        "{} {} {} {}",
        image(pod, "log-1"),
        image(pod, "log-2"),
        working["log"].as_str().unwrap(),
        versions.join(" ")
    )
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// And case 99: one upgrade after the other, back and forth.
#[test]
fn case_98_the_waiting_container_gets_the_image_takes_over_and_the_other_one_waits() {
    let mut pod = created(&spec("log:1"));
    assert_eq!(said(&pod), "log:1 empty:1 log-1 1 0 0 1");
    let two = spec("log:2");
    let (middle, started) = step(&pod, &two);
    assert_eq!((&*said(&middle), &started), ("log:1 log:2 log-1 1 2 2 1", &names(&["log-2"])));
    // Until it serves nothing else happens.
    assert_eq!(step(&middle, &two), (middle.clone(), started.clone()));
    pod = taken_over(&middle, &two, &started);
    assert_eq!(said(&pod), "empty:1 log:2 log-2 0 2 2 0");
    assert_eq!(begun(&pod, &two), InPlace::Change(Change::default()));
    assert_eq!(taken_over(&pod, &two, &started), pod);

    let three = spec("log:3");
    let (middle, started) = step(&pod, &three);
    assert_eq!((&*said(&middle), &started), ("log:3 log:2 log-2 3 2 2 3", &names(&["log-1"])));
    pod = taken_over(&middle, &three, &started);
    assert_eq!(said(&pod), "log:3 empty:1 log-1 3 0 0 3");
    assert_eq!(begun(&pod, &three), InPlace::Change(Change::default()));
}

#[test]
fn case_99_a_container_that_never_serves_gets_the_next_image_while_the_other_one_works_on() {
    let pod = created(&spec("log:1"));
    let (middle, _) = step(&pod, &spec("log:bad"));
    let (corrected, started) = step(&middle, &spec("log:2"));
    assert_eq!((&*said(&corrected), &started), ("log:1 log:2 log-1 1 3 3 1", &names(&["log-2"])));
    // Back to what the working one has, nothing takes over and the other one waits again.
    let (back, started) = step(&middle, &spec("log:1"));
    assert_eq!((&*said(&back), started), ("log:1 empty:1 log-1 1 0 0 1", BTreeSet::new()));
}

#[test]
fn only_a_container_that_was_started_and_is_one_of_the_sets_takes_over() {
    let pod = created(&spec("log:1"));
    let two = spec("log:2");
    let (middle, _) = step(&pod, &two);
    for started in [names(&[]), names(&["app"]), names(&["log-3"])] {
        assert_eq!(taken_over(&middle, &two, &started), middle, "{started:?}");
    }
    // One that waits cannot, also if a state says so.
    assert_eq!(taken_over(&pod, &two, &names(&["log-2"])), pod);
    // A later form of the set, which the pod is not to have yet, does not leave it in the middle.
    assert_eq!(said(&taken_over(&middle, &spec("log:3"), &names(&["log-2"]))), "empty:1 log:2 log-2 0 2 2 0");
}

#[test]
fn another_empty_image_goes_into_the_container_that_waits_alone() {
    let pod = created(&spec("log:1"));
    let (pod, started) = step(&pod, &spec_of("log:1", "empty:2"));
    assert_eq!((&*said(&pod), started), ("log:1 empty:2 log-1 1 0 0 1", BTreeSet::new()));
    let both = spec_of("log:2", "empty:3");
    let (pod, started) = step(&pod, &both);
    assert_eq!(said(&pod), "log:1 log:2 log-1 1 2 2 1");
    assert_eq!(said(&taken_over(&pod, &both, &started)), "empty:3 log:2 log-2 0 2 2 0");
}

#[test]
fn cold_and_hot_containers_of_a_set_begin_together_and_env_is_for_new_pods() {
    let with_cold = |tag: &str, env: Value| {
        let mut spec = spec(&format!("log:{tag}"));
        let cold = json!({"name": "cold", "image": format!("cold:{tag}"), "env": env});
        spec["containers"].as_array_mut().unwrap().push(cold);
        spec
    };
    let pod = created(&with_cold("1", json!(null)));
    let two = with_cold("2", json!(null));
    let (middle, started) = step(&pod, &two);
    assert_eq!((image(&middle, "cold"), said(&middle)), ("cold:2".to_owned(), "log:1 log:2 log-1 1 2 2 1".to_owned()));
    // A change of the cold one alone in the middle leaves the pair in the middle.
    let mut third = two.clone();
    third["containers"][1]["image"] = json!("cold:3");
    let (changed, still) = step(&middle, &third);
    assert_eq!((image(&changed, "cold"), said(&changed)), ("cold:3".to_owned(), said(&middle)));
    assert_eq!(started, still);
    let InPlace::NewPodOnly(why) = begun(&middle, &with_cold("2", json!([{"name": "A", "value": "b"}]))) else {
        panic!("not in place")
    };
    assert!(why.contains("differs in env"), "{why}");
}

#[test]
fn a_pair_of_native_sidecars_is_upgraded_as_well() {
    let native = |image: &str| {
        let mut spec = spec(image);
        spec["initContainers"] = spec["containers"].take();
        spec["initContainers"][0]["restartPolicy"] = json!("Always");
        spec
    };
    let pod = created(&native("log:1"));
    let (middle, started) = step(&pod, &native("log:2"));
    assert_eq!(said(&middle), "log:1 log:2 log-1 1 2 2 1");
    assert_eq!(said(&taken_over(&middle, &native("log:2"), &started)), "empty:1 log:2 log-2 0 2 2 0");
}

#[test]
fn what_an_annotation_cannot_say_counts_for_nothing() {
    let long = json!({"log": "log-2", "more": "x".repeat(100_000)}).to_string();
    let wrong =
        ["", "{", "[]", r#"{"log":"app"}"#, r#"{"log":"log-3"}"#, r#"{"log":7}"#, r#"{"other":"log-2"}"#, &long];
    let two = spec("log:2");
    for text in wrong.map(Some).into_iter().chain([None]) {
        for flipped in [false, true] {
            let mut pod = created(&spec("log:1"));
            if flipped {
                let (middle, started) = step(&pod, &spec("log:0"));
                pod = taken_over(&middle, &spec("log:0"), &started);
            }
            let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
            match text {
                Some(text) => annotations.insert(WORKING.to_owned(), text.into()),
                None => annotations.remove(WORKING),
            };
            // Its images say which one works, and it is written down again.
            let (middle, started) = step(&pod, &two);
            let (expected, works) = if flipped { ("log-1", "log-2") } else { ("log-2", "log-1") };
            assert_eq!(started, names(&[expected]), "{text:?}");
            assert_eq!(image(&middle, expected), "log:2", "{text:?}");
            let working: Value = serde_json::from_str(annotation(&middle, WORKING)).unwrap();
            assert_eq!(working["log"], works, "{text:?}");
            assert!(annotation(&middle, WORKING).len() < 100);
        }
    }
}

#[test]
fn a_new_pod_whose_annotation_of_pairs_is_longer_than_is_read_gets_that_of_the_set() {
    let long: serde_json::Map<_, _> = (0..3_000).map(|i| (format!("container-{i}"), "b".into())).collect();
    let mut new = pod(json!({}));
    new["metadata"]["annotations"] = json!({WORKING: Value::Object(long).to_string()});
    let made = cluster(&spec("log:1")).mutate(&new).pod;
    assert_eq!(annotation(&made, WORKING), r#"{"log":"log-1"}"#);
}

#[test]
fn versions_that_are_none_or_at_their_end_stop_no_upgrade() {
    for version in ["", "x", "-1", "18446744073709551615", "99999999999999999999999"] {
        let mut pod = created(&spec("log:1"));
        for key in ["version.sidecarset.outrider.dev/log-1", "version.sidecarset.outrider.dev/log-2"] {
            pod["metadata"]["annotations"][key] = version.into();
        }
        let (middle, started) = step(&pod, &spec("log:2"));
        assert_eq!((image(&middle, "log-2"), started), ("log:2".to_owned(), names(&["log-2"])), "{version}");
    }
}

#[test]
fn a_pod_with_one_of_the_two_or_without_a_record_of_them_is_for_new_pods_only() {
    let pod = created(&spec("log:1"));
    let mut one = pod.clone();
    one["spec"]["containers"].as_array_mut().unwrap().retain(|container| container["name"] != "log-2");
    let mut unrecorded = pod.clone();
    let record = annotation(&pod, "outrider.dev/injected").replace("log-2", "log-9");
    unrecorded["metadata"]["annotations"]["outrider.dev/injected"] = record.into();
    for (pod, expected) in [(one, "container \"log-2\" is missing"), (unrecorded, "is not the set's")] {
        let found = begun(&pod, &spec("log:2"));
        assert!(matches!(&found, InPlace::NewPodOnly(why) if why.contains(expected)), "{found:?}");
        let nothing = hand_over(&pod, NAMESPACE, "log", &names(&["log-2"]), &cluster(&spec("log:2")).snapshot).unwrap();
        assert_eq!(nothing, Some(Change::default()));
    }
}

#[test]
fn another_tag_that_the_pod_asked_for_stays_with_the_one_that_works() {
    let with_overrides = |image: &str, empty: &str| {
        let mut spec = spec_of(image, empty);
        spec["podOverrides"] = json!({"containerNames": ["log"], "imageTag": true});
        spec
    };
    let mut asking = pod(json!({}));
    asking["metadata"]["annotations"] =
        json!({"outrider.dev/overrides": json!({"log": {"image": "log:9"}}).to_string()});
    let made = cluster(&with_overrides("log:1", "empty:1")).mutate(&asking).pod;
    let (later, started) = step(&made, &with_overrides("log:2", "empty:2"));
    assert_eq!((&*said(&later), started), ("log:9 empty:2 log-1 1 0 0 1", BTreeSet::new()));
}

#[test]
fn of_a_must_each_step_is_allowed_and_nothing_else() {
    let must = |image: &str| {
        let mut spec = spec(image);
        spec["optOut"] = json!("Denied");
        spec
    };
    let pod = created(&must("log:1"));
    let two = must("log:2");
    let cluster = cluster(&two);
    let updated = |from: &Value, to: &Value| update(&cluster, "", from, to).decision;
    let (middle, started) = step(&pod, &two);
    let done = taken_over(&middle, &two, &started);
    assert_eq!(updated(&pod, &middle), Decision::Allowed);
    assert_eq!(updated(&middle, &done), Decision::Allowed);
    let with_images = |from: &Value, first: &str, second: &str| {
        let mut pod = from.clone();
        for container in pod["spec"]["containers"].as_array_mut().unwrap() {
            match container["name"].as_str().unwrap() {
                "log-1" => container["image"] = first.into(),
                "log-2" => container["image"] = second.into(),
                _ => {}
            }
        }
        pod
    };
    for (case, images, expected) in [
        ("a foreign image in the first", ("evil:1", "log:2"), Decision::Denied),
        ("a foreign image in the second", ("log:2", "evil:1"), Decision::Denied),
        ("an older one", ("log:1", "log:2"), Decision::Denied),
        ("as in a new pod", ("log:2", "empty:1"), Decision::Allowed),
        ("the other way round", ("empty:1", "log:2"), Decision::Allowed),
    ] {
        let gains = with_images(&created(&two), images.0, images.1);
        let mut lacks = gains.clone();
        lacks["metadata"]["labels"] = json!({"x": "y"});
        assert_eq!(updated(&lacks, &gains), expected, "gained by a label: {case}");
    }
    for (case, from, first, second) in [
        ("none works", &pod, "empty:1", "empty:1"),
        ("another image", &pod, "evil:1", "log:2"),
        ("another image in the one that waits", &pod, "log:1", "evil:1"),
        ("the wrong one stops", &middle, "log:1", "empty:1"),
        ("none works, in the middle", &middle, "empty:1", "evil:1"),
        ("none works any more", &done, "empty:1", "empty:1"),
        ("the older one again", &done, "empty:1", "log:1"),
        ("another one beside it", &done, "evil:1", "log:2"),
    ] {
        assert_eq!(updated(from, &with_images(from, first, second)), Decision::Denied, "{case}");
    }
}
