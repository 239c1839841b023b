//! Spreading pods with the same label over a rollout.

use std::collections::BTreeSet;

use admission::format::selector::Labels as _;

use super::PodState;
use engine::sidecarset::api::ScatterTerm;

/// Labels of pods are many; of more terms than this the first ones count.
const MAX_TERMS: usize = 64;

/// Spreads the pods of each term among the others, term after term. The term that matches most pods goes first.
pub fn scatter(positions: &mut Vec<usize>, pods: &[PodState<'_>], terms: &[ScatterTerm]) {
    let mut terms = expanded(positions, pods, terms);
    let count = |(key, value): &(String, String)| {
        positions.iter().filter(|position| matches(pods, **position, key, value)).count()
    };
    terms.sort_by_cached_key(|term| std::cmp::Reverse(count(term)));
    for (key, value) in terms {
        let (matched, others): (Vec<usize>, Vec<usize>) =
            positions.iter().partition(|position| matches(pods, **position, &key, &value));
        if matched.len() > 1 && others.len() > 1 {
            *positions = interleaved(&matched, &others);
        }
    }
}

fn matches(pods: &[PodState<'_>], position: usize, key: &str, value: &str) -> bool {
    pods.get(position).is_some_and(|pod| pod.labels.get(key) == Some(value))
}

/// The terms, with `*` as a term for every value that the pods have, in the order of the pods, each once.
pub fn expanded(positions: &[usize], pods: &[PodState<'_>], terms: &[ScatterTerm]) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for ScatterTerm { key, value } in terms {
        let values: Vec<&str> = match value.as_str() {
            "*" => positions.iter().filter_map(|position| pods.get(*position)?.labels.get(key)).collect(),
            value => vec![value],
        };
        for value in values {
            let term = (key.clone(), value.to_owned());
            if all.len() < MAX_TERMS && seen.insert(term.clone()) {
                all.push(term);
            }
        }
    }
    all
}

/// Both, each in its order, the matched ones evenly among the others, the last of them at the very end.
fn interleaved(matched: &[usize], others: &[usize]) -> Vec<usize> {
    let (last, spread) = match matched.split_last() {
        Some((last, spread)) => (Some(*last), spread),
        None => (None, matched),
    };
    let mut result = Vec::with_capacity(matched.len().saturating_add(others.len()));
    let mut spread = spread.iter().enumerate().peekable();
    let places = spread.len();
    for (index, other) in others.iter().enumerate() {
        // The nth matched pod comes before the other one at its share of the whole.
        while let Some((_, position)) =
            spread.next_if(|(nth, _)| nth.saturating_mul(others.len()) <= index.saturating_mul(places))
        {
            result.push(*position);
        }
        result.push(*other);
    }
    result.extend(spread.map(|(_, position)| *position));
    result.extend(last);
    result
}
