//! What somebody meant who mistyped a name.

/// The known name that `key` is most likely a slip of.
pub fn suggest<'k>(key: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = key.to_lowercase();
    let allowed = (key.chars().count() / 3).clamp(1, 3);
    let distances = known.into_iter().map(|name| (edit_distance(&lower, &name.to_lowercase(), allowed), name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

/// How many insertions, deletions, replacements and swaps of neighbours lead from one to the other; `limit + 1` when it is
/// clear early that it takes more than `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX - 1);
    let (mut before, mut above): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        // No later row is better than the best of this one and the one before.
        if row.iter().chain(&above).all(|cost| *cost > limit) {
            return limit + 1;
        }
        before = std::mem::replace(&mut above, row);
    }
    at(&above, b.len())
}

#[cfg(test)]
mod tests {
    use super::suggest;

    #[test]
    fn a_slip_is_a_third_of_the_letters_at_most_and_never_more_than_three() {
        let known = ["image", "imagePullPolicy", "matchLabels", "env", "envFrom"];
        for (key, meant) in [
            ("imgae", Some("image")),
            ("IMAGE", Some("image")),
            ("matchLabel", Some("matchLabels")),
            ("imagePullPolice", Some("imagePullPolicy")),
            ("envForm", Some("envFrom")),
            ("en", Some("env")),
            ("e", None),
            ("imagination", None),
            ("", None),
        ] {
            assert_eq!(suggest(key, known), meant, "{key}");
        }
    }
}
