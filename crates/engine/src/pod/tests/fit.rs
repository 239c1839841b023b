//! What containers of a set take from the pod's own. Numbers are those of the cases of the reference for `OpenKruise`'s behaviour.

use admission::{Decision, Reason};
use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, Reply, pod, set};

fn sidecar(more: Value) -> Value {
    let mut container = json!({"name": "side", "image": "side:1"});
    json_patch::merge(&mut container, &more);
    container
}

fn cluster(more: Value) -> Cluster {
    Cluster::from_objects(&[set("s", json!({"containers": [sidecar(more)]}))])
}

fn app(more: Value) -> Value {
    let mut container = json!({"name": "main", "image": "main:1"});
    json_patch::merge(&mut container, &more);
    pod(json!({"containers": [container]}))
}

fn side<'r>(reply: &'r Reply, list: &str) -> &'r Value {
    let all = reply.pod["spec"][list].as_array().unwrap();
    all.iter().find(|container| container["name"] == "side").unwrap()
}

fn variables(container: &Value) -> Vec<String> {
    let all = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|it| format!("{}={}", it["name"].as_str().unwrap(), it["value"].as_str().unwrap_or("?"))).collect()
}

fn paths(container: &Value) -> Vec<&str> {
    let all = container["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|mount| mount["mountPath"].as_str().unwrap()).collect()
}

fn transfer(source: Value, names: Value) -> Value {
    let mut entry = source;
    json_patch::merge(&mut entry, &names);
    json!({"transferEnv": [entry]})
}

const MARK: &str = "IS_INJECTED=true";

#[test]
fn case_34_a_variable_of_the_pods_container_follows_the_mark() {
    for list in ["containers", "initContainers"] {
        let container = sidecar(transfer(json!({"sourceContainerName": "main"}), json!({"envName": "hello2"})));
        let cluster = Cluster::from_objects(&[set("s", json!({"containers": null, list: [container]}))]);
        let reply = cluster.mutate(&app(json!({"env": [{"name": "hello2", "value": "world2"}]})));
        assert_eq!(variables(side(&reply, list)), [MARK, "hello2=world2"], "{list}");
    }
}

#[test]
fn cases_35_and_36_the_containers_own_variable_wins_and_all_four_forms_agree() {
    let env = json!([{"name": "POD_NAME", "value": "bar"}, {"name": "OD_NAME", "value": "app_name"},
        {"name": "PROXY_IP", "value": "127.0.0.1"}]);
    let from = |path: &str| json!({"sourceContainerNameFrom": {"fieldRef": {"fieldPath": path}}});
    let sources =
        [json!({"sourceContainerName": "main"}), from("metadata.labels['biz']"), from("metadata.annotations['biz']")];
    for source in sources {
        let mut more = transfer(source.clone(), json!({"envName": "PROXY_IP", "envNames": ["POD_NAME", "OD_NAME"]}));
        more["env"] = json!([{"name": "OD_NAME", "value": "sidecar_name"}]);
        let mut pod = app(json!({"env": env}));
        pod["metadata"]["labels"]["biz"] = json!("main");
        pod["metadata"]["annotations"] = json!({"biz": "main"});
        let reply = cluster(more).mutate(&pod);
        let expected = ["OD_NAME=sidecar_name", MARK, "POD_NAME=bar", "PROXY_IP=127.0.0.1"];
        assert_eq!(variables(side(&reply, "containers")), expected, "{source}");
    }
}

#[test]
fn case_37_a_label_container_or_variable_that_is_missing_gives_nothing() {
    let by_label = json!({"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['biz']"}}});
    for (source, name) in
        [(by_label, "A"), (json!({"sourceContainerName": "other"}), "A"), (json!({"sourceContainerName": "main"}), "B")]
    {
        let reply = cluster(transfer(source, json!({"envName": name})))
            .mutate(&app(json!({"env": [{"name": "A", "value": "1"}]})));
        assert_eq!(variables(side(&reply, "containers")), [MARK]);
        assert_eq!(reply.warnings, [""; 0]);
    }
}

#[test]
fn case_39_names_are_sorted_and_come_once() {
    let more = transfer(json!({"sourceContainerName": "main"}), json!({"envName": "A", "envNames": ["B", "A"]}));
    let env = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "0"}, {"name": "A", "value": "1"}]);
    let reply = cluster(more).mutate(&app(json!({"env": env})));
    assert_eq!(variables(side(&reply, "containers")), [MARK, "A=1", "B=2"]);
}

