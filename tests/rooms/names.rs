//! A name means one thing: no two public types of a crate have the same.

use std::collections::BTreeMap;

use crate::imports::sources;
use crate::root;

/// Names that several types of a crate have, and why. An entry that is no longer needed fails.
const SHARED: [(&str, &str, &str); 5] = [
    (
        "crates/engine/src",
        "Container",
        "decoded from a container, as far as the module reads it; errors of serde name it",
    ),
    ("crates/engine/src", "Error", "each layer has its own, as is the custom in Rust"),
    ("crates/engine/src", "Metadata", "decoded from metadata, as far as the module reads it; errors of serde name it"),
    ("crates/engine/src", "Spec", "decoded from a spec, as far as the module reads it; errors of serde name it"),
    ("src", "Error", "each layer has its own, as is the custom in Rust"),
];

/// The name of the public type that a line defines.
fn public_type(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ")?;
    let name = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The public types of the crate in `folder`, each with the files that define it.
fn public_types(folder: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources(root(), folder) {
        for name in source.text().lines().filter_map(public_type) {
            found.entry(name.to_owned()).or_default().push(source.file.clone());
        }
    }
    found
}

#[test]
fn no_two_public_types_of_a_crate_have_one_name() {
    let mut faults = Vec::new();
    for folder in ["crates/admission/src", "crates/engine/src", "src"] {
        let shared: BTreeMap<_, _> = public_types(folder).into_iter().filter(|(_, files)| files.len() > 1).collect();
        let is_listed = |name: &str| SHARED.iter().any(|(of, listed, _)| (*of, *listed) == (folder, name));
        for (name, files) in shared.iter().filter(|(name, _)| !is_listed(name)) {
            faults.push(format!("{name} is in {}: call one of them by what it is", files.join(" and ")));
        }
        for (_, name, _) in SHARED.iter().filter(|(of, name, _)| *of == folder && !shared.contains_key(*name)) {
            faults.push(format!("{folder}: {name} is listed as shared, and is not: remove it from the list"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn public_types_are_found_by_their_lines() {
    for (line, expected) in [
        ("pub struct Named<'a> {", Some("Named")),
        ("pub enum Step {", Some("Step")),
        ("pub type Amounts = BTreeMap<String, Quantity>;", Some("Amounts")),
        ("pub trait Validating<W>: Sized {", Some("Validating")),
        ("struct Private;", None),
        ("pub(crate) struct Inner;", None),
        ("    pub struct Nested;", None),
        ("pub fn struct_of() {", None),
    ] {
        assert_eq!(public_type(line), expected, "{line}");
    }
}
