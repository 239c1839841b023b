//! Additions to the pod's own containers (`spec.appContainers`).

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::pod::explain::{Fate, explain};
use crate::reasons;
use crate::sidecarset::injection::{INJECTED_ANNOTATION, RECORD_MAX_BYTES};
use crate::testing::{Cluster, pod, review, set};

/// A set without containers of its own, with these entries and a volume.
pub(super) fn only(name: &str, entries: Value, more: Value) -> Value {
    let mut spec = json!({"containers": [], "appContainers": entries, "volumes": [{"name": "agent", "emptyDir": {}}]});
    json_patch::merge(&mut spec, &more);
    set(name, spec)
}

fn java() -> Value {
    json!([{
        "env": [{"name": "AGENT", "value": "/agent/a.jar"}, {"name": "JAVA_TOOL_OPTIONS", "value": "-javaagent:$(AGENT)"}],
        "volumeMounts": [{"name": "agent", "mountPath": "/agent", "readOnly": true}],
    }])
}

pub(super) fn app(env: Value, mounts: Value) -> Value {
    pod(json!({
        "containers": [{"name": "app", "image": "shop:1", "env": env, "volumeMounts": mounts}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }))
}

pub(super) fn env(pod: &Value) -> Vec<(&str, &str)> {
    let list = pod["spec"]["containers"][0]["env"].as_array().unwrap();
    list.iter().map(|it| (it["name"].as_str().unwrap(), it["value"].as_str().unwrap_or(""))).collect()
}

/// The pod after the first pass; the second adds nothing, and validation finds nothing missing.
pub(super) fn admitted(cluster: &Cluster, pod: &Value) -> Value {
    let reply = cluster.mutate(pod);
    assert_eq!(reply.reason, reasons::INJECTED, "{}", reply.message);
    let again = cluster.mutate(&reply.pod);
    assert_eq!((again.reason, again.patch), (reasons::ALREADY_INJECTED, None));
    assert_eq!(cluster.validate(&reply.pod).reason, reasons::ALREADY_INJECTED);
    reply.pod
}

#[test]
fn variables_go_in_front_and_mounts_behind_and_the_volume_comes_along() {
    let cluster = Cluster::from_objects(&[only("java", java(), json!({}))]);
    let mounts = json!([{"name": "own", "mountPath": "/data"}]);
    for (own, expected) in [
        (json!(null), &[][..]),
        (json!([]), &[]),
        (json!([{"name": "OPTS", "value": "$(AGENT)"}]), &[("OPTS", "$(AGENT)")]),
    ] {
        let pod = admitted(&cluster, &app(own, mounts.clone()));
        let ours = [("AGENT", "/agent/a.jar"), ("JAVA_TOOL_OPTIONS", "-javaagent:$(AGENT)")];
        assert_eq!(env(&pod), [&ours[..], expected].concat());
        assert_eq!(
            pod["spec"]["containers"][0]["volumeMounts"],
            json!([{"name": "own", "mountPath": "/data"}, {"name": "agent", "mountPath": "/agent", "readOnly": true}])
        );
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "own", "emptyDir": {}}, {"name": "agent", "emptyDir": {}}]));
    }
}

#[test]
fn the_containers_own_value_wins_unless_the_set_overwrites_it_where_it_stands() {
    let own =
        json!([{"name": "A", "value": "1"}, {"name": "AGENT", "value": "mine"}, {"name": "B", "value": "$(AGENT)"}]);
    let pod_of = |overwrite: Value| {
        let mut entries = java();
        entries[0]["overwriteEnv"] = overwrite;
        admitted(&Cluster::from_objects(&[only("java", entries, json!({}))]), &app(own.clone(), Value::Null))
    };
    let options = ("JAVA_TOOL_OPTIONS", "-javaagent:$(AGENT)");
    for overwrite in [Value::Null, json!(false)] {
        assert_eq!(env(&pod_of(overwrite)), [options, ("A", "1"), ("AGENT", "mine"), ("B", "$(AGENT)")]);
    }
    let agent = ("AGENT", "/agent/a.jar");
    assert_eq!(env(&pod_of(json!(true))), [agent, options, ("A", "1"), agent, ("B", "$(AGENT)")]);
}

