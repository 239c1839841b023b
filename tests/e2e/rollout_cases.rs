//! Running pods of sets that change what restarts nothing, of two sets, and of sets whose pods go meanwhile, on the nodes of kwok.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::{client_config, eventually};
use crate::replicas::get;
use crate::rollout::{applied, counts, deployment, pods, wait_ready};
use crate::rollout_strategies::{Room, names};
use crate::unavailable_pods::UnavailablePods;

const CONFIGURATION: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: outrider-configuration, namespace: outrider-system}
data:
  SidecarSet_PatchPodMetadata_WhiteList: |
    {"rules": [{"allowedAnnotationKeyExprs": ["^team$"]}]}
"#;

#[test]
#[ignore = "needs a control plane: make test"]
fn cases_46_94_to_96_100_103_and_108_pods_follow_two_sets_a_selector_annotations_and_the_loss_of_pods() {
    let room = Room::new();
    annotations_follow_and_restart_nothing(&room);
    of_two_sets_the_one_that_can_be_updated_is(&room);
    a_selector_takes_some_pods_and_a_pause_holds_the_rest(&room);
    another_plain_init_container_changes_no_running_pod(&room);
    pods_that_go_in_the_middle_block_nothing(&room);
    no_workload_loses_more_than_its_share(&room);
    room.ends();
}

/// Cases 46 and 108.
fn annotations_follow_and_restart_nothing(room: &Room) {
    room.cluster.kubectl_ok(&["apply", "-f", "-"], Some(CONFIGURATION)).unwrap();
    let form = |team: &str| {
        let more = json!({"patchPodMetadata": [{"annotations": {"team": team}, "patchPolicy": "Overwrite"}]});
        let set = || room.set("noted", &json!({}), &json!({"image": "proxy:1"}), &more);
        // Until the list of allowed annotations is known, it is refused.
        eventually("the annotation is allowed", || std::panic::catch_unwind(std::panic::AssertUnwindSafe(set)).is_ok());
    };
    form("red");
    wait_ready(&room.cluster, "noted");
    applied(&room.cluster, &deployment("noted", 2));
    room.counts("noted", [2, 2, 2, 2]);
    let containers = || -> BTreeSet<String> {
        pods(&room.cluster, "noted").iter().map(|pod| pod["status"]["containerStatuses"].to_string()).collect()
    };
    let revisions = || {
        let all = get(&room.cluster, &["controllerrevisions", "-n", "outrider-system"]);
        let of_set = |revision: &&Value| revision["metadata"]["ownerReferences"][0]["name"] == "noted";
        all["items"].as_array().unwrap().iter().filter(of_set).count()
    };
    let before = (containers(), revisions());
    assert_eq!(before.1, 1);
    form("blue");
    eventually("the annotation follows", || {
        pods(&room.cluster, "noted").iter().all(|pod| pod["metadata"]["annotations"]["team"] == "blue")
    });
    room.counts("noted", [2, 2, 2, 2]);
    assert_eq!((containers(), revisions()), (before.0, 2));
}

/// Case 94.
fn of_two_sets_the_one_that_can_be_updated_is(room: &Room) {
    let selector = json!({"selector": {"matchLabels": {"app": "two"}}});
    let first = |proxy: Value| room.set("one", &json!({"maxUnavailable": 2}), &proxy, &selector);
    let second = |tag: &str| room.image("two", &json!({"maxUnavailable": 2}), tag);
    first(json!({"image": "proxy:1", "command": ["a"]}));
    second("proxy:1");
    wait_ready(&room.cluster, "one");
    wait_ready(&room.cluster, "two");
    applied(&room.cluster, &deployment("two", 2));
    room.counts("one", [2, 2, 2, 2]);
    first(json!({"image": "proxy:1", "command": ["b"]}));
    second("proxy:2");
    let upgradable = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|it| it["type"] == "outrider.dev/SidecarSetUpgradable").cloned();
        found.map(|it| (it["status"] == "True", it["message"].as_str().unwrap_or_default().to_owned()))
    };
    eventually("the condition names the set", || {
        pods(&room.cluster, "two").iter().all(|pod| {
            upgradable(pod)
                .is_some_and(|(is_so, message)| !is_so && message.contains("one") && message.contains("command"))
        })
    });
    room.counts("one", [2, 0, 2, 0]);
    room.counts("two", [2, 2, 2, 2]);
    eventually("the other set is followed", || room.with_image("two", "proxy:2").len() == 2);
    first(json!({"image": "proxy:3", "command": ["a"]}));
    room.counts("one", [2, 2, 2, 2]);
    eventually("the condition is true again", || {
        pods(&room.cluster, "two").iter().all(|pod| upgradable(pod).is_some_and(|(is_so, _)| is_so))
    });
}

