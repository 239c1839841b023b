//! Rollouts of what only new pods can have: pods are evicted, within all budgets, and only where new ones come.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cluster::Cluster;
use serde_json::{Value, json};

use crate::process::eventually;
use crate::replicas::get;
use crate::rollout::{
    applied, condition, counts, deployment, is_ready, most, pods, set, stage, status, two_replicas, wait_ready,
};

const PODS: usize = 20;
const ALL: i64 = 20;

/// How long a leader evicts no pod from the beginning of its term on, and a little more.
const LEADER_PAUSE: Duration = Duration::from_secs(62);

/// Waits until a leader evicts pods that was there at this time.
fn rest_of_pause(since: Instant) {
    sleep(LEADER_PAUSE.saturating_sub(since.elapsed()));
}

/// The set with a variable in its container, which only new pods can have.
fn with_env(max_unavailable: &str) -> String {
    let set = set("web", "1", &format!("{max_unavailable}, recreate: true"));
    set.replace("'proxy:1'}", "'proxy:1', env: [{name: A, value: b}]}")
}

fn budget(name: &str, max_unavailable: usize) -> String {
    let spec = format!("{{maxUnavailable: {max_unavailable}, selector: {{matchLabels: {{app: web}}}}}}");
    format!("{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}}}, spec: {spec}}}")
}

/// Evictions by Outrider that the API server has carried out.
fn evictions(cluster: &Cluster) -> usize {
    let is_eviction = |event: &&Value| {
        let is_ours = event["user"]["username"] == crate::room::USER;
        is_ours && event["objectRef"]["subresource"] == "eviction" && event["responseStatus"]["code"] == 201
    };
    cluster.audit_events().unwrap().iter().filter(is_eviction).count()
}

/// Expects so many evictions and no more. The audit log may be behind what the test has seen.
fn evicted(cluster: &Cluster, expected: usize) {
    eventually("the audit log has the evictions", || evictions(cluster) >= expected);
    assert_eq!(evictions(cluster), expected);
}

fn uids(pods: &[Value]) -> BTreeSet<String> {
    pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect()
}

/// How many of so many pods do not serve.
fn missing(cluster: &Cluster, of: usize) -> usize {
    let serves = |pod: &&Value| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null();
    of.saturating_sub(pods(cluster, "web").iter().filter(serves).count())
}

/// Whether all pods have the variable.
fn all_are_new(cluster: &Cluster) -> bool {
    pods(cluster, "web").iter().all(|pod| {
        let containers = pod["spec"]["containers"].as_array().unwrap();
        let proxy = containers.iter().find(|container| container["name"] == "proxy");
        proxy.is_some_and(|proxy| proxy["env"][0] == json!({"name": "A", "value": "b"}))
    })
}

fn progressing(cluster: &Cluster) -> (String, String) {
    condition(&status(cluster, "web"), "Progressing")
}