#[test]
fn a_set_that_finds_nothing_to_add_is_recorded_as_carried_all_the_same() {
    let entry = |more: Value| {
        let mut entry = json!({"env": [{"name": "X", "value": "1"}]});
        json_patch::merge(&mut entry, &more);
        set("s", json!({"containers": [], "appContainers": [entry]}))
    };
    let has_it = app(json!([{"name": "X", "value": "own"}]), Value::Null);
    let earlier = set("a", json!({"containers": [], "appContainers": [{"env": [{"name": "X", "value": "2"}]}]}));
    for (sets, created, variables) in [
        (vec![entry(json!({}))], has_it.clone(), 1),
        (vec![entry(json!({"overwriteEnv": true}))], app(json!([{"name": "X", "value": "1"}]), Value::Null), 1),
        (vec![entry(json!({"containerNames": ["none"]}))], app(Value::Null, Value::Null), 0),
        (vec![earlier, entry(json!({}))], app(Value::Null, Value::Null), 1),
    ] {
        for must in [false, true] {
            let mut sets = sets.clone();
            if must {
                sets.last_mut().unwrap()["spec"]["optOut"] = json!("Denied");
            }
            let cluster = Cluster::from_objects(&sets);
            let first = cluster.mutate(&created);
            assert_eq!(first.decision, Decision::Patched, "{sets:?}");
            let hash = &cluster.snapshot.sets.get("s").unwrap().hash;
            assert_eq!(first.record()["s"]["hash"], json!(hash), "{sets:?}");
            let of_app = first.pod["spec"]["containers"][0]["env"].as_array().map_or(0, Vec::len);
            assert_eq!(of_app, variables, "{sets:?}");
            let again = cluster.mutate(&first.pod);
            assert_eq!((again.reason, again.patch), (reasons::ALREADY_INJECTED, None), "{sets:?}");
            let twin = cluster.validate(&first.pod);
            assert_eq!((twin.reason, twin.warnings), (reasons::ALREADY_INJECTED, vec![]), "{sets:?}");
            let explained = explain(review("shop", &created).to_string().as_bytes(), &cluster.snapshot).unwrap();
            let of_set = explained.sets.iter().find(|set| set.set == "s").unwrap();
            assert_eq!((of_set.fate, of_set.why.reason), (Fate::Injected, reasons::ALREADY_INJECTED), "{sets:?}");
        }
    }
    // A pod that the set does not select is left as it is.
    let other = json!({"metadata": {"name": "p", "labels": {"app": "other"}}, "spec": has_it["spec"]});
    assert_eq!(Cluster::from_objects(&[entry(json!({}))]).mutate(&other).patch, None);
}

/// What is in the pod of an older form of a set cannot be distinguished from what is the container's own.
#[test]
fn a_record_of_an_older_form_is_not_renewed_where_nothing_is_added() {
    let of = |value: &str| {
        let entries = json!([{"env": [{"name": "X", "value": value}]}]);
        Cluster::from_objects(&[set("s", json!({"containers": [], "appContainers": entries}))])
    };
    let older = of("1").mutate(&app(Value::Null, Value::Null));
    assert_eq!(of("2").mutate(&older.pod).patch, None);
}

/// A record that the pod's author wrote must not pass for that of an older form, which is left as it is.
#[test]
fn a_record_that_says_nothing_is_renewed_although_nothing_is_added() {
    let entries = json!([{"env": [{"name": "X", "value": "1"}]}]);
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [], "appContainers": entries}))]);
    let mut pod = app(json!([{"name": "X", "value": "1"}]), Value::Null);
    let expected = cluster.mutate(&pod).pod["metadata"]["annotations"][INJECTED_ANNOTATION].clone();
    for forged in [r#"{"s":{}}"#, r#"{"s":{"hash":"","containers":[]}}"#, r#"{"s":3}"#, r#"{"s":{"hash":3}}"#] {
        pod["metadata"]["annotations"] = json!({INJECTED_ANNOTATION: forged});
        let reply = cluster.mutate(&pod);
        assert_eq!(reply.pod["metadata"]["annotations"][INJECTED_ANNOTATION], expected, "{forged}");
        assert_eq!(cluster.mutate(&reply.pod).patch, None, "{forged}");
        assert_eq!(cluster.validate(&reply.pod).decision, Decision::Allowed, "{forged}");
    }
}

#[test]
fn entries_are_about_the_named_containers_and_init_containers_where_the_set_says_so() {
    let three = json!({
        "containers": [{"name": "app", "image": "a:1"}, {"name": "other", "image": "o:1"}],
        "initContainers": [{"name": "setup", "image": "s:1"}, {"name": "mesh", "image": "m:1", "restartPolicy": "Always"}],
    });
    let with = |fields: Value| {
        let mut entry = json!({"env": [{"name": "X", "value": "1"}]});
        json_patch::merge(&mut entry, &fields);
        let of_set = json!({
            "containers": [{"name": "log", "image": "l:1"}], "initContainers": [{"name": "first", "image": "f:1"}],
        });
        let cluster = Cluster::from_objects(&[only("s", json!([entry]), of_set)]);
        let pod = admitted(&cluster, &pod(three.clone()));
        let lists = ["initContainers", "containers"].map(|list| pod["spec"][list].as_array().unwrap().clone());
        let has = |it: &Value| it["env"].as_array().is_some_and(|env| env.iter().any(|it| it["name"] == "X"));
        let named: Vec<String> =
            lists.iter().flatten().filter(|it| has(it)).map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        named
    };
    assert_eq!(with(json!({})), ["app", "other"]);
    assert_eq!(with(json!({"containerNames": ["other", "gone"]})), ["other"]);
    assert_eq!(with(json!({"initContainers": true})), ["setup", "mesh", "app", "other"]);
    assert_eq!(with(json!({"initContainers": true, "containerNames": ["mesh"]})), ["mesh"]);
    assert_eq!(with(json!({"containerNames": ["mesh", "app"]})), ["app"]);
}

