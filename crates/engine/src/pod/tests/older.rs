//! What `outrider render` takes out on the word of a record, which anybody may have written.

use serde_json::{Value, json};

use crate::testing::{Cluster, pod, set as set_of};

fn set() -> Cluster {
    Cluster::from_objects(&[set_of(
        "log",
        json!({
            "containers": [{"name": "log", "image": "log:2", "volumeMounts": [{"name": "logs", "mountPath": "/l"}]}],
            "volumes": [{"name": "logs", "emptyDir": {}}],
        }),
    )])
}

fn container(name: &str, volume: &str, marked: bool) -> Value {
    let env = if marked { json!([{"name": "IS_INJECTED", "value": "true"}]) } else { json!([]) };
    json!({"name": name, "image": "i:1", "env": env, "volumeMounts": [{"name": volume, "mountPath": "/m"}]})
}

/// A pod with a record of an older form that lists these containers.
fn recorded(listed: &[&str], containers: &[Value]) -> Value {
    let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}});
    let mut pod = pod(json!({"containers": containers, "volumes": [claim, {"name": "logs", "emptyDir": {}}]}));
    let record = json!({"log": {"hash": "v1:0", "containers": listed}}).to_string();
    pod["metadata"]["annotations"] = json!({"outrider.dev/injected": record});
    pod
}

/// What is removed, by name, and how many sentences say what is left.
fn taken_out(listed: &[&str], containers: &[Value]) -> (Vec<String>, usize) {
    let pod = recorded(listed, containers);
    let taken_out = set().take_out(&pod);
    let removed = taken_out.patch.iter().filter(|operation| operation["op"] == "remove");
    let names = removed.map(|operation| pod.pointer(operation["path"].as_str().unwrap()).unwrap()["name"].to_string());
    (names.map(|name| name.trim_matches('"').to_owned()).collect(), taken_out.left.len())
}

#[test]
fn only_what_looks_like_the_sets_is_taken_out_on_the_word_of_a_record() {
    let app = container("app", "data", false);
    for (case, listed, containers, removed, left) in [
        ("the pod's only container", &["app"][..], vec![app.clone()], &[][..], 1),
        ("the pod's own container", &["app"], vec![app.clone(), container("web", "data", false)], &[], 1),
        ("a name that the set has", &["log"], vec![app.clone(), container("log", "logs", false)], &["log", "logs"], 0),
        ("the mark", &["old"], vec![app.clone(), container("old", "logs", true)], &["old", "logs"], 0),
        ("neither", &["old"], vec![app.clone(), container("old", "logs", false)], &[], 1),
        ("one of two", &["app", "log"], vec![app.clone(), container("log", "logs", true)], &["log", "logs"], 1),
        ("nothing else", &["log"], vec![container("log", "data", false)], &[], 1),
        (
            "only what others injected",
            &["log"],
            vec![container("log", "data", false), container("mesh", "logs", true)],
            &[],
            1,
        ),
        ("a volume that others mount", &["log"], vec![app.clone(), container("log", "data", true)], &["log"], 0),
        (
            "a volume of nobody's",
            &["log"],
            vec![container("app", "logs", false), container("log", "data", false)],
            &["log"],
            1,
        ),
        (
            "a marked one's volume",
            &["log"],
            vec![container("app", "logs", false), container("log", "data", true)],
            &["log", "data"],
            0,
        ),
    ] {
        let (found, sentences) = taken_out(listed, &containers);
        assert_eq!((found, sentences), (removed.iter().map(|name| (*name).to_owned()).collect(), left), "{case}");
    }
}

#[test]
fn the_last_of_two_marks_counts() {
    let mut old = container("old", "logs", true);
    old["env"].as_array_mut().unwrap().push(json!({"name": "IS_INJECTED", "value": "no"}));
    assert_eq!(taken_out(&["old"], &[container("app", "data", false), old]), (Vec::new(), 1));
}

#[test]
fn what_is_said_of_a_replaced_container_is_about_that_one() {
    let containers = json!([{"name": "log", "image": "log:2"}, {"name": "wait", "image": "wait:1"}]);
    let set = |containers: Value| Cluster::from_objects(&[set_of("log", json!({"containers": containers}))]);
    let mut older = containers.clone();
    older[0]["image"] = json!("log:1");
    older.as_array_mut().unwrap().push(json!({"name": "gone", "image": "gone:1"}));
    let pod = set(older).mutate(&pod(json!({}))).pod;
    let mut said = set(containers).take_out(&pod).replaced;
    said.sort();
    let why = |name: &str, why: &str| {
        format!(
            "container {name:?}, which its record says is of SidecarSet \"log\" in another form than the current one, is replaced: {why}"
        )
    };
    let expected = [
        why("gone", "the set has no container of that name any more"),
        why("log", "it differs in image"),
        why(
            "wait",
            "it is the same in both, and a set's containers are replaced together: container \"log\" differs in image",
        ),
    ];
    assert_eq!(said, expected);
}