fn reason(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// Why the set cannot be updated in a pod, as its condition says.
fn said_of(pod: &Value) -> String {
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|it| it["type"] == "outrider.dev/SidecarSetUpgradable");
    found.map(|condition| condition["message"].to_string()).unwrap_or_default()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_that_only_a_new_pod_can_follow_are_recreated_within_all_budgets() {
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "2"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", PODS));
    eventually("all are there", || counts(&cluster, "web") == [ALL; 4]);
    let before = pods(&cluster, "web");
    rest_of_pause(start);

    applied(&cluster, &budget("web", 0));
    applied(&cluster, &with_env("2"));
    eventually("the disruption budget is kept", || {
        progressing(&cluster) == reason("True", "WaitingForDisruptionBudget")
    });
    assert_eq!((counts(&cluster, "web"), evictions(&cluster)), ([ALL, 0, ALL, 0], 0));

    applied(&cluster, &budget("web", 3));
    let ((), most) = most(
        || missing(&cluster, PODS),
        || {
            eventually("some are new", || counts(&cluster, "web")[1] >= ALL / 3);
            eventually("more are new", || counts(&cluster, "web")[1] >= 2 * ALL / 3);
            eventually("all are new", || counts(&cluster, "web") == [ALL; 4] && all_are_new(&cluster));
        },
    );
    assert!((1..=2).contains(&most), "{most} pods were missing at one time");
    assert!(uids(&before).is_disjoint(&uids(&pods(&cluster, "web"))), "each was created anew");
    evicted(&cluster, PODS); // each once
    eventually("the rollout is said to be complete", || progressing(&cluster) == reason("True", "Complete"));
    assert_eq!(condition(&status(&cluster, "web"), "Degraded").0, "False");
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn evictions_of_a_leader_that_is_killed_are_gone_on_with_by_the_next_one_within_max_unavailable() {
    let (cluster, first, second, endpoints) = two_replicas();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "2"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", PODS));
    eventually("all are there", || counts(&cluster, "web") == [ALL; 4]);
    let before = pods(&cluster, "web");
    rest_of_pause(start);
    applied(&cluster, &with_env("2"));
    let ((), most) = most(
        || missing(&cluster, PODS),
        || {
            eventually("some are new", || (4..ALL - 2).contains(&counts(&cluster, "web")[1]));
            first.kill();
            endpoints.set(&[&second]);
            eventually("the other one leads", || second.leads());
            rest_of_pause(Instant::now());
            eventually("all are new", || counts(&cluster, "web") == [ALL; 4] && all_are_new(&cluster));
        },
    );
    assert!((1..=2).contains(&most), "{most} pods were missing at one time");
    assert!(uids(&before).is_disjoint(&uids(&pods(&cluster, "web"))));
    assert_eq!(second.forbidden(), Vec::<String>::new());
    second.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn of_pods_with_two_disruption_budgets_or_without_the_right_none_is_evicted_and_the_set_says_why() {
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "2"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 2));
    eventually("all are there", || counts(&cluster, "web") == [2; 4]);
    let before = pods(&cluster, "web");
    rest_of_pause(start);

    // As with the chart's value rollouts.evict: false.
    let role = get(&cluster, &["clusterrole", "outrider"]);
    let rules = role["rules"].as_array().unwrap();
    let of_evictions = rules.iter().position(|rule| rule["resources"] == json!(["pods/eviction"])).unwrap();
    let patch = json!([{"op": "remove", "path": format!("/rules/{of_evictions}")}]).to_string();
    cluster.kubectl_ok(&["patch", "clusterrole", "outrider", "--type=json", "-p", &patch], None).unwrap();
    applied(&cluster, &with_env("2"));
    eventually("the right is missing", || progressing(&cluster) == reason("False", "EvictionForbidden"));
    let given = json!([{"op": "add", "path": "/rules/-", "value": rules[of_evictions]}]).to_string();
    for name in ["one", "two"] {
        applied(&cluster, &budget(name, 2));
    }
    cluster.kubectl_ok(&["patch", "clusterrole", "outrider", "--type=json", "-p", &given], None).unwrap();
    eventually("the right is there again", || progressing(&cluster).1 != "EvictionForbidden");
    eventually("two budgets are in the way", || progressing(&cluster) == reason("False", "SeveralDisruptionBudgets"));
    assert_eq!((evictions(&cluster), uids(&pods(&cluster, "web"))), (0, uids(&before)));

    cluster.kubectl_ok(&["delete", "pdb", "two", "-n", "default"], None).unwrap();
    eventually("with one all are new", || counts(&cluster, "web") == [2; 4] && all_are_new(&cluster));
    evicted(&cluster, 2);
    outrider.end();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_without_a_controller_is_not_evicted_and_says_so() {
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "3"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 2));
    let bare = "{apiVersion: v1, kind: Pod, metadata: {name: bare, labels: {app: web}}, spec: {containers: [{name: app, image: 'app:1'}]}}";
    applied(&cluster, bare);
    eventually("all are there", || counts(&cluster, "web") == [3; 4]);
    let uid = || get(&cluster, &["pod", "bare", "-n", "default"])["metadata"]["uid"].to_string();
    let before = uid();
    rest_of_pause(start);
    applied(&cluster, &with_env("3"));
    eventually("the others are new", || counts(&cluster, "web") == [3, 2, 3, 2]);
    eventually("only new pods are missing", || progressing(&cluster) == reason("False", "NewPodsOnly"));
    evicted(&cluster, 2);
    assert_eq!(uid(), before);
    eventually("the pod names both", || {
        let said = said_of(&get(&cluster, &["pod", "bare", "-n", "default"]));
        said.contains("not evicted: it has no controller, which would create another; ")
            && said.contains("differs in env")
    });
    eventually("the set says so", || {
        condition(&status(&cluster, "web"), "Degraded") == reason("True", "NotUpdatableInPlace")
    });
    outrider.end();
}

