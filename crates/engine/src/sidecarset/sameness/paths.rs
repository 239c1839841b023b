//! Paths in a container. A container runtime resolves them, so that one place has many spellings.

/// The path without a slash at its end, if it reads as it resolves: no `..`, no `.`, no empty part. Windows parts them by `\`.
pub fn clean(path: &str) -> Option<&str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts = path.strip_prefix('/').unwrap_or(path).split(['/', '\\']);
    let reads_as_it_resolves = |part: &str| !matches!(part, "" | "." | "..");
    (path.is_empty() || parts.into_iter().all(reads_as_it_resolves)).then_some(path)
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