#[test]
fn a_variable_keeps_its_source_and_unknown_fields() {
    let variable = json!({"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}, "tomorrow": [1]});
    let reply = cluster(transfer(json!({"sourceContainerName": "main"}), json!({"envName": "N"})))
        .mutate(&app(json!({"env": [variable]})));
    assert_eq!(side(&reply, "containers")["env"][1], variable);
}

fn sharing() -> Value {
    json!({"shareVolumePolicy": {"type": "enabled"}})
}

#[test]
fn case_25_shared_mounts_follow_the_containers_own_and_its_own_wins() {
    let mounts = |paths: &[&str], volume: &str| {
        paths.iter().map(|path| json!({"name": volume, "mountPath": path})).collect::<Value>()
    };
    for list in ["containers", "initContainers"] {
        let mut more = sharing();
        more["volumeMounts"] = mounts(&["/a/b/c", "/d/e/f", "/staragent"], "own");
        let spec = json!({"containers": null, list: [sidecar(more)], "volumes": [{"name": "own", "emptyDir": {}}]});
        let mut pod = app(json!({"volumeMounts": mounts(&["/a/b", "/e/f", "/staragent/"], "theirs")}));
        pod["spec"]["volumes"] = json!([{"name": "theirs", "emptyDir": {}}]);
        let reply = Cluster::from_objects(&[set("s", spec)]).mutate(&pod);
        let side = side(&reply, list);
        assert_eq!(paths(side), ["/a/b/c", "/d/e/f", "/staragent", "/a/b", "/e/f"], "{list}");
        assert_eq!(side["volumeMounts"][2]["name"], "own", "{list}");
        // Case 31.
        assert_eq!(reply.names("volumes"), ["theirs", "own"], "{list}");
    }
}

#[test]
fn cases_26_and_27_variables_of_a_sub_path_come_with_the_mount() {
    let mount = |expression: &str| json!([{"name": "v", "mountPath": "/data", "subPathExpr": expression}]);
    let env = json!([{"name": "ZONE", "value": "z"}, {"name": "OD_NAME", "value": "$(ZONE)-od"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "OTHER", "value": "o"}]);
    for (expression, expected) in [
        // What a variable refers to has to come before it.
        ("foo/$(POD_NAME)/$(OD_NAME)/conf", &[MARK, "POD_NAME=?", "ZONE=z", "OD_NAME=$(ZONE)-od"][..]),
        ("foo", &[MARK]),
        ("", &[MARK]),
        ("$$(POD_NAME)/$(MISSING)", &[MARK]),
    ] {
        for list in ["containers", "initContainers"] {
            let spec = json!({"containers": null, list: [sidecar(sharing())]});
            let mut pod = app(json!({"env": env, "volumeMounts": mount(expression)}));
            pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
            let reply = Cluster::from_objects(&[set("s", spec)]).mutate(&pod);
            assert_eq!(variables(side(&reply, list)), expected, "{expression} {list}");
            assert_eq!(side(&reply, list)["volumeMounts"], mount(expression), "{expression} {list}");
        }
    }
}

#[test]
fn another_value_of_a_sub_paths_variable_is_a_warning() {
    let mut more = sharing();
    more["env"] = json!([{"name": "N", "value": "other"}]);
    let mount = json!([{"name": "v", "mountPath": "/data", "subPathExpr": "$(N)"}]);
    let reply = cluster(more).mutate(&app(json!({"env": [{"name": "N", "value": "n"}], "volumeMounts": mount})));
    assert_eq!(variables(side(&reply, "containers")), ["N=other", MARK]);
    assert_eq!(
        reply.warnings,
        [
            r#"container "side" of SidecarSet "s": the mount at "/data" has the sub-path "$(N)", and variable "N" has another value here than in the pod's container, so that it is another directory"#
        ]
    );
}

#[test]
fn mounts_of_native_sidecars_are_shared_and_those_of_init_containers_are_not() {
    let mount = |path: &str| json!([{"name": "v", "mountPath": path}]);
    let mut pod = app(json!({"volumeMounts": mount("/main")}));
    pod["spec"]["initContainers"] = json!([
        {"name": "plain", "image": "i:1", "volumeMounts": mount("/plain")},
        {"name": "native", "image": "n:1", "restartPolicy": "Always", "volumeMounts": mount("/native")},
    ]);
    pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    assert_eq!(paths(side(&cluster(sharing()).mutate(&pod), "containers")), ["/main", "/native"]);
}

#[test]
fn only_privileged_containers_propagate_to_the_node() {
    let mount = json!([{"name": "v", "mountPath": "/m", "mountPropagation": "Bidirectional"}]);
    for (privileged, expected) in [(false, "HostToContainer"), (true, "Bidirectional")] {
        let mut more = sharing();
        more["securityContext"] = json!({"privileged": privileged});
        let reply = cluster(more).mutate(&app(json!({"volumeMounts": mount})));
        assert_eq!(side(&reply, "containers")["volumeMounts"][0]["mountPropagation"], expected);
    }
}

#[test]
fn cases_28_and_29_devices_of_the_pods_own_containers_follow_the_containers_own() {
    let device = |name: &str| json!({"name": name, "devicePath": format!("/dev/{name}")});
    let claim = |name: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let spec = |policy: Value| {
        let container = sidecar(json!({"volumeDevices": [device("own")], "shareVolumeDevicePolicy": policy}));
        json!({"containers": [container], "volumes": [claim("own"), claim("unused")]})
    };
    let mut pod = app(json!({"volumeDevices": [device("vd-1"), device("vd-2")]}));
    let injected = json!({"name": "other", "image": "o:1", "env": [{"name": "IS_INJECTED", "value": "true"}], "volumeDevices": [device("vd-3")]});
    pod["spec"]["containers"].as_array_mut().unwrap().push(injected);
    pod["spec"]["volumes"] = json!([claim("vd-1"), claim("vd-2"), claim("vd-3")]);
    for (policy, expected) in [
        (json!(null), json!([device("own")])),
        (json!({"type": "enabled"}), json!([device("own"), device("vd-1"), device("vd-2")])),
    ] {
        let reply = Cluster::from_objects(&[set("s", spec(policy))]).mutate(&pod);
        assert_eq!(side(&reply, "containers")["volumeDevices"], expected);
        assert_eq!(reply.names("volumes"), ["vd-1", "vd-2", "vd-3", "own"]);
    }
}

#[test]
fn a_device_under_two_paths_is_shared_once_with_a_warning() {
    let mut pod = app(json!({"volumeDevices": [{"name": "d", "devicePath": "/dev/one"}]}));
    let second = json!({"name": "second", "image": "o:1", "volumeDevices": [{"name": "d", "devicePath": "/dev/two"}]});
    pod["spec"]["containers"].as_array_mut().unwrap().push(second);
    let reply = cluster(json!({"shareVolumeDevicePolicy": {"type": "enabled"}})).mutate(&pod);
    assert_eq!(side(&reply, "containers")["volumeDevices"], json!([{"name": "d", "devicePath": "/dev/one"}]));
    assert_eq!(
        reply.warnings,
        [
            r#"container "side" of SidecarSet "s": block device "d" is not shared at "/dev/two": a container can have a device at one path only"#
        ]
    );
}

const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

#[test]
fn the_token_is_shared_once_and_its_lack_is_a_warning() {
    let mounts =
        json!([{"name": "data", "mountPath": "/data"}, {"name": "token", "mountPath": TOKEN, "readOnly": true}]);
    for (more, expected) in [
        (json!({"shareServiceAccountToken": true}), &[TOKEN][..]),
        (json!({"shareServiceAccountToken": true, "shareVolumePolicy": {"type": "enabled"}}), &["/data", TOKEN]),
        (json!({"shareServiceAccountToken": false}), &[]),
    ] {
        let reply = cluster(more.clone()).mutate(&app(json!({"volumeMounts": mounts})));
        assert_eq!(paths(side(&reply, "containers")), expected, "{more}");
        assert_eq!(reply.warnings, [""; 0], "{more}");
    }
    let reply = cluster(json!({"shareServiceAccountToken": true})).mutate(&app(json!({})));
    assert_eq!(
        reply.warnings,
        [
            r#"container "side" of SidecarSet "s": shareServiceAccountToken has nothing to share: no container of the pod mounts the token of its service account"#
        ]
    );
}

/// A pod whose app has something of everything, and a must that takes it all.
fn taking(must: bool) -> (Cluster, Value) {
    let more = json!({
        "transferEnv": [{"sourceContainerName": "main", "envNames": ["A", "B"]}], "shareVolumePolicy": {"type": "enabled"},
        "volumeMounts": [{"name": "own", "mountPath": "/own"}],
    });
    let mut spec = json!({"containers": [sidecar(more)], "volumes": [{"name": "own", "emptyDir": {}}]});
    if must {
        spec["optOut"] = json!("Denied");
    }
    let mut pod = app(json!({
        "env": [{"name": "A", "value": "1"}, {"name": "N", "value": "n"}],
        "volumeMounts": [{"name": "v", "mountPath": "/one"}, {"name": "v", "mountPath": "/two", "subPathExpr": "$(N)"}],
    }));
    pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    (Cluster::from_objects(&[set("s", spec)]), pod)
}

#[test]
fn a_second_pass_changes_nothing_and_the_twin_accepts_it() {
    for must in [false, true] {
        let (cluster, pod) = taking(must);
        let first = cluster.mutate(&pod);
        assert_eq!(first.reason, reasons::INJECTED, "{}", first.message);
        let second = cluster.mutate(&first.pod);
        assert_eq!(
            (second.decision, second.reason),
            (Decision::Allowed, reasons::ALREADY_INJECTED),
            "{:?}",
            second.warnings
        );
        let twin = cluster.validate(&first.pod);
        assert_eq!((twin.decision, twin.warnings), (Decision::Allowed, vec![]), "{}", twin.message);
    }
}

#[test]
fn what_another_webhook_gives_the_app_later_is_taken_too() {
    for must in [false, true] {
        let (cluster, pod) = taking(must);
        let mut changed = cluster.mutate(&pod).pod;
        let containers = changed["spec"]["containers"].as_array_mut().unwrap();
        let main = containers.iter_mut().find(|container| container["name"] == "main").unwrap();
        main["env"].as_array_mut().unwrap().insert(0, json!({"name": "B", "value": "2"}));
        main["env"][1]["value"] = json!("changed");
        main["volumeMounts"].as_array_mut().unwrap().insert(0, json!({"name": "v", "mountPath": "/three"}));
        let twin = cluster.validate(&changed);
        assert_eq!(twin.decision == Decision::Denied, must, "{}", twin.message);
        let second = cluster.mutate(&changed);
        assert_eq!(second.reason, reasons::INJECTED, "{}", second.message);
        assert_eq!(variables(side(&second, "containers")), [MARK, "A=changed", "N=n", "B=2"]);
        assert_eq!(paths(side(&second, "containers")), ["/own", "/one", "/two", "/three"]);
        assert_eq!(cluster.mutate(&second.pod).decision, Decision::Allowed);
        let twin = cluster.validate(&second.pod);
        assert_eq!((twin.decision, twin.warnings), (Decision::Allowed, vec![]), "{}", twin.message);
    }
}

/// Something that is changed in a container.
type Change = fn(&mut Value);

#[test]
fn a_must_is_not_evaded_by_what_the_pods_author_writes() {
    let (cluster, pod) = taking(true);
    let whole = cluster.mutate(&pod).pod;
    let at = whole["spec"]["containers"].as_array().unwrap().iter().position(|it| it["name"] == "side").unwrap();
    let changes: [(&str, Change); 6] = [
        ("a variable that the app does not have", |side| {
            side["env"].as_array_mut().unwrap().push(json!({"name": "B", "value": "x"}));
        }),
        ("a variable twice", |side| {
            side["env"].as_array_mut().unwrap().push(json!({"name": "A", "value": "x"}));
        }),
        ("another mount", |side| {
            side["volumeMounts"].as_array_mut().unwrap().push(json!({"name": "v", "mountPath": "/etc"}));
        }),
        ("a mount twice", |side| {
            side["volumeMounts"].as_array_mut().unwrap().push(json!({"name": "own", "mountPath": "/one"}));
        }),
        ("a device", |side| side["volumeDevices"] = json!([{"name": "v", "devicePath": "/dev/x"}])),
        ("another image", |side| side["image"] = json!("evil:1")),
    ];
    for (what, change) in changes {
        let mut forged = whole.clone();
        change(&mut forged["spec"]["containers"][at]);
        assert_eq!(cluster.mutate(&forged).reason, reasons::CONTAINER_CLASH, "{what}");
        assert_eq!(cluster.validate(&forged).decision, Decision::Denied, "{what}");
    }
    // What is only lacking is put right by the one and refused by the other.
    for list in ["env", "volumeMounts"] {
        let mut forged = whole.clone();
        forged["spec"]["containers"][at][list].as_array_mut().unwrap().pop();
        assert_eq!(cluster.validate(&forged).decision, Decision::Denied, "{list}");
        let repaired = cluster.mutate(&forged).pod;
        assert_eq!(cluster.validate(&repaired).decision, Decision::Allowed, "{list}");
    }
}

#[test]
fn no_word_of_the_pod_keeps_its_mounts_from_a_must() {
    let mark = json!([{"name": "IS_INJECTED", "value": "true"}]);
    let mount = json!([{"name": "v", "mountPath": "/secret"}]);
    for must in [false, true] {
        let mut spec = json!({"containers": [sidecar(sharing())]});
        if must {
            spec["optOut"] = json!("Denied");
        }
        let other = set("other", json!({"containers": [{"name": "main", "image": "other:1"}], "clashPolicy": "Skip"}));
        let cluster = Cluster::from_objects(&[set("s", spec), other]);
        let reply = cluster.mutate(&app(json!({"env": mark, "volumeMounts": mount})));
        let expected: &[&str] = if must { &["/secret"] } else { &[] };
        assert_eq!(paths(side(&reply, "containers")), expected);
    }
}

#[test]
fn sets_take_nothing_from_each_other() {
    let sharing = |name: &str| {
        let container = json!({"name": name, "image": format!("{name}:1"), "volumeMounts": [{"name": name, "mountPath": format!("/{name}")}],
            "shareVolumePolicy": {"type": "enabled"}});
        set(name, json!({"containers": [container], "volumes": [{"name": name, "emptyDir": {}}], "optOut": "Denied"}))
    };
    let cluster = Cluster::from_objects(&[sharing("a"), sharing("b")]);
    let first = cluster.mutate(&app(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]})));
    assert_eq!(paths(&first.pod["spec"]["containers"][0]), ["/a", "/v"]);
    assert_eq!(paths(&first.pod["spec"]["containers"][1]), ["/b", "/v"]);
    assert_eq!(cluster.mutate(&first.pod).decision, Decision::Allowed);
}

