//! References to variables in texts that the kubelet expands.

/// Names in `$(NAME)`, as `k8s.io/kubernetes/third_party/forked/golang/expansion` reads them: `$$(NAME)` is none.
pub fn references(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        rest = match after.strip_prefix('(') {
            Some(inner) => match inner.split_once(')') {
                Some((name, after)) => {
                    names.push(name);
                    after
                }
                // No other one ends either, and each would be searched to the end of the text.
                None => break,
            },
            None => after.strip_prefix('$').unwrap_or(after),
        };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::references;

    #[test]
    fn an_escaped_reference_is_none() {
        for (text, expected) in [
            ("foo/$(POD_NAME)/$(OD_NAME)/conf", &["POD_NAME", "OD_NAME"][..]),
            ("$$(A)", &[]),
            ("$$$(A)", &["A"]),
            ("$(A", &[]),
            ("$A$(B)", &["B"]),
            ("$", &[]),
            ("$()", &[""]),
            ("$(A)$(B$(C", &["A"]),
            ("", &[]),
        ] {
            assert_eq!(references(text), expected, "{text}");
        }
    }
}
