//! In which order pods are updated.

use std::cmp::{Ordering, Reverse};

use admission::format::selector::Labels as _;

use super::PodState;
use super::scatter::scatter;
use super::strategy::{Priority, Strategy};

/// Puts positions of pods into the order in which they are updated: what serves least goes first, then the newest; the set's
/// priorities go before that, and then pods are spread.
pub fn sort(positions: &mut Vec<usize>, pods: &[PodState<'_>], strategy: &Strategy) {
    let pod = |position: &usize| pods.get(*position);
    positions.sort_by(|a, b| match (pod(a), pod(b)) {
        (Some(a), Some(b)) => by_need(a, b),
        _ => Ordering::Equal,
    });
    match &strategy.priority {
        Priority::None => {}
        Priority::Weight(weights) => positions.sort_by_key(|position| {
            let matching = |pod: &PodState<'_>| {
                let matching = weights.iter().filter(|(_, selector)| selector.matches(pod.labels));
                matching.fold(0_i64, |sum, (weight, _)| sum.saturating_add(*weight))
            };
            Reverse(pod(position).map(matching))
        }),
        Priority::Order(keys) => positions.sort_by_key(|position| pod(position).map(|pod| by_order(pod, keys))),
    }
    scatter(positions, pods, &strategy.scatter);
}

/// As a `ReplicaSet` chooses pods to delete.
fn by_need(a: &PodState<'_>, b: &PodState<'_>) -> Ordering {
    let serves = |pod: &PodState<'_>| (pod.is_assigned, pod.phase, pod.is_ready);
    let both_ready = a.is_ready && b.is_ready;
    serves(a)
        .cmp(&serves(b))
        .then_with(|| if both_ready { b.ready_since.cmp(&a.ready_since) } else { Ordering::Equal })
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| b.created.cmp(&a.created))
        .then_with(|| (a.namespace, a.name).cmp(&(b.namespace, b.name)))
}

/// Lower first: the first key that the pod has, and the greatest number that ends its value. Pods without any key go last.
fn by_order(pod: &PodState<'_>, keys: &[String]) -> (usize, Reverse<Option<u64>>) {
    let found = keys.iter().enumerate().find_map(|(level, key)| Some((level, pod.labels.get(key)?)));
    match found {
        Some((level, value)) => (level, Reverse(trailing_number(value))),
        None => (usize::MAX, Reverse(None)),
    }
}

fn trailing_number(value: &str) -> Option<u64> {
    let text = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.strip_prefix(text)?.parse().ok()
}