/// Its new pods find no node, and are evicted in their turn for the form that is right.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_form_whose_pods_do_not_start_takes_down_max_unavailable_pods_and_is_corrected_without_further_ones() {
    const FEW: usize = 6;
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "2"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", FEW));
    eventually("all are there", || counts(&cluster, "web") == [6; 4]);
    let before = pods(&cluster, "web");
    rest_of_pause(start);
    let too_large = with_env("2").replace("env: [", "resources: {requests: {cpu: '1000000'}}, env: [");
    let ((), most) = most(
        || missing(&cluster, FEW),
        || {
            applied(&cluster, &too_large);
            eventually("two do not start", || counts(&cluster, "web") == [6, 2, 4, 0]);
            eventually("no more are taken down", || progressing(&cluster) == reason("True", "WaitingForPods"));
            sleep(Duration::from_secs(5));
            evicted(&cluster, 2);
            assert_eq!(missing(&cluster, FEW), 2);
            applied(&cluster, &with_env("2"));
            eventually("all are new", || counts(&cluster, "web") == [6; 4] && all_are_new(&cluster));
        },
    );
    assert!(most <= 2, "{most} pods were missing at one time");
    assert!(uids(&before).is_disjoint(&uids(&pods(&cluster, "web"))));
    evicted(&cluster, FEW + 2); // each once, and the two that did not start
    eventually("the rollout is said to be complete", || progressing(&cluster) == reason("True", "Complete"));
    assert_eq!(condition(&status(&cluster, "web"), "Degraded").0, "False", "each was replaced");
    outrider.end();
}

/// The template of the workload has an older form of one of them, so that its new pods never get the current one.
#[test]
#[ignore = "needs a control plane: make test"]
fn of_two_sets_that_recreate_the_pods_of_one_workload_each_evicts_as_many_as_it_has_to() {
    const FEW: usize = 4;
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "1"));
    let mesh = set("web", "1", "1, recreate: true")
        .replace("name: web", "name: mesh")
        .replace("name: proxy", "name: mesh")
        .replace("name: native", "name: late");
    applied(&cluster, &mesh);
    wait_ready(&cluster, "web");
    wait_ready(&cluster, "mesh");
    let record = json!({"mesh": {"hash": "v1:0000000000000000", "containers": ["mesh"]}}).to_string();
    let mut workload: Value = serde_json::from_str(
        &cluster
            .kubectl_ok(
                &["create", "-n", "default", "--dry-run=client", "-o", "json", "-f", "-"],
                Some(&deployment("web", FEW)),
            )
            .unwrap(),
    )
    .unwrap();
    let template = &mut workload["spec"]["template"];
    template["metadata"]["annotations"]["outrider.dev/injected"] = record.into();
    let older = json!({"name": "mesh", "image": "proxy:0", "env": [{"name": "IS_INJECTED", "value": "true"}]});
    template["spec"]["containers"].as_array_mut().unwrap().push(older);
    applied(&cluster, &workload.to_string());
    eventually("all are there", || counts(&cluster, "web") == [4; 4] && counts(&cluster, "mesh") == [4, 0, 4, 0]);
    let before = pods(&cluster, "web");
    rest_of_pause(start);
    applied(&cluster, &with_env("1"));
    eventually("all have the form of one", || counts(&cluster, "web") == [4; 4] && all_are_new(&cluster));
    let degraded = || condition(&status(&cluster, "mesh"), "Degraded");
    eventually("new pods lack that of the other", || degraded() == reason("True", "NewPodsOutdated"));
    let after = evictions(&cluster);
    assert!((FEW..=FEW + 1).contains(&after), "{after} evictions");
    sleep(Duration::from_secs(10));
    assert_eq!(evictions(&cluster), after, "and no more");
    assert!(uids(&before).is_disjoint(&uids(&pods(&cluster, "web"))));
    outrider.end();
}

