//! A pod of the vocabulary of real ones, put together from bytes.

use serde_json::Value;

use super::cluster::{ALL, Cluster, MUTATE_POD, VALIDATE_POD, pod_review};
use super::kept;
use super::pod_of_bytes::Choices;

/// Checks what becomes of the pod that the bytes describe.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let cluster = choices.of(&ALL);
    let namespace = *choices.of(&["shop", "bare", "billing", "unknown", "kube-system"]);
    let pod = choices.pod();
    holds(cluster, namespace, &pod);
}

/// Checks what becomes of a new pod.
pub fn holds(cluster: &Cluster, namespace: &str, pod: &Value) {
    let Some(first) = cluster.ask(MUTATE_POD, &pod_review(namespace, pod)).filter(|reply| reply.allowed) else {
        return;
    };
    let patched = first.applied(pod);
    kept::check(pod, &patched);
    brings_no_name_twice(pod, &patched);
    let review = pod_review(namespace, &patched);
    let second = cluster.ask(MUTATE_POD, &review).expect("a verdict on what was mutated");
    assert!(second.allowed, "a second pass refuses: {}: {pod}", second.status);
    assert!(second.patch.is_none(), "a second pass changes something: {:?}: {pod}", second.patch);
    let twin = cluster.ask(VALIDATE_POD, &review).expect("a verdict on what was mutated");
    assert!(twin.allowed, "validation refuses what mutation made: {}: {pod}", twin.status);
}

fn brings_no_name_twice(pod: &Value, patched: &Value) {
    for lists in [&["containers", "initContainers"][..], &["volumes"]] {
        let (mut seen, mut all) = (names(pod, lists), names(patched, lists));
        for own in &seen {
            let at = all.iter().position(|name| name == own).expect("the pod's own are kept");
            all.swap_remove(at);
        }
        for added in all {
            assert!(!seen.contains(&added), "{added} is there twice: {patched}");
            seen.push(added);
        }
    }
}

fn names<'p>(pod: &'p Value, lists: &[&str]) -> Vec<&'p Value> {
    let of = |list: &&str| pod["spec"][*list].as_array().into_iter().flatten();
    lists.iter().flat_map(of).map(|element| &element["name"]).collect()
}