/// The rest of case 95: `tests/e2e/rollout.rs` has the partition.
fn a_selector_takes_some_pods_and_a_pause_holds_the_rest(room: &Room) {
    room.begins("some", &json!({}));
    for (name, canary) in [("some-0", "true"), ("some-1", "false")] {
        room.pod("some", name, &json!({"canary": canary}), &json!({}));
    }
    room.counts("some", [2, 2, 2, 2]);
    let selector = json!({"selector": {"matchLabels": {"canary": "true"}}, "maxUnavailable": 2});
    room.image("some", &selector, "proxy:2");
    room.counts("some", [2, 1, 2, 1]);
    assert_eq!(room.with_image("some", "proxy:2"), names(&["some-0"]));
    room.image("some", &json!({"paused": true}), "proxy:2");
    eventually("it is paused", || room.reason("some", "Progressing").1 == "Paused");
    assert_eq!(counts(&room.cluster, "some"), [2, 1, 2, 1]);
    room.image("some", &json!({}), "proxy:2");
    room.counts("some", [2, 2, 2, 2]);
}

/// Case 96.
fn another_plain_init_container_changes_no_running_pod(room: &Room) {
    let form = |tag: &str| {
        let more = json!({"initContainers": [{"name": "once", "image": format!("once:{tag}")}]});
        room.set("once", &json!({}), &json!({"image": "proxy:1"}), &more);
    };
    form("1");
    wait_ready(&room.cluster, "once");
    room.pod("once", "once", &json!({}), &json!({}));
    room.counts("once", [1, 1, 1, 1]);
    let containers = |pod: &Value| -> Vec<String> {
        let lists = ["initContainers", "containers"].iter().flat_map(|list| pod["spec"][list].as_array().unwrap());
        lists.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = pods(&room.cluster, "once").remove(0);
    assert_eq!(containers(&before), ["once", "once-proxy", "app"], "the sides that are the default");
    form("2");
    room.counts("once", [1, 0, 1, 0]);
    eventually("it is said", || room.reason("once", "Degraded").1 == "NotUpdatableInPlace");
    assert_eq!(pods(&room.cluster, "once")[0]["spec"], before["spec"]);
}

/// Cases 100 and 103, and 101 for the pods that come instead.
fn pods_that_go_in_the_middle_block_nothing(room: &Room) {
    room.begins("gone", &json!({}));
    applied(&room.cluster, &deployment("gone", 6));
    room.counts("gone", [6, 6, 6, 6]);
    let before = room.with_image("gone", "proxy:1");
    room.image("gone", &json!({"maxUnavailable": 1}), "proxy:2");
    let mut deleted = BTreeSet::new();
    eventually("all that are left have it", || {
        // Each pod that was updated goes at once, up to three of them.
        for name in room.with_image("gone", "proxy:2").intersection(&before) {
            if deleted.len() < 3 && deleted.insert(name.clone()) {
                let now = ["delete", "pod", name, "-n", "default", "--wait=false", "--grace-period=0", "--force"];
                room.cluster.kubectl_ok(&now, None).unwrap();
            }
        }
        room.with_image("gone", "proxy:2").len() == 6 && counts(&room.cluster, "gone") == [6, 6, 6, 6]
    });
    assert_eq!(deleted.len(), 3);
    eventually("it is complete", || room.reason("gone", "Progressing").1 == "Complete");
}

/// Two workloads of one set, of which each may lack one pod at a time.
fn no_workload_loses_more_than_its_share(room: &Room) {
    let strategy = json!({"maxUnavailable": "100%", "maxUnavailablePerOwner": 1});
    let selector = json!({"selector": {"matchLabels": {"of": "owners"}}});
    let form = |tag: &str| room.set("owners", &strategy, &json!({"image": tag}), &selector);
    form("proxy:1");
    wait_ready(&room.cluster, "owners");
    for name in ["left", "right"] {
        let pods = deployment(name, 4).replace("labels: {app:", "labels: {of: owners, app:");
        applied(&room.cluster, &pods);
    }
    room.counts("owners", [8, 8, 8, 8]);
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(async { Client::try_from(client_config(&room.cluster).await).unwrap() });
    let watches = ["left", "right"].map(|app| UnavailablePods::watch(runtime.handle(), client.clone(), app));
    eventually("all pods are seen", || watches.iter().all(|watch| watch.seen() >= 4));
    form("proxy:2");
    eventually("all follow", || ["left", "right"].iter().all(|app| room.with_image(app, "proxy:2").len() == 4));
    room.counts("owners", [8, 8, 8, 8]);
    for watch in watches {
        assert_eq!(watch.most(), 1);
    }
}
