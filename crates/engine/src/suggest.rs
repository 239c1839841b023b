//! Suggestions for mistyped names.

use strsim::osa_distance;

/// The known name that `key` is most likely a misspelling of: a third of its letters may differ, three at most.
pub fn suggest<'k>(key: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (lower, length) = (key.to_lowercase(), key.chars().count());
    let allowed = (length / 3).clamp(1, 3);
    // The distance takes time and memory by the product of both lengths, and `key` is a user's.
    let alike = known.into_iter().filter(|name| name.chars().count().abs_diff(length) <= allowed);
    let distances = alike.map(|name| (osa_distance(&lower, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
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
