//! How a running pod takes the current form of a set.

use admission::Decision;
use serde_json::{Value, json};

use crate::pod::in_place::{Change, InPlace, NewImage, in_place};
use crate::pod::tests::revisions::revision;
use crate::testing::{Cluster, NAMESPACE, pod, review, set};

/// The pod that a set with this spec makes, asked to become that of a set with another.
fn between(before: Value, after: Value) -> (Value, InPlace) {
    let pod = Cluster::from_objects(&[set("log", before)]).mutate(&pod(json!({}))).pod;
    let found = asked(&pod, after);
    (pod, found)
}

fn asked(pod: &Value, spec: Value) -> InPlace {
    in_place(pod, NAMESPACE, "log", &Cluster::from_objects(&[set("log", spec)]).snapshot).unwrap()
}

fn containers(container: Value) -> Value {
    let mut whole = json!({"name": "log", "image": "log:1"});
    json_patch::merge(&mut whole, &container);
    json!({"containers": [whole]})
}

fn image(list: &'static str, image: &str) -> NewImage {
    NewImage { list, container: "log".to_owned(), image: image.to_owned() }
}

/// The pod with the change.
pub(super) fn changed(pod: &Value, change: &Change) -> Value {
    let mut pod = pod.clone();
    for new in &change.images {
        for container in pod["spec"][new.list].as_array_mut().unwrap() {
            if container["name"] == new.container.as_str() {
                container["image"] = new.image.as_str().into();
            }
        }
    }
    for (key, value) in &change.annotations {
        pod["metadata"]["annotations"][key] = value.as_str().into();
    }
    pod
}

#[test]
fn an_image_of_a_plain_and_of_a_native_sidecar_changes_in_place_and_so_does_the_record() {
    let native = |image: &str| json!({"containers": null, "initContainers": [{"name": "log", "image": image, "restartPolicy": "Always"}]});
    for (list, before, after) in [
        ("containers", containers(json!({})), containers(json!({"image": "log:2"}))),
        ("initContainers", native("log:1"), native("log:2")),
    ] {
        let (pod, found) = between(before, after.clone());
        let InPlace::Change(change) = found else { panic!("{found:?}") };
        assert_eq!(change.images, [image(list, "log:2")]);
        assert_eq!(
            change.annotations.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
            ["outrider.dev/injected"]
        );
        // What comes of it is the pod that the set makes now, and there is nothing to do again.
        let pod = changed(&pod, &change);
        let cluster = Cluster::from_objects(&[set("log", after.clone())]);
        assert_eq!(cluster.mutate(&pod).patch, None);
        assert_eq!(asked(&pod, after), InPlace::Change(Change::default()));
    }
}

/// Its kubelets leave the container as it is, and the rollout would wait for it.
#[test]
fn an_image_of_a_native_sidecar_waits_for_a_new_pod_before_kubernetes_1_32() {
    let native = |image: &str| json!({"containers": null, "initContainers": [{"name": "log", "image": image, "restartPolicy": "Always"}]});
    let pair = |image: &str| {
        let mut pair = native(image);
        pair["initContainers"][0]["upgradeStrategy"] =
            json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"});
        pair
    };
    let plain = |image: &str| containers(json!({"image": image}));
    let on = |minor: Option<u32>, before: Value, after: Value| {
        let in_cluster = |spec: Value| {
            let cluster = Cluster::from_objects(&[set("log", spec)]);
            if let Some(minor) = minor { cluster.on(minor) } else { cluster }
        };
        let pod = in_cluster(before).mutate(&pod(json!({}))).pod;
        in_place(&pod, NAMESPACE, "log", &in_cluster(after).snapshot).unwrap()
    };
    for (minor, name, before, after) in
        [(31, "log", native("log:1"), native("log:2")), (30, "log-2", pair("log:1"), pair("log:2"))]
    {
        let why = format!("Kubernetes 1.{minor} does not restart the native sidecar {name:?} for another image");
        assert_eq!(on(Some(minor), before, after), InPlace::NewPodOnly(why));
    }
    for (minor, before, after) in [
        (Some(32), native("log:1"), native("log:2")),
        (Some(32), pair("log:1"), pair("log:2")),
        (None, native("log:1"), native("log:2")),
        (Some(31), plain("log:1"), plain("log:2")),
    ] {
        let found = on(minor, before, after);
        let InPlace::Change(change) = found else { panic!("{found:?}") };
        assert_eq!(change.images.len(), 1, "{minor:?}");
    }
    let same = on(Some(31), native("log:1"), native("log:1"));
    assert_eq!(same, InPlace::Change(Change::default()), "there is nothing to change");
}

