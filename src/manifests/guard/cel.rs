//! Pieces of CEL.

/// A string literal. Names of Kubernetes objects hold neither quotes nor backslashes.
pub fn text(value: &str) -> String {
    format!("'{value}'")
}

/// A list of string literals.
pub fn list(values: &[&str]) -> String {
    let texts: Vec<String> = values.iter().map(|value| text(value)).collect();
    format!("[{}]", texts.join(", "))
}

/// A field, or what takes its place where it is absent.
pub fn field(object: &str, path: &str, absent: &str) -> String {
    let path = format!("{object}.{path}");
    format!("(has({path}) ? {path} : {absent})")
}

/// Whether two maps are equal but for the keys in `free`. Keys are walked and not named, so that a field which a later Kubernetes
/// adds is compared as well.
pub fn same_but(new: &str, old: &str, free: &str) -> String {
    format!(
        "{new}.all(k, k in {free} || (k in {old} && {new}[k] == {old}[k])) && {old}.all(k, k in {free} || k in {new})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_maps_are_compared_in_both_directions() {
        assert_eq!(
            same_but("a", "b", "['x']"),
            "a.all(k, k in ['x'] || (k in b && a[k] == b[k])) && b.all(k, k in ['x'] || k in a)"
        );
    }
}
