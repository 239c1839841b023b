//! Names chosen out of a closed list, as flags take them: `*` is all, `NAME` one, `-NAME` leaves one out, at any position.

/// A word that names nothing in the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {word:?}; there are {all}, * for all of them, and -NAME to leave one out", all = known.join(", "))]
pub struct Unknown {
    what: &'static str,
    word: String,
    known: Vec<&'static str>,
}

/// The chosen names, in the order of `known`. `what` says in an error what is chosen.
///
/// # Errors
/// [`Unknown`].
pub fn choose(
    what: &'static str,
    words: &[impl AsRef<str>],
    known: &[&'static str],
) -> Result<Vec<&'static str>, Unknown> {
    let words: Vec<&str> = words.iter().map(|word| word.as_ref().trim()).filter(|word| !word.is_empty()).collect();
    let is_known = |word: &str| word == "*" || known.contains(&word.strip_prefix('-').unwrap_or(word));
    if let Some(word) = words.iter().find(|word| !is_known(word)) {
        return Err(Unknown { what, word: (*word).to_owned(), known: known.to_vec() });
    }
    let named = |name: &str| words.iter().any(|word| *word == "*" || *word == name);
    let removed = |name: &str| words.iter().any(|word| word.strip_prefix('-') == Some(name));
    Ok(known.iter().copied().filter(|name| named(name) && !removed(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_starred_or_left_out_wherever_they_stand() {
        let table: [(&[&str], &[&str]); 8] = [
            (&["*"], &["a", "b"]),
            (&["b"], &["b"]),
            (&["b", "a", "a"], &["a", "b"]),
            (&["*", "-a"], &["b"]),
            (&["-a", "*"], &["b"]),
            (&["-a"], &[]),
            (&[], &[]),
            (&["", " b "], &["b"]),
        ];
        for (words, chosen) in table {
            assert_eq!(choose("letter", words, &["a", "b"]).unwrap(), chosen, "{words:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list() {
        for word in ["c", "-c", "--a", "a*"] {
            let error = choose("letter", &["*", word], &["a", "b"]).unwrap_err().to_string();
            let wanted =
                format!("there is no letter {word:?}; there are a, b, * for all of them, and -NAME to leave one out");
            assert_eq!(error, wanted);
        }
    }
}