#[test]
fn a_mount_where_the_container_has_another_is_left_out_with_a_warning() {
    let cluster = Cluster::from_objects(&[only("java", java(), json!({}))]);
    for path in ["/agent", "/agent/"] {
        let reply = cluster.mutate(&app(Value::Null, json!([{"name": "own", "mountPath": path}])));
        assert_eq!(
            reply.warnings,
            [
                r#"MountClash: container "app" has something else at "/agent", where SidecarSet "java" would mount volume "agent"; it keeps its own"#
            ]
        );
        assert_eq!(reply.pod["spec"]["containers"][0]["volumeMounts"], json!([{"name": "own", "mountPath": path}]));
    }
}

#[test]
fn between_sets_the_earlier_wins_also_when_asked_again() {
    let entry =
        |value: &str, overwrite: bool| json!([{"env": [{"name": "X", "value": value}], "overwriteEnv": overwrite}]);
    let two = |overwrite: bool, more: Value| {
        Cluster::from_objects(&[only("a", entry("1", overwrite), json!({})), only("b", entry("2", overwrite), more)])
    };
    for own in [Value::Null, json!([{"name": "X", "value": "0"}])] {
        let cluster = two(true, json!({}));
        let reply = cluster.mutate(&app(own.clone(), Value::Null));
        assert_eq!(env(&reply.pod), [("X", "1")]);
        assert_eq!(reply.audit["skipped"], "b=SetConflict");
        assert_eq!(cluster.mutate(&reply.pod).patch, None);
        let must = two(true, json!({"optOut": "Denied"})).mutate(&app(own, Value::Null));
        assert_eq!((must.decision, must.reason), (Decision::Denied, reasons::SET_CONFLICT));
    }
    assert_eq!(env(&admitted(&two(false, json!({})), &app(Value::Null, Value::Null))), [("X", "1")]);
}

#[test]
fn a_must_adds_to_containers_that_pass_for_injected_and_is_missed_where_it_was_taken_away() {
    let entries = json!([{"env": [{"name": "X", "value": "1"}], "overwriteEnv": true}]);
    let other = set("other", json!({"containers": [{"name": "helper", "image": "h:1"}]}));
    let cluster = Cluster::from_objects(&[only("s", entries, json!({"optOut": "Denied"})), other]);
    let marked = json!([{"name": "IS_INJECTED", "value": "true"}]);
    let pod = admitted(&cluster, &app(marked, Value::Null));
    let names: Vec<&str> = env_of(&pod, "app").iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["X", "IS_INJECTED"]);
    for change in [json!([]), json!([{"name": "X", "value": "2"}])] {
        let mut less = pod.clone();
        let at = less["spec"]["containers"].as_array().unwrap().iter().position(|it| it["name"] == "app").unwrap();
        less["spec"]["containers"][at]["env"] = change;
        let refused = cluster.validate(&less);
        assert_eq!(refused.decision, Decision::Denied);
        assert!(refused.message.contains("lacks its"), "{}", refused.message);
        assert_eq!(cluster.mutate(&less).decision, Decision::Patched);
    }
    // A container that is called like another set's, and is not that, does not go without.
    let mut called = pod_with("helper", "evil:1");
    called["metadata"]["annotations"] = json!({"outrider.dev/skip": "other"});
    assert_eq!(env_of(&cluster.mutate(&called).pod, "helper")[0], json!({"name": "X", "value": "1"}));
}

#[test]
fn a_container_that_runs_what_a_set_would_is_no_sets_where_the_pod_opts_out_of_that_set() {
    let musts = only("must", json!([{"env": [{"name": "X", "value": "1"}]}]), json!({"optOut": "Denied"}));
    let helper = set("other", json!({"containers": [{"name": "helper", "image": "h:1"}]}));
    let cluster = Cluster::from_objects(&[musts, helper]);
    for image in ["h:1", "h:1@sha256:0123"] {
        let mut pod = pod_with("helper", image);
        pod["metadata"]["annotations"] = json!({"outrider.dev/skip": "other"});
        assert_eq!(cluster.validate(&pod).decision, Decision::Denied, "{image}");
        let pod = admitted(&cluster, &pod);
        assert_eq!(env_of(&pod, "helper")[0], json!({"name": "X", "value": "1"}), "{image}");
    }
}