/// The condition Ready of the generation stays as it is, and new pods would go without the set.
#[test]
#[ignore = "needs a control plane: make test"]
fn no_pod_is_evicted_while_no_webhook_is_registered_that_would_inject_the_new_one() {
    let (cluster, first, second, _endpoints) = two_replicas();
    let start = Instant::now();
    applied(&cluster, &set("web", "1", "1"));
    wait_ready(&cluster, "web");
    applied(&cluster, &deployment("web", 3));
    eventually("all are there", || counts(&cluster, "web") == [3; 4]);
    let before = pods(&cluster, "web");
    applied(&cluster, &with_env("1"));
    let is_known = || {
        let set = get(&cluster, &["sidecarset", "web"]);
        let ready = set["status"]["conditions"].as_array().and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
        ready.is_some_and(|it| it["status"] == "True" && it["observedGeneration"] == set["metadata"]["generation"])
    };
    eventually("new pods have the form", is_known);
    let configuration = get(&cluster, &["mutatingwebhookconfiguration", "outrider-mutating"]);
    let entries = json!([{"op": "replace", "path": "/webhooks", "value": []}]).to_string();
    let configured = ["patch", "mutatingwebhookconfiguration", "outrider-mutating", "--type=json", "-p"];
    cluster.kubectl_ok(&[&configured[..], &[&entries]].concat(), None).unwrap();
    rest_of_pause(start);
    eventually("it is seen", || progressing(&cluster) == reason("True", "WaitingForReady"));
    sleep(Duration::from_secs(10));
    assert_eq!(uids(&pods(&cluster, "web")), uids(&before));
    let entries = json!([{"op": "replace", "path": "/webhooks", "value": configuration["webhooks"]}]).to_string();
    cluster.kubectl_ok(&[&configured[..], &[&entries]].concat(), None).unwrap();
    eventually("all are new", || counts(&cluster, "web") == [3; 4] && all_are_new(&cluster));
    second.end();
    first.end();
}

/// They are older than the set.
#[test]
#[ignore = "needs a control plane: make test"]
fn pods_that_lack_the_set_stay_as_they_are_until_it_repairs_them_and_are_replaced_within_max_unavailable_then() {
    let (cluster, outrider) = stage();
    let start = Instant::now();
    applied(&cluster, &deployment("web", 3));
    eventually("they serve without it", || {
        let pods = pods(&cluster, "web");
        pods.len() == 3 && pods.iter().all(is_ready)
    });
    let before = uids(&pods(&cluster, "web"));
    applied(&cluster, &set("web", "1", "1, recreate: true"));
    wait_ready(&cluster, "web");
    let degraded = || condition(&status(&cluster, "web"), "Degraded");
    eventually("they lack it", || degraded() == reason("True", "PodsUninjected"));
    rest_of_pause(start);
    sleep(Duration::from_secs(5));
    assert_eq!((evictions(&cluster), uids(&pods(&cluster, "web"))), (0, before.clone()), "by default");

    let ((), most) = most(
        || missing(&cluster, 3),
        || {
            applied(&cluster, &set("web", "1", "1, repair: Evict"));
            // A pod that is evicted may be there still when the one in its place serves.
            eventually("each has it, and was created anew", || {
                counts(&cluster, "web") == [3; 4]
                    && status(&cluster, "web")["uninjectedPods"] == 0
                    && uids(&pods(&cluster, "web")).is_disjoint(&before)
            });
        },
    );
    // A pod may be replaced between two samples.
    assert!(most <= 1, "{most} pods were missing at one time");
    evicted(&cluster, 3);
    eventually("the rollout is said to be complete", || progressing(&cluster) == reason("True", "Complete"));
    assert_eq!(degraded().0, "False");
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}