#[test]
fn lists_of_any_length_are_copied_up_to_what_an_api_server_stores() {
    let mounts: Vec<Value> =
        (0..20_000).map(|at| json!({"name": "v", "mountPath": format!("/m/{at}/{}", "x".repeat(40))})).collect();
    let mut pod = app(json!({}));
    pod["spec"]["containers"][0]["volumeMounts"] = json!(mounts);
    let containers: Vec<Value> = (0..50)
        .map(|at| json!({"name": format!("c{at}"), "image": "c:1", "shareVolumePolicy": {"type": "enabled"}}))
        .collect();
    let reply = Cluster::from_objects(&[set("s", json!({"containers": containers}))]).mutate(&pod);
    assert_eq!(reply.reason, reasons::RESULT_ILLEGAL);
    assert!(reply.message.contains("exceeds 3 MiB"), "{}", reply.message);
}

/// What is behind the limit would be hidden from the set: a variable that it overwrites would keep the pod's value.
#[test]
fn a_container_with_more_variables_mounts_or_devices_than_are_read_carries_no_set_that_reads_them() {
    const MOST: usize = 160_000;
    let adding = json!({
        "appContainers": [{"env": [{"name": "X", "value": "of-set"}], "overwriteEnv": true, "volumeMounts": [{"name": "w", "mountPath": "/w"}]}],
        "volumes": [{"name": "w", "emptyDir": {}}],
    });
    let taking =
        json!({"containers": [sidecar(transfer(json!({"sourceContainerName": "main"}), json!({"envName": "X"})))]});
    for (spec, value) in [(adding, "of-set"), (taking, "hidden")] {
        let mut spec = spec.clone();
        spec["optOut"] = json!("Denied");
        let cluster = Cluster::from_objects(&[set("s", spec.clone())]);
        for field in ["env", "volumeMounts", "volumeDevices"] {
            for (count, is_refused) in [(MOST, false), (MOST + 1, true)] {
                let mut elements = vec![json!({}); count - 1];
                elements.push(if field == "env" { json!({"name": "X", "value": "hidden"}) } else { json!({}) });
                let mut pod = app(json!({}));
                pod["spec"]["containers"][0][field] = json!(elements);
                let reply = cluster.mutate(&pod);
                let refused =
                    (reply.decision, reply.reason, reply.code) == (Decision::Denied, Reason::TOO_LARGE, Some(422));
                assert_eq!(refused, is_refused, "{count} {field} {spec}: {}", reply.message);
                if refused {
                    assert!(reply.message.contains("160,000 variables, mounts or devices"), "{}", reply.message);
                } else if field == "env" {
                    let containers = reply.pod["spec"]["containers"].as_array().unwrap();
                    let all = containers.iter().flat_map(|it| it["env"].as_array().into_iter().flatten());
                    let found: Vec<&Value> = all.filter(|it| it["name"] == "X").map(|it| &it["value"]).collect();
                    assert!(found.contains(&&json!(value)) && (value == "hidden" || found == ["of-set"]), "{found:?}");
                }
            }
        }
    }
    // A set that reads none of them leaves them to the API server.
    let mut pod = app(json!({}));
    pod["spec"]["containers"][0]["env"] = json!(vec![json!({}); MOST + 1]);
    assert_eq!(cluster(json!({})).mutate(&pod).reason, reasons::INJECTED);
}

