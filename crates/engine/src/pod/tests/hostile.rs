//! Input that is never sent by mistake, and some that people do send.

use std::cell::Cell;

use admission::{Deadline, Decision, Reason, Unserved};
use serde_json::{Value, json};

use crate::pod::limits;
use crate::reasons;
use crate::testing::{Cluster, names, pod, review, set};

const INJECTED: &str = "outrider.dev/injected";

fn cluster() -> Cluster {
    let spec = json!({
        "containers": [{"name": "log", "image": "l:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "initContainers": [{"name": "init", "image": "i:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "imagePullSecrets": [{"name": "p"}],
    });
    Cluster::from_objects(&[set("log", spec)])
}

/// The work grows with the sets that the pod matches, of which there may be any number.
#[test]
fn a_decision_ends_when_nobody_waits_for_it_any_more() {
    let sets: Vec<Value> = (0..20)
        .map(|at| set(&format!("s{at:02}"), json!({"containers": [{"name": format!("c{at}"), "image": "i:1"}]})))
        .collect();
    let cluster = Cluster::from_objects(&sets);
    let body = serde_json::to_vec(&review("shop", &pod(json!({})))).unwrap();
    for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
        let asked = Cell::new(0);
        let is_over = || {
            asked.set(asked.get() + 1);
            asked.get() > 5
        };
        let answer = cluster.answer_within(path, &body, Deadline::until(&is_over));
        assert_eq!((answer.err(), asked.get()), (Some(Unserved::OutOfTime), 6), "{path}");
        assert!(cluster.answer(path, &body).is_ok(), "{path}");
    }
}

/// The API server allows one controller and any number of owners.
#[test]
fn of_a_hundred_thousand_owners_the_one_that_controls_the_pod_decides_its_workload() {
    let forms = |update: Value| {
        let revision = json!({"customVersion": "old", "policy": "Partial"});
        super::revisions::form(
            &["log"],
            2,
            json!({"injectionStrategy": {"revision": revision}, "updateStrategy": update}),
        )
    };
    let old = super::revisions::revision(&super::revisions::form(&["log"], 1, json!({})), "s", "old");
    let owner = |at: usize, controls: bool| json!({"apiVersion": "apps/v1", "kind": "K", "name": format!("o{at}"), "uid": "u", "controller": controls});
    let cluster = Cluster::from_objects(&[forms(json!({"partition": "50%"})), old]);
    let image = |owners: Vec<Value>| {
        let mut pod = pod(json!({}));
        pod["metadata"]["ownerReferences"] = json!(owners);
        let pod = cluster.mutate(&pod).pod;
        let log = pod["spec"]["containers"].as_array().unwrap().iter().find(|it| it["name"] == "log").unwrap();
        log["image"].as_str().unwrap().to_owned()
    };
    let of_controller: Vec<String> = (0..8).map(|at| image(vec![owner(at, true)])).collect();
    assert!(of_controller.iter().any(|found| *found != of_controller[0]), "{of_controller:?}");
    for (at, expected) in of_controller.iter().enumerate().take(2) {
        let others = (100..100_100).map(|at| owner(at, false));
        assert_eq!(image(others.chain([owner(at, true)]).collect()), *expected);
    }
}

fn with_record(record: &str) -> Value {
    let mut pod = pod(json!({}));
    pod["metadata"]["annotations"] = json!({INJECTED: record});
    pod
}

#[test]
fn a_record_that_cannot_be_read_counts_as_none() {
    let deep = "[".repeat(5_000);
    let deep_entry = format!(r#"{{"log":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let long = format!(r#"{{"other":"{}"}}"#, "x".repeat(100_000));
    let sets: serde_json::Map<_, _> = (0..=501).map(|at| (format!("s{at}"), json!({}))).collect();
    let many = json!(sets).to_string();
    for record in [
        "",
        "null",
        "true",
        "[]",
        "{",
        "{}",
        "\"log\"",
        "{\"log\":null}",
        "{\"log\":1}",
        "{\"log\":[]}",
        "{\"log\":\"\"}",
        r#"{"log":{"containers":"log"}}"#,
        r#"{"log":{"containers":null}}"#,
        r#"{"log":{"containers":[1,null]}}"#,
        r#"{"log":{"containers":{"log":1}}}"#,
        r#"{"lo\"g/~":{"containers":["x"]},"":{}}"#,
        r#"{"log":{},"log":{}}"#,
        "\u{feff}{}",
        "💥",
        &deep,
        &deep_entry,
        &long,
        &many,
    ] {
        let reply = cluster().mutate(&with_record(record));
        assert_eq!((reply.decision, reply.reason), (Decision::Patched, reasons::INJECTED), "{record:.40}");
        assert_eq!(reply.names("containers"), ["log", "app"]);
        let again = cluster().mutate(&reply.pod);
        assert!(again.patch.is_none(), "{record:.40}: {:?}", again.patch);
    }
}

#[test]
fn a_record_that_lists_more_containers_than_a_pod_has_is_not_read() {
    let containers = json!([{"name": "app", "image": "app:1"}, {"name": "log", "image": "other:1"}]);
    for (names, reason) in
        [(2 * limits::CONTAINERS, reasons::OUTDATED), (2 * limits::CONTAINERS + 1, reasons::CONTAINER_CLASH)]
    {
        let listed: Vec<String> = (1..names).map(|at| format!("n{at}")).chain(["log".to_owned()]).collect();
        let mut pod = with_record(&json!({"log": {"hash": "v1:0", "containers": listed}}).to_string());
        pod["spec"]["containers"] = containers.clone();
        assert_eq!(cluster().mutate(&pod).reason, reason, "{names}");
    }
}

#[test]
fn entries_of_other_sets_survive_as_they_were() {
    let reply = cluster().mutate(&with_record(r#"{"z\"/~é":{"containers":["x"], "t":1e2},"a":[null]}"#));
    let text = reply.pod["metadata"]["annotations"][INJECTED].as_str().unwrap();
    assert!(text.starts_with(r#"{"a":[null],"log":{"#), "{text}");
    assert!(text.ends_with(r#","z\"/~é":{"containers":["x"], "t":1e2}}"#), "{text}");
}

#[test]
fn annotations_that_would_grow_too_large_are_a_named_fault() {
    let limit = 256 * 1024;
    let with_filler = |bytes: usize| {
        let mut pod = pod(json!({}));
        pod["metadata"]["annotations"] = json!({"big": "x".repeat(bytes)});
        cluster().mutate(&pod)
    };
    let fits = with_filler(1);
    let record = fits.pod["metadata"]["annotations"][INJECTED].as_str().unwrap().len() + INJECTED.len();
    // The annotation for kubectl is a convenience, for which no pod is refused: it is left out where it has no room.
    let default_container = "kubectl.kubernetes.io/default-container";
    let room = limit - record - "big".len();
    for (bytes, is_written) in [
        (room - default_container.len() - "app".len(), true),
        (room - default_container.len() - 2, false),
        (room, false),
    ] {
        let reply = with_filler(bytes);
        assert_eq!(reply.reason, reasons::INJECTED);
        assert_eq!(reply.pod["metadata"]["annotations"].get(default_container).is_some(), is_written, "{bytes}");
    }
    let reply = with_filler(room + 1);
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, reasons::RESULT_ILLEGAL));
    assert_eq!(reply.causes[0]["field"], "metadata.annotations");
}

#[test]
fn odd_pods_get_an_answer_and_a_patch_that_applies() {
    let many_env: Vec<Value> = (0..2_000).map(|i| json!({"name": format!("E{i}"), "value": i})).collect();
    let many_annotations: Value =
        (0..3_000).map(|i| (format!("k{i}"), json!(""))).collect::<serde_json::Map<_, _>>().into();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    for changes in [
        json!({"metadata": {"name": null, "generateName": "web-"}}),
        json!({"metadata": {"name": null}}),
        json!({"metadata": {"annotations": many_annotations}}),
        json!({"metadata": {"annotations": {"a": null, "": ""}}}),
        json!({"metadata": {"labels": {"": null}}}),
        json!({"spec": {"containers": [{}]}}),
        json!({"spec": {"containers": [{"name": "app"}, {"name": "app"}]}}),
        json!({"spec": {"containers": [{"name": "äöü💥\"\\\u{0}"}]}}),
        json!({"spec": {"containers": [{"name": "app", "env": many_env}]}}),
        json!({"spec": {"containers": [{"name": "app", "env": "none"}]}}),
        json!({"spec": {"containers": [{"name": "app", "env": [1, null, {"name": 7}]}]}}),
        json!({"spec": {"containers": [{"name": "app", "ports": null, "command": 1, "args": {}, "resources": []}]}}),
        json!({"spec": {"containers": [{"name": "app", "ports": [{"containerPort": -1, "hostPort": 0, "protocol": "x"}]}]}}),
        json!({"spec": {"volumes": [{}, null, 1, "x", [], {"name": null}, {"name": 3}]}}),
        json!({"spec": {"imagePullSecrets": [{}, {"name": null}]}}),
        json!({"spec": {"resources": "x"}}),
        json!({"spec": {"resources": {"requests": [], "limits": {"cpu": "many"}}}}),
        json!({"spec": {"resources": {"requests": {"cpu": "1"}}, "os": {}, "nodeSelector": null}}),
        json!({"spec": {"deep": deep}, "status": deep}),
    ] {
        let mut pod = pod(json!({}));
        json_patch::merge(&mut pod, &changes);
        let reply = cluster().mutate(&pod);
        assert_eq!(reply.reason, reasons::INJECTED, "{changes:.200}");
        assert_eq!(reply.names("containers")[0], "log");
        assert!(cluster().mutate(&reply.pod).patch.is_none(), "{changes:.200}");
        assert_eq!(cluster().validate(&reply.pod).decision, Decision::Allowed);
    }
}

#[test]
fn depth_beyond_any_reader_is_skipped_not_followed() {
    let body = review("shop", &pod(json!({"deep": "DEEP"}))).to_string();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let body = body.replace("\"DEEP\"", &deep);
    let snapshot = cluster();
    // Applying the patch would need a reader that follows; the endpoint does not.
    let answer = snapshot.answer("/mutate--v1-pod", body.as_bytes()).unwrap();
    assert_eq!(answer.reason, reasons::INJECTED);
}

#[test]
fn what_no_api_server_sends_is_refused_as_undecodable() {
    for changes in [
        json!({"spec": {"containers": "x"}}),
        json!({"spec": {"containers": [null]}}),
        json!({"spec": {"containers": [{"name": 1}]}}),
        json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": "80"}]}]}}),
        json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 99_999_999_999_u64}]}]}}),
        json!({"spec": {"hostNetwork": "yes"}}),
        json!({"spec": "x"}),
        json!({"spec": []}),
        json!({"metadata": []}),
        json!({"spec": {"containers": [[]]}}),
        json!({"spec": {"containers": [["app"]]}}),
        json!({"spec": {"os": []}}),
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({"metadata": {"annotations": ["a"]}}),
    ] {
        let mut pod = pod(json!({}));
        json_patch::merge(&mut pod, &changes);
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = cluster().ask(path, &review("shop", &pod)).unwrap();
            assert_eq!((reply.reason, reply.code), (Reason::UNDECODABLE, Some(400)), "{changes}");
        }
    }
    for body in ["", "null", "[]", "{}", "{\"kind\":\"AdmissionReview\"}", "\u{0}", "{\"request\":"] {
        let error = cluster().ask_bytes("/mutate--v1-pod", body.as_bytes()).unwrap_err();
        assert!(matches!(error, Unserved::Unreadable(_)), "{body:?}: {error}");
    }
}

