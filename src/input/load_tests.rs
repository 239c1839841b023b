#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::{Error, Manifest, fingerprint, load, load_or_stdin, parse};

const POD: &str = "apiVersion: v1\nkind: Pod\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn sources(folder: &TempDir, manifests: &[Manifest]) -> Vec<String> {
    let prefix = format!("{}/", folder.path().display());
    manifests.iter().map(|manifest| manifest.source.replace(&prefix, "")).collect()
}

fn messages(folder: &TempDir, errors: &[Error]) -> Vec<String> {
    let prefix = format!("{}/", folder.path().display());
    errors.iter().map(|error| error.to_string().replace(&prefix, "")).collect()
}

#[test]
fn a_folder_is_read_in_the_order_of_its_paths() {
    let folder = folder(&[
        ("b.yaml", "# pods\napiVersion: v1\nkind: Pod\n---\n\napiVersion: v1\nkind: Pod\n"),
        ("a/z.yml", POD),
        ("a/y.json", r#"{"apiVersion":"v1","kind":"Pod"}"#),
        ("c.txt", "not: [yaml"),
        (".hidden.yaml", "not: [yaml"),
        (".git/x.yaml", "not: [yaml"),
    ]);
    let manifests = load(&[folder.path().to_owned()]).unwrap();
    assert_eq!(sources(&folder, &manifests), ["a/y.json:1", "a/z.yml:1", "b.yaml:2", "b.yaml:6"]);
}

#[test]
fn a_file_is_read_whatever_its_name() {
    let folder = folder(&[("pod", POD)]);
    let manifests = load(&[folder.path().join("pod")]).unwrap();
    assert_eq!(sources(&folder, &manifests), ["pod:1"]);
}

#[cfg(unix)]
#[test]
fn a_mounted_config_map_is_read_once_and_links_in_a_circle_end() {
    use std::os::unix::fs::symlink;
    let folder = folder(&[("..2024_01_01/pod.yaml", POD), ("sub/inner.yaml", POD)]);
    let path = folder.path();
    symlink("..2024_01_01", path.join("..data")).unwrap();
    symlink("..data/pod.yaml", path.join("pod.yaml")).unwrap();
    symlink("..", path.join("sub/up")).unwrap();
    symlink("sub", path.join("twin")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    let manifests = load(&[path.to_owned()]).unwrap();
    assert_eq!(sources(&folder, &manifests), ["pod.yaml:1", "sub/inner.yaml:1"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_nowhere_does_not_hide_the_other_files() {
    let folder = folder(&[("z.yaml", "kind: Pod\n")]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("a.yaml")).unwrap();
    let errors = load(&[folder.path().to_owned()]).unwrap_err();
    let expected = [
        "a.yaml: No such file or directory (os error 2)",
        "z.yaml:1: apiVersion is missing: write for example \"apiVersion: v1\"",
    ];
    assert_eq!(messages(&folder, &errors), expected);
}

#[test]
fn lists_are_taken_apart_and_typed_items_are_named() {
    let text = r"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: PodList
  items:
  - metadata: {name: a}
- apiVersion: v1
  kind: ConfigMap
---
apiVersion: example.com/v1
kind: AllowList
spec: {}
";
    let values: Vec<_> =
        parse("f.yaml", text).unwrap().into_iter().map(|manifest| (manifest.source, manifest.value)).collect();
    let expected = [
        ("f.yaml:8".to_owned(), json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})),
        ("f.yaml:9".to_owned(), json!({"apiVersion": "v1", "kind": "ConfigMap"})),
        ("f.yaml:12".to_owned(), json!({"apiVersion": "example.com/v1", "kind": "AllowList", "spec": {}})),
    ];
    assert_eq!(values, expected);
}

#[test]
fn all_errors_of_all_files_are_reported_with_their_place() {
    let folder = folder(&[
        ("a.yaml", "kind: Pod\n---\n- 1\n---\n42\n"),
        ("b.yaml", "apiVersion: v1\nkind: Pod\nspec:\n  a: 1\n  a: 2\n"),
        ("c.yaml", POD),
        ("d.yaml", "apiVersion: v1\nkind: List\nitems: [1]\n"),
    ]);
    fs::write(folder.path().join("e.yaml"), b"a: 1\nb: \xff\n").unwrap();
    let errors = load(&[folder.path().to_owned(), folder.path().join("missing.yaml")]).unwrap_err();
    let expected = [
        "a.yaml:1: apiVersion is missing: write for example \"apiVersion: v1\"",
        "a.yaml:3: a manifest must be an object with apiVersion and kind, found a list",
        "a.yaml:5: a manifest must be an object with apiVersion and kind, found a number",
        "b.yaml:5:3: spec: duplicate key \"a\", first given on line 4",
        "d.yaml:3: a manifest must be an object with apiVersion and kind, found a number",
        "e.yaml:2: the file is not UTF-8 text",
        "missing.yaml: No such file or directory (os error 2)",
    ];
    assert_eq!(messages(&folder, &errors), expected);
}

#[test]
fn lists_in_lists_are_bounded() {
    let mut text = String::new();
    for _ in 0..20 {
        text.push_str("{apiVersion: v1, kind: List, items: [");
    }
    text.push_str(&"]}".repeat(20));
    let errors = parse("f.yaml", &text).unwrap_err();
    assert_eq!(errors[0].to_string(), "f.yaml:1: lists nested too deep");
}

#[test]
fn a_dash_is_stdin_only_where_the_caller_allows_it() {
    let paths = [PathBuf::from("-")];
    let manifests = load_or_stdin(&paths, &mut POD.as_bytes()).unwrap();
    assert_eq!(manifests[0].source, "stdin:1");
    assert!(matches!(load(&paths).unwrap_err().as_slice(), [Error::Unreadable { .. }]));
}

#[test]
fn a_fingerprint_changes_with_every_change_of_the_files() {
    let folder = folder(&[("a.yaml", POD), ("c.txt", "x")]);
    let paths = [folder.path().to_owned(), folder.path().join("missing.yaml")];
    let mut seen = vec![fingerprint(&paths)];
    assert_eq!(fingerprint(&paths), seen[0]);
    fs::write(folder.path().join("c.txt"), "not a manifest").unwrap();
    assert_eq!(fingerprint(&paths), seen[0]);
    for (name, text) in [("a.yaml", "kind: Longer"), ("b.yaml", POD), ("missing.yaml", POD)] {
        fs::write(folder.path().join(name), text).unwrap();
        seen.push(fingerprint(&paths));
    }
    fs::remove_file(folder.path().join("b.yaml")).unwrap();
    seen.push(fingerprint(&paths));
    for (index, one) in seen.iter().enumerate() {
        assert!(!seen[index + 1..].contains(one), "state {index} comes again");
    }
}
