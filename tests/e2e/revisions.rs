//! The revisions of a set while its pods follow, or stay, on the nodes of kwok: there a container restarts when its image changes, and
//! resizes are carried out. Numbers are those of the cases of the reference for `OpenKruise`'s behaviour.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{Cluster, Options, POD_CHANGES};
use serde_json::Value;

use crate::process::{Outrider, eventually};
use crate::replicas::get;
use crate::rollout::{applied, condition, counts, deployment, pods, restarts_native, stage_with, status};

/// Each form has an image and a request of its own.
const SET: &str = r"
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {name: NAME}
spec:
  namespace: default
  selector: {matchLabels: {app: NAME}}
  updateStrategy: {STRATEGY}
  containers: [{name: proxy, image: 'proxy:FORM', resources: {requests: {cpu: CPU}}}]
  initContainers: [{name: native, image: 'native:NATIVE', restartPolicy: Always}]
";

const POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: NAME-FORM, labels: {app: NAME}}
spec: {containers: [{name: app, image: 'app:1'}]}
";

/// How many revisions are kept by default.
const LIMIT: i64 = 10;

const FORMS: i64 = 15;

/// The first release whose pods can be resized.
const RESIZES: u32 = 33;

/// `OpenKruise`'s cases, on a cluster whose nodes do what a kubelet does when a pod changes.
fn kwok_stage() -> (Cluster, Outrider) {
    stage_with(&Options { kwok_stages: vec![POD_CHANGES.into()], ..Options::default() })
}

/// What a form requests.
fn cpu(cluster: &Cluster, form: i64) -> String {
    if cluster.minor_version() < RESIZES { "100m".to_owned() } else { format!("{}m", 100 + form) }
}

/// Which image of the native sidecar a form has.
fn native(cluster: &Cluster, form: i64) -> i64 {
    if restarts_native(cluster) { form } else { 1 }
}

fn apply(cluster: &Cluster, name: &str, strategy: &str, form: i64) {
    let native = native(cluster, form).to_string();
    let set = SET
        .replace("NAME", name)
        .replace("NATIVE", &native)
        .replace("STRATEGY", strategy)
        .replace("CPU", &cpu(cluster, form));
    applied(cluster, &set.replace("FORM", &form.to_string()));
}

/// The forms that are kept of a set, by the number of their revision.
fn kept(cluster: &Cluster, set: &str) -> BTreeMap<i64, i64> {
    let revisions = get(cluster, &["controllerrevisions", "-n", "outrider-system"]);
    let of_set = |revision: &&Value| revision["metadata"]["ownerReferences"][0]["name"] == set;
    let revisions = revisions["items"].as_array().unwrap().iter().filter(of_set).map(|revision| {
        let image = revision["data"]["spec"]["containers"][0]["image"].as_str().unwrap();
        (revision["revision"].as_i64().unwrap(), form_of(image))
    });
    revisions.collect()
}

fn form_of(image: &str) -> i64 {
    image.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// The revisions of these forms have the numbers of the forms.
fn numbered_as(forms: impl IntoIterator<Item = i64>) -> BTreeMap<i64, i64> {
    forms.into_iter().map(|form| (form, form)).collect()
}

/// The form that a pod's spec and its running containers have, if all agree.
fn form(cluster: &Cluster, pod: &Value) -> Option<i64> {
    let lists = [("spec", "containers", "initContainers"), ("status", "containerStatuses", "initContainerStatuses")];
    let mut forms = BTreeSet::new();
    for (part, plain, natives) in lists {
        let proxy = named(&pod[part][plain], "proxy")?;
        let form = form_of(proxy["image"].as_str()?);
        let image = named(&pod[part][natives], "native")?["image"].as_str()?;
        let has_amount = proxy["resources"]["requests"]["cpu"] == cpu(cluster, form);
        // An API server without resizes does not store what a status says of resources.
        let is_whole = has_amount || (part == "status" && cluster.minor_version() < RESIZES);
        if !is_whole || form_of(image) != native(cluster, form) {
            return None;
        }
        forms.insert(form);
    }
    forms.pop_first().filter(|_| forms.is_empty())
}

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|container| container["name"] == name)
}

/// By pod, who it is and which container of the application runs.
fn identities(pods: &[Value]) -> BTreeSet<String> {
    let identity = |pod: &Value| {
        let app = named(&pod["status"]["containerStatuses"], "app").unwrap();
        format!("{} {} {}", pod["metadata"]["uid"], app["state"], app["restartCount"])
    };
    pods.iter().map(identity).collect()
}