#[test]
fn what_is_shared_is_counted_by_its_values_before_it_is_decoded() {
    let sharing = |name: &str| json!({"name": name, "image": "c:1", "shareVolumePolicy": {"type": "enabled"}, "shareVolumeDevicePolicy": {"type": "enabled"}});
    let shared = |field: &str, elements: Vec<Value>, containers: usize| {
        let mut pod = app(json!({}));
        pod["spec"]["containers"][0][field] = json!(elements);
        let containers: Vec<Value> = (0..containers).map(|at| sharing(&format!("c{at}"))).collect();
        Cluster::from_objects(&[set("s", json!({"containers": containers}))]).mutate(&pod)
    };
    let mounts = |count: usize| (0..count).map(|at| json!({"name": "v", "mountPath": format!("/{at}")})).collect();
    let devices =
        |count: usize| (0..count).map(|at| json!({"name": format!("v{at}"), "devicePath": format!("/{at}")})).collect();
    // Of so many no copy is made.
    let nested: Vec<Value> = vec![json!({"name": "v", "mountPath": "/a", "x": vec![json!({}); 20_000]})];
    let table = [
        ("volumeMounts", mounts(6_000), 1, false),
        ("volumeMounts", mounts(7_000), 1, true),
        ("volumeMounts", mounts(6_000), 2, true),
        ("volumeDevices", devices(7_000), 1, true),
        ("volumeMounts", nested, 1, true),
    ];
    for (field, elements, containers, is_refused) in table {
        let count = elements.len();
        let reply = shared(field, elements, containers);
        assert_eq!(reply.reason == reasons::RESULT_ILLEGAL, is_refused, "{count} {field}: {}", reply.message);
        if is_refused {
            assert!(reply.message.contains("20,000 values"), "{}", reply.message);
            assert_eq!(reply.code, Some(422));
        }
    }
}