#[test]
fn what_only_a_new_pod_can_take_is_named() {
    let two = json!({"containers": [{"name": "log", "image": "log:1"}, {"name": "more", "image": "more:1"}]});
    let init = |image: &str| json!({"initContainers": [{"name": "setup", "image": image}]});
    let hot = json!({"containers": [{"name": "log", "image": "log:2",
        "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}]});
    for (case, before, after, expected) in [
        ("env", json!({}), containers(json!({"env": [{"name": "A", "value": "b"}]})), "differs in env"),
        (
            "image and env",
            json!({}),
            containers(json!({"image": "log:2", "env": [{"name": "A", "value": "b"}]})),
            "differs in env",
        ),
        ("another container", json!({}), two.clone(), "container \"more\" is missing"),
        ("one container less", two, json!({}), "the set has no container \"more\" any more"),
        ("an init container", init("a:1"), init("a:2"), "init container \"setup\" has run already"),
        ("a pull secret", json!({}), json!({"imagePullSecrets": [{"name": "s"}]}), "pull secret \"s\" is missing"),
        ("a hot upgrade from now on", json!({}), hot, "container \"log-1\" is missing"),
    ] {
        let (_, found) = between(before, after);
        let InPlace::NewPodOnly(why) = found else { panic!("{case}: {found:?}") };
        assert!(why.contains(expected), "{case}: {why}");
    }
}

/// What a set leaves open others may fill in, as a `LimitRange` does: the revision of the older form says whose an amount is.
#[test]
fn an_amount_that_the_older_form_gave_and_the_current_one_leaves_open_stays_until_there_is_a_new_pod() {
    let large = containers(json!({"resources": {"requests": {"cpu": "64"}}}));
    let mut by_default = containers(json!({}));
    by_default["resourceDefaults"] = json!({"requests": {"cpu": "64"}});
    let made_by = |form: &Value| Cluster::from_objects(&[set("log", form.clone())]).mutate(&pod(json!({}))).pod;
    let asked = |pod: &Value, after: &Value, older: &[&Value]| {
        let mut objects = vec![set("log", after.clone())];
        objects.extend(older.iter().map(|form| revision(&set("log", (*form).clone()), "log", "")));
        in_place(pod, NAMESPACE, "log", &Cluster::from_objects(&objects).snapshot).unwrap()
    };
    let open = containers(json!({"image": "log:2"}));
    let expected = InPlace::NewPodOnly("container \"log\" differs in resources.requests[cpu]".to_owned());
    for form in [&large, &by_default] {
        assert_eq!(asked(&made_by(form), &open, &[&large, &by_default]), expected, "{form}");
        let found = asked(&made_by(form), &open, &[]);
        assert!(matches!(found, InPlace::Change(_)), "the revision is not kept any more: {found:?}");
    }
    let mut may_differ = open.clone();
    may_differ["allowedChanges"] = json!({"fields": ["resources"]});
    let kept = containers(json!({"image": "log:2", "resources": {"requests": {"cpu": "64"}}}));
    for after in [&may_differ, &kept] {
        let found = asked(&made_by(&large), after, &[&large]);
        assert!(matches!(found, InPlace::Change(_)), "{after}: {found:?}");
    }
    // A LimitRange has filled it in.
    let plain = containers(json!({}));
    let mut filled = made_by(&plain);
    for container in filled["spec"]["containers"].as_array_mut().unwrap() {
        container["resources"] = json!({"requests": {"cpu": "64"}});
    }
    let found = asked(&filled, &open, &[&plain]);
    assert!(matches!(found, InPlace::Change(_)), "{found:?}");
}

#[test]
fn annotations_of_the_set_change_with_the_record_and_restart_nothing() {
    let with = |value: &str| json!({"patchPodMetadata": [{"annotations": {"a.example/b": value}, "patchPolicy": "Overwrite"}]});
    let (_, found) = between(with("1"), with("2"));
    let InPlace::Change(change) = found else { panic!("{found:?}") };
    assert_eq!(change.images, []);
    assert!(change.annotations.contains(&("a.example/b".to_owned(), "2".to_owned())), "{change:?}");
    assert_eq!(change.annotations.len(), 2);
    // A new image brings them along.
    let mut with_image = with("2");
    json_patch::merge(&mut with_image, &containers(json!({"image": "log:2"})));
    let (_, found) = between(with("1"), with_image);
    let InPlace::Change(change) = found else { panic!("{found:?}") };
    assert_eq!(change.images, [image("containers", "log:2")]);
    assert!(change.annotations.contains(&("a.example/b".to_owned(), "2".to_owned())), "{change:?}");
}

/// What the change does not name stays.
#[test]
fn case_87_what_others_put_into_the_container_stays_where_the_set_allows_it_and_else_needs_a_new_pod() {
    let with = |image: &str, allowed: Value| {
        let mut spec = containers(json!({"image": image}));
        spec["allowedChanges"] = allowed;
        spec
    };
    let allowed = json!({"env": ["EXTRA"], "mountPaths": ["/extra"]});
    let mut pod = Cluster::from_objects(&[set("log", with("log:1", allowed.clone()))]).mutate(&pod(json!({}))).pod;
    pod["spec"]["volumes"] = json!([{"name": "extra", "emptyDir": {}}]);
    for container in pod["spec"]["containers"].as_array_mut().unwrap().iter_mut().filter(|it| it["name"] == "log") {
        container["env"].as_array_mut().unwrap().push(json!({"name": "EXTRA", "value": "x"}));
        container["volumeMounts"] = json!([{"name": "extra", "mountPath": "/extra"}]);
    }
    let found = asked(&pod, with("log:2", allowed.clone()));
    let InPlace::Change(change) = found else { panic!("{found:?}") };
    assert_eq!(change.images, [image("containers", "log:2")]);
    assert_eq!(asked(&changed(&pod, &change), with("log:2", allowed)), InPlace::Change(Change::default()));
    let found = asked(&pod, with("log:2", json!({})));
    assert!(matches!(&found, InPlace::NewPodOnly(why) if why.contains("env[EXTRA]")), "{found:?}");
}

#[test]
fn a_pod_that_the_set_did_not_inject_is_left_alone() {
    let own = pod(json!({"containers": [{"name": "app", "image": "shop:1"}, {"name": "log", "image": "log:1"}]}));
    let mut forged = own.clone();
    forged["metadata"]["annotations"] =
        json!({"outrider.dev/injected": json!({"log": {"hash": "v1:0", "containers": []}}).to_string()});
    let mut opted_out = Cluster::from_objects(&[set("log", json!({}))]).mutate(&pod(json!({}))).pod;
    opted_out["metadata"]["annotations"]["outrider.dev/skip"] = "log".into();
    for (case, pod, expected) in [
        ("no record", own, "has no record"),
        ("a record that does not list it", forged, "is not the set's"),
        ("opted out since", opted_out, "opted out"),
    ] {
        let found = asked(&pod, containers(json!({"image": "log:2"})));
        let InPlace::NewPodOnly(why) = found else { panic!("{case}: {found:?}") };
        assert!(why.contains(expected), "{case}: {why}");
    }
}

#[test]
fn a_set_whose_injection_is_paused_changes_pods_that_carry_it() {
    let mut after = containers(json!({"image": "log:2"}));
    after["injectionStrategy"] = json!({"paused": true});
    let (_, found) = between(json!({}), after);
    assert!(matches!(&found, InPlace::Change(change) if change.images.len() == 1), "{found:?}");
}

#[test]
fn the_entry_after_creation_lets_a_rollout_of_a_must_pass() {
    let must = |image: &str| {
        let mut spec = containers(json!({"image": image}));
        spec["optOut"] = "Denied".into();
        spec
    };
    let (old, found) = between(must("log:1"), must("log:2"));
    let InPlace::Change(change) = found else { panic!("{found:?}") };
    let mut review = review(NAMESPACE, &changed(&old, &change));
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["oldObject"] = old.clone();
    let cluster = Cluster::from_objects(&[set("log", must("log:2"))]);
    assert_eq!(cluster.ask("/validate--v1-pod-update", &review).unwrap().decision, Decision::Allowed);
}

#[test]
fn containers_of_the_app_and_of_other_sets_keep_what_they_are() {
    let others = [set("log", json!({})), set("mesh", json!({}))];
    let old = Cluster::from_objects(&others).mutate(&pod(json!({}))).pod;
    let now = [
        set("log", containers(json!({"image": "log:2"}))),
        set("mesh", json!({"containers": [{"name": "mesh", "image": "mesh:2"}]})),
    ];
    let found = in_place(&old, NAMESPACE, "log", &Cluster::from_objects(&now).snapshot).unwrap();
    let InPlace::Change(change) = found else { panic!("{found:?}") };
    assert_eq!(change.images, [image("containers", "log:2")]);
    let record: Value = serde_json::from_str(&change.annotations[0].1).unwrap();
    let before: Value =
        serde_json::from_str(old["metadata"]["annotations"]["outrider.dev/injected"].as_str().unwrap()).unwrap();
    assert_eq!(record["mesh"], before["mesh"]);
    assert_ne!(record["log"], before["log"]);
}

#[test]
fn a_digest_that_a_resolver_put_behind_the_image_is_kept_and_restarts_nothing() {
    let with = |image: &str, note: &str| {
        let mut spec = containers(json!({"image": image}));
        spec["allowedChanges"] = json!({"fields": ["imageDigest"]});
        spec["patchPodMetadata"] = json!([{"annotations": {"a.example/b": note}, "patchPolicy": "Overwrite"}]);
        spec
    };
    let digest = format!("@sha256:{}", "0".repeat(64));
    let mut pod = Cluster::from_objects(&[set("log", with("log:1", "1"))]).mutate(&pod(json!({}))).pod;
    let resolved = |pod: &mut Value, image: String| {
        for container in pod["spec"]["containers"].as_array_mut().unwrap() {
            if container["name"] == "log" {
                container["image"] = image.as_str().into();
            }
        }
    };
    resolved(&mut pod, format!("log:1{digest}"));
    let found = asked(&pod, with("log:1", "2"));
    assert!(matches!(&found, InPlace::Change(change) if change.images.is_empty()), "{found:?}");
    // Without the tag nothing says that it is that of the new one.
    for old in [format!("log:1{digest}"), format!("log{digest}")] {
        resolved(&mut pod, old);
        let found = asked(&pod, with("log:2", "1"));
        assert!(
            matches!(&found, InPlace::Change(change) if change.images == [image("containers", "log:2")]),
            "{found:?}"
        );
    }
}

#[test]
fn another_value_for_the_containers_of_the_app_needs_a_new_pod() {
    let app = |value: &str, image: &str| {
        let mut spec = containers(json!({"image": image}));
        spec["appContainers"] = json!([{"env": [{"name": "A", "value": value}]}]);
        spec
    };
    let (_, found) = between(app("1", "log:1"), app("2", "log:1"));
    let InPlace::NewPodOnly(why) = found else { panic!("{found:?}") };
    assert!(why.contains("variable \"A\""), "{why}");
    // What the app has already does not keep the image back.
    let (_, found) = between(app("1", "log:1"), app("1", "log:2"));
    assert!(matches!(&found, InPlace::Change(change) if change.images.len() == 1), "{found:?}");
}

#[test]
fn a_set_of_additions_to_the_app_alone_never_has_an_empty_change() {
    let app = |env: Value| json!({"containers": null, "appContainers": [{"env": env}]});
    let two = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]);
    let one = json!([{"name": "A", "value": "1"}]);
    for (before, after) in [(&two, &one), (&one, &two)] {
        let (_, found) = between(app(before.clone()), app(after.clone()));
        assert!(matches!(found, InPlace::NewPodOnly(_)), "{found:?}");
    }
}

/// As at creation, where the later set is skipped with the reason `SetConflict`.
#[test]
fn an_annotation_that_an_earlier_set_of_the_pod_gives_is_not_changed_by_a_later_one() {
    let metadata = |value: &str| json!([{"annotations": {"a.example/b": value}, "patchPolicy": "Overwrite"}]);
    let first = |more: Value| {
        let mut spec = json!({"order": 1, "containers": [{"name": "mesh", "image": "mesh:1"}]});
        json_patch::merge(&mut spec, &more);
        set("mesh", spec)
    };
    let second = |more: Value| {
        let mut spec = json!({"order": 2});
        json_patch::merge(&mut spec, &more);
        set("log", spec)
    };
    let gives = json!({"patchPodMetadata": metadata("of-mesh")});
    let old = Cluster::from_objects(&[first(gives.clone()), second(json!({}))]).mutate(&pod(json!({}))).pod;
    let also_gives = second(json!({"patchPodMetadata": metadata("of-log")}));
    let asked = |first: Value| {
        let cluster = Cluster::from_objects(&[first, also_gives.clone()]);
        in_place(&old, NAMESPACE, "log", &cluster.snapshot).unwrap()
    };
    // Of whatever form the earlier one is in the pod.
    let newer = json!({"patchPodMetadata": metadata("newer"), "containers": [{"name": "mesh", "image": "mesh:2"}]});
    for form in [gives, newer] {
        let InPlace::NewPodOnly(why) = asked(first(form)) else { panic!("it overwrites the other's") };
        assert!(why.contains("a.example/b") && why.contains("mesh"), "{why}");
    }
    let InPlace::Change(change) = asked(first(json!({}))) else { panic!("nobody gives it any more") };
    assert!(change.annotations.contains(&("a.example/b".to_owned(), "of-log".to_owned())), "{change:?}");
}

#[test]
fn a_pod_that_openkruise_injected_is_left_alone() {
    let (mut pod, _) = between(json!({}), json!({}));
    pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "other, log"});
    assert_eq!(asked(&pod, containers(json!({"image": "log:2"}))), InPlace::OpenKruise);
}

/// Anybody can write `OpenKruise`'s list.
#[test]
fn the_list_of_openkruise_keeps_no_pod_of_a_must_as_it_is() {
    for (opt_out, is_left_alone) in [("Allowed", true), ("Denied", false)] {
        let spec = |image: &str| json!({"optOut": opt_out, "containers": [{"name": "log", "image": image}]});
        let (mut pod, _) = between(spec("log:1"), spec("log:1"));
        pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "log"});
        let found = asked(&pod, spec("log:2"));
        assert_eq!(found == InPlace::OpenKruise, is_left_alone, "{opt_out}: {found:?}");
    }
}