fn pod_with(name: &str, image: &str) -> Value {
    pod(json!({"containers": [{"name": name, "image": image}]}))
}

fn env_of<'p>(pod: &'p Value, name: &str) -> &'p Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers.iter().find(|it| it["name"] == name).unwrap()["env"].as_array().unwrap()
}

#[test]
fn what_sets_add_is_not_taken_by_sets_that_take_from_the_pods_containers() {
    let agent = json!({
        "name": "agent", "image": "a:1", "shareVolumePolicy": {"type": "enabled"},
        "transferEnv": [{"sourceContainerName": "app", "envNames": ["AGENT", "OWN"]}],
    });
    let share = set("share", json!({"containers": [agent], "optOut": "Denied"}));
    for overwrite in [false, true] {
        let mut entries = java();
        entries[0]["overwriteEnv"] = json!(overwrite);
        let cluster = Cluster::from_objects(&[only("java", entries, json!({})), share.clone()]);
        let own = json!([{"name": "OWN", "value": "1"}]);
        let pod = admitted(&cluster, &app(own, json!([{"name": "own", "mountPath": "/data"}])));
        let agent = &pod["spec"]["containers"][0];
        assert_eq!(agent["volumeMounts"], json!([{"name": "own", "mountPath": "/data"}]), "{overwrite}");
        let names: Vec<&str> = agent["env"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["IS_INJECTED", "OWN"], "{overwrite}");
    }
}

#[test]
fn a_variable_that_is_there_a_thousand_times_more_is_a_named_fault_where_the_set_overwrites_it() {
    let times = |count: usize| app(json!(vec![json!({"name": "X", "value": "own"}); count]), Value::Null);
    let cluster = |overwrite: bool| {
        let entries = json!([{"overwriteEnv": overwrite, "env": [{"name": "X", "value": "1"}]}]);
        Cluster::from_objects(&[only("s", entries, json!({}))])
    };
    assert_eq!(env(&admitted(&cluster(true), &times(1001))), vec![("X", "1"); 1001]);
    let reply = cluster(true).mutate(&times(1002));
    assert_eq!(reply.decision, Decision::Denied);
    assert!(reply.message.contains("more than 1000 times; name each once"), "{}", reply.message);
    assert_eq!(cluster(false).mutate(&times(1002)).decision, Decision::Patched);
}

#[test]
fn too_many_containers_and_too_much_are_a_named_fault() {
    let many = |count: usize| (0..count).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect::<Value>();
    let entries = |value: &str| json!([{"env": [{"name": "X", "value": value}]}]);
    let long = "x".repeat(100_000);
    for (value, count, reason) in [
        ("1", 1000, reasons::INJECTED),
        ("1", 1001, Reason::TOO_LARGE),
        (&long, 20, reasons::INJECTED),
        (&long, 40, reasons::RESULT_ILLEGAL),
    ] {
        let cluster = Cluster::from_objects(&[only("s", entries(value), json!({}))]);
        assert_eq!(cluster.mutate(&pod(json!({"containers": many(count)}))).reason, reason, "{count}");
    }
}

#[test]
fn no_pod_is_refused_for_the_record_of_what_it_has_already() {
    let entry = json!({"env": [{"name": "X", "value": "1"}]});
    let cluster = Cluster::from_objects(&[set("s", json!({"containers": [], "appContainers": [entry]}))]);
    let mut created = app(json!([{"name": "X", "value": "1"}]), Value::Null);
    created["metadata"]["annotations"] = json!({"a": "x".repeat(256 * 1024 - 40)});
    assert_eq!(cluster.mutate(&created).decision, Decision::Allowed);
    assert_eq!(cluster.validate(&created).decision, Decision::Allowed);
}

#[test]
fn sets_that_have_nothing_to_add_are_recorded_up_to_what_is_read_of_a_record() {
    let of = |n: usize| {
        let entry = json!({"env": [{"name": "X", "value": "1"}]});
        set(&format!("s{n:04}"), json!({"containers": [], "appContainers": [entry]}))
    };
    let cluster = Cluster::from_objects(&(0..600).map(of).collect::<Vec<_>>());
    let made = cluster.mutate(&app(json!([{"name": "X", "value": "1"}]), Value::Null));
    let record = made.pod["metadata"]["annotations"][INJECTED_ANNOTATION].as_str().unwrap().len();
    assert!((RECORD_MAX_BYTES - 200..=RECORD_MAX_BYTES).contains(&record), "{record}");
    assert_eq!(cluster.mutate(&made.pod).patch, None);
    assert_eq!(cluster.validate(&made.pod).decision, Decision::Allowed);
}