#[test]
fn the_paths_of_mounts_are_counted_before_they_are_decoded_where_they_are_the_same_too() {
    let mount = json!({"name": "v", "mountPath": format!("/{}", "x".repeat(100_000))});
    for (containers, is_refused) in [(10, false), (40, true)] {
        let of_pod = |at: usize| json!({"name": format!("c{at}"), "image": "c:1", "volumeMounts": [mount]});
        let spec = json!({"containers": (0..containers).map(of_pod).collect::<Vec<_>>(), "volumes": [{"name": "v", "emptyDir": {}}]});
        let reply = cluster(json!({"shareVolumePolicy": {"type": "enabled"}})).mutate(&pod(spec));
        assert_eq!(reply.reason == reasons::RESULT_ILLEGAL, is_refused, "{containers}: {}", reply.message);
    }
}

/// Pipelines have hundreds of steps, each of which mounts the same hundreds of volumes.
#[test]
fn what_containers_mount_at_one_place_is_counted_once() {
    let steps = 80;
    let mounts: Vec<Value> =
        (0..steps).map(|at| json!({"name": format!("run-{at}"), "mountPath": format!("/run/{at}")})).collect();
    let step = |at: usize| json!({"name": format!("step-{at}"), "image": "s:1", "volumeMounts": mounts});
    let volumes: Vec<Value> = (0..steps).map(|at| json!({"name": format!("run-{at}"), "emptyDir": {}})).collect();
    let pipeline = pod(json!({"containers": (0..steps).map(step).collect::<Vec<_>>(), "volumes": volumes}));
    let reply = cluster(json!({"shareVolumePolicy": {"type": "enabled"}})).mutate(&pipeline);
    assert_eq!(reply.decision, Decision::Patched, "{}", reply.message);
    assert_eq!(paths(side(&reply, "containers")).len(), steps);
}