#[test]
fn sets_with_odd_parts_make_no_panic() {
    for spec in [
        json!({"containers": [{"name": "log", "env": "x", "ports": "x", "volumeMounts": 1, "resources": [], "lifecycle": 1}]}),
        json!({"containers": [{"name": "log", "image": 1, "ports": [null, 1, {}, {"containerPort": "x", "hostPort": 0}]}]}),
        json!({"containers": [{"name": "log", "env": [1, null, {"name": null}], "volumeDevices": [null, {}]}]}),
        json!({"containers": [{"name": "log", "resources": {"limits": {"cpu": "x"}, "claims": [1, {}]}}], "volumes": [{}]}),
    ] {
        let cluster = Cluster::from_objects(&[set("log", spec.clone())]);
        let reply = cluster.mutate(&pod(json!({"resources": {"limits": {"cpu": "1"}}})));
        assert_ne!(reply.reason, reasons::NO_MATCH, "{spec}");
    }
}

#[test]
fn names_of_sets_are_escaped_wherever_they_go() {
    let name = "a\"b/c~d\\e,é";
    let cluster = Cluster::from_objects(&[set(name, json!({"containers": [{"name": "log", "image": "l"}]}))]);
    let reply = cluster.mutate(&pod(json!({})));
    assert_eq!(reply.record()[name]["containers"], json!(["log"]));
    assert!(cluster.mutate(&reply.pod).patch.is_none());
    assert_eq!(names(&reply.pod, "containers"), ["log", "app"]);
}

