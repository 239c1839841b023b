//! Paths in a container. A container runtime resolves them, so that one place has many spellings.

/// The path without a slash at its end, if it reads as it resolves: no `..`, no `.`, no empty part. Windows parts them by `\`.
pub fn clean(path: &str) -> Option<&str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts = path.strip_prefix('/').unwrap_or(path).split(['/', '\\']);
    let reads_as_it_resolves = |part: &str| !matches!(part, "" | "." | "..");
    (path.is_empty() || parts.into_iter().all(reads_as_it_resolves)).then_some(path)
}

/// The parts of the path that it resolves to, where `/var/run` is a link to `/run` as in most images.
pub(super) fn resolved(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            // The drive of Windows.
            drive if parts.is_empty() && drive.ends_with(':') => {}
            part => parts.push(part),
        }
    }
    if is_within(&parts, &["var", "run"]) {
        parts.remove(0);
    }
    parts
}

/// Whether resolved paths are one. Windows does not distinguish small letters from capital ones.
pub(super) fn is_same(one: &[&str], other: &[&str]) -> bool {
    one.len() == other.len() && is_within(one, other)
}

/// Whether a resolved path is another, or below it.
pub(super) fn is_within(path: &[&str], other: &[&str]) -> bool {
    path.len() >= other.len() && path.iter().zip(other).all(|(one, other)| one.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_path_reads_as_it_resolves() {
        for (path, expected) in [
            ("/a/b", Some("/a/b")),
            ("/a/b/", Some("/a/b")),
            ("/", Some("")),
            ("/..a/.b", Some("/..a/.b")),
            (r"C:\a", Some(r"C:\a")),
            ("//", None),
            ("//a", None),
            ("/a//", None),
            ("/a//b", None),
            ("/a/.", None),
            ("/a/./b", None),
            ("/a/../b", None),
            ("/a/..", None),
            ("..", None),
            (r"/a\..\b", None),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
    }
}