/// Two pods follow every form in place, and the revisions are those of the newest forms.
#[test]
#[ignore = "needs a control plane: make test"]
fn case_106_and_107_of_fifteen_updates_ten_are_kept_and_going_back_keeps_the_order_of_the_others() {
    let (cluster, outrider) = kwok_stage();
    let strategy = "maxUnavailable: 2";
    let followed = |form_wanted: i64| {
        let all = pods(&cluster, "web");
        all.len() == 2
            && all.iter().all(|pod| form(&cluster, pod) == Some(form_wanted))
            && counts(&cluster, "web") == [2; 4]
    };
    apply(&cluster, "web", strategy, 1);
    eventually("the next pod has it", || is_in_force(&cluster, "web"));
    applied(&cluster, &deployment("web", 2));
    eventually("all are there", || followed(1));
    let before = identities(&pods(&cluster, "web"));
    for form in 2..=FORMS {
        apply(&cluster, "web", strategy, form);
        eventually(&format!("all follow to {form}"), || followed(form));
    }
    let newest = numbered_as(FORMS - LIMIT + 1..=FORMS);
    eventually("ten are kept", || kept(&cluster, "web") == newest);

    // Back to the twelfth, which becomes the sixteenth.
    apply(&cluster, "web", strategy, 12);
    eventually("all go back", || followed(12));
    let mut expected = newest;
    expected.remove(&12);
    expected.insert(16, 12);
    eventually("the old one is the newest", || kept(&cluster, "web") == expected);

    // From each place to the end: the one that is the newest already stays.
    for place in 0..10 {
        let (number, form) = expected.iter().nth(place).map(|(number, form)| (*number, *form)).unwrap();
        let last = *expected.last_key_value().unwrap().0;
        apply(&cluster, "web", strategy, form);
        eventually(&format!("all go back to {form}"), || followed(form));
        if number != last {
            expected.remove(&number);
            expected.insert(last + 1, form);
        }
        eventually(&format!("{form} is the newest"), || kept(&cluster, "web") == expected);
    }
    assert_eq!(identities(&pods(&cluster, "web")), before, "the same pods, whose application runs on");
    assert_eq!(condition(&status(&cluster, "web"), "Degraded").0, "False");
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}

/// Whether the next pod gets the set as it is.
fn is_in_force(cluster: &Cluster, name: &str) -> bool {
    let set = get(cluster, &["sidecarset", name]);
    let status = &set["status"];
    status["observedGeneration"] == set["metadata"]["generation"] && condition(status, "Ready").0 == "True"
}

/// Pods of a paused set stay with the form that they were created with. Of the set `eight` only the first eight forms have pods.
#[test]
#[ignore = "needs a control plane: make test"]
fn case_105_revisions_that_pods_use_stay_beyond_the_limit_until_the_pods_are_gone() {
    let (cluster, outrider) = kwok_stage();
    let sets = [("all", FORMS), ("eight", 8)];
    for form in 1..=FORMS {
        for (set, _) in sets {
            apply(&cluster, set, "paused: true", form);
        }
        for (set, used) in sets {
            eventually(&format!("the next pod has {form}"), || is_in_force(&cluster, set));
            if form <= used {
                applied(&cluster, &POD.replace("NAME", set).replace("FORM", &form.to_string()));
            }
        }
    }
    let running = |set: &str, forms: i64| {
        let found = pods(&cluster, set).iter().filter_map(|pod| form(&cluster, pod)).collect::<BTreeSet<_>>();
        found == (1..=forms).collect()
    };
    for (set, used) in sets {
        eventually("each form has its pod", || running(set, used));
    }
    eventually("none goes that is used", || kept(&cluster, "all") == numbered_as(1..=FORMS));
    let and_newest = numbered_as((1..=8).chain([14, 15]));
    eventually("of the unused ones the newest are kept", || kept(&cluster, "eight") == and_newest);

    // How many are left of them when so many are used: the newest stays, used or not.
    for (used, left) in [(14, 15), (11, 12), (10, 11), (9, 10), (0, 10)] {
        let surplus: Vec<String> = (used + 1..=FORMS).map(|form| format!("all-{form}")).collect();
        let mut delete = vec!["delete", "pod", "-n", "default", "--ignore-not-found", "--timeout=120s"];
        delete.extend(surplus.iter().map(String::as_str));
        cluster.kubectl_ok(&delete, None).unwrap();
        eventually(&format!("{used} are used"), || counts(&cluster, "all")[0] == used);
        let expected = numbered_as((1..left).chain([FORMS]));
        eventually(&format!("of 15, {left} are left"), || kept(&cluster, "all") == expected);
    }
    assert_eq!(kept(&cluster, "eight"), and_newest);
    assert_eq!(outrider.forbidden(), Vec::<String>::new());
    outrider.end();
}