/// Each of these took from seconds to hours while two of its lists were multiplied: this test would not end. The ratios of time and
/// memory are those of `make bench-hostile`, which has the same lists.
#[test]
fn a_pod_of_long_lists_gets_the_sets_that_select_it() {
    let names: Vec<String> = (0..20_000).map(|number| format!("n{number}")).collect();
    let listed = |names: &[String]| json!({"log": {"containers": names}, "other": {"containers": names}}).to_string();
    let containers = |more: Value| -> Vec<Value> {
        let with = |name: &String| {
            let mut container = json!({"name": name});
            json_patch::merge(&mut container, &more);
            container
        };
        names[..limits::CONTAINERS].iter().map(with).collect()
    };
    let many = |value: fn(usize) -> Value| (0..limits::VOLUMES.min(limits::NAMES)).map(value).collect::<Vec<_>>();
    let map = |count: usize, key: &str, value: &str| -> Value {
        (0..count).map(|number| (format!("{key}{number}"), json!(value))).collect::<serde_json::Map<_, _>>().into()
    };
    let (amounts, labels) = (map(limits::RESOURCES - 2, "x", "1"), map(limits::PAIRS - 1, "k", "v"));
    let with_annotation = |key: &str, value: String, mut pod: Value| {
        pod["metadata"]["annotations"] = json!({key: value});
        pod
    };
    let mut labelled = pod(json!({}));
    json_patch::merge(&mut labelled["metadata"]["labels"], &labels);
    let bodies = [
        with_annotation(INJECTED, listed(&names[..8_000]), pod(json!({"containers": containers(json!({}))}))),
        with_annotation("kruise.io/sidecarset-injected-list", names.join(","), pod(json!({}))),
        with_annotation("outrider.dev/skip", ",".repeat(150_000), pod(json!({}))),
        pod(json!({
            "resources": {"requests": {"cpu": "1", "x1": "1"}},
            "initContainers": std::iter::once(json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": amounts}}))
                .chain(containers(json!({}))).take(limits::CONTAINERS).collect::<Vec<_>>(),
        })),
        pod(
            json!({"containers": containers(json!({"ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 9}]}))}),
        ),
        pod(json!({"volumes": many(|number| json!({"name": format!("v{number}"), "emptyDir": {}}))})),
        pod(json!({"imagePullSecrets": many(|number| json!({"name": format!("s{number}")}))})),
        labelled,
    ];
    let spec = |number: usize| {
        let container = json!({
            "name": format!("log{number}"), "image": "l:1", "ports": [{"containerPort": 80 + number}],
            "volumeMounts": [{"name": format!("w{number}"), "mountPath": "/v"}],
            "resources": {"requests": {"cpu": "1m"}},
        });
        json!({
            "containers": [container], "volumes": [{"name": format!("w{number}"), "emptyDir": {}}],
            "imagePullSecrets": [{"name": format!("p{number}")}],
            "selector": {"matchExpressions": [{"key": format!("not{number}"), "operator": "DoesNotExist"}]},
        })
    };
    let sets: Vec<_> = (0..300).map(|number| set(&format!("set{number}"), spec(number))).collect();
    let cluster = Cluster::from_objects(&sets);
    for body in bodies {
        let body = review("shop", &body).to_string();
        let answer = cluster.answer("/mutate--v1-pod", body.as_bytes()).unwrap();
        assert_eq!((answer.decision, answer.reason), (Decision::Patched, reasons::INJECTED), "{:.200}", answer.message);
        assert!(cluster.answer("/validate--v1-pod", body.as_bytes()).is_ok());
    }
}

#[test]
fn a_pod_beyond_a_limit_is_refused_where_a_set_selects_it_and_left_alone_elsewhere() {
    let containers = vec![json!({}); limits::CONTAINERS + 1];
    let mut annotated = pod(json!({}));
    annotated["metadata"]["annotations"] = json!({"a": "x".repeat(256 * 1024)});
    for (mut pod, field) in
        [(pod(json!({"containers": containers})), "spec.containers"), (annotated, "metadata.annotations")]
    {
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = cluster().ask(path, &review("shop", &pod)).unwrap();
            assert_eq!((reply.reason, reply.code), (Reason::TOO_LARGE, Some(422)), "{field}");
            assert_eq!(reply.causes[0]["field"], field);
        }
        pod["metadata"]["labels"] = json!({"app": "of nobody"});
        let reply = cluster().ask("/mutate--v1-pod", &review("shop", &pod)).unwrap();
        assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::NO_MATCH), "{field}");
    }
}

#[test]
fn a_new_pod_that_is_not_in_the_review_does_not_pass_validation() {
    let reply = cluster().ask("/validate--v1-pod", &review("shop", &Value::Null)).unwrap();
    assert_eq!((reply.decision, reply.reason, reply.code), (Decision::Denied, Reason::UNDECODABLE, Some(400)));
}
