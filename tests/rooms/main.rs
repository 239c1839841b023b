//! The map of rooms in `docs/architecture.md` is kept: what each module may import, what the engine may depend on, and that the
//! functions which the page names exist. Files and functions are short, and a name means one thing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod dependencies;
mod imports;
mod map;
mod names;
mod size;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use imports::sources;
use map::{Map, Room};

const PAGE: &str = "docs/architecture.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).unwrap()
}

/// What is against the map of the crate in `folder`.
fn faults(map: &Map, folder: &str) -> Vec<String> {
    let mut faults = map.faults();
    let mut used: BTreeSet<(&str, &str)> = BTreeSet::new();
    for source in sources(root(), folder) {
        if source.module.is_empty() {
            continue;
        }
        let Some(room) = map.room(&source.module) else {
            faults.push(format!("{}: has no row in {PAGE}", source.file));
            continue;
        };
        let ours = source.imports();
        let engine = source.names_crate("engine").then(|| vec!["engine".to_owned()]);
        for path in ours.iter().chain(&engine) {
            let Some(imported) = map.room(path).filter(|imported| imported.name != room.name) else { continue };
            used.insert((&room.name, &imported.name));
            if !room.may_import.contains(&imported.name) {
                faults.push(format!(
                    "{}: {} may not import {}: {}",
                    source.file,
                    room.name,
                    imported.name,
                    path.join("::")
                ));
            }
        }
    }
    let unused = |room: &Room| {
        let name = room.name.clone();
        let listed = room.may_import.iter().filter(|listed| !used.contains(&(name.as_str(), listed.as_str())));
        listed.map(|listed| format!("{PAGE}: {name} may import {listed}, and does not")).collect::<Vec<_>>()
    };
    faults.extend(map.rooms.iter().flat_map(unused));
    faults.sort();
    faults.dedup();
    faults
}

#[test]
fn modules_of_the_framework_import_only_what_the_map_allows() {
    let faults = faults(&Map::read(&page(), "## Rooms of the framework"), "crates/admission/src");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn modules_of_the_engine_import_only_what_the_map_allows() {
    let faults = faults(&Map::read(&page(), "## Rooms of the engine"), "crates/engine/src");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn modules_of_the_process_import_only_what_the_map_allows() {
    let faults = faults(&Map::read(&page(), "## Rooms of the process"), "src");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_map_with_an_arrow_that_goes_up_is_refused() {
    let page =
        "## Rooms\n\n| room | holds | may import |\n|---|---|---|\n| `low` | x | `high` |\n| `high` | y | `low` |\n";
    assert_eq!(
        Map::read(page, "## Rooms").faults(),
        ["docs/architecture.md: low may not import high: it is no row above it"]
    );
}

#[test]
fn functions_that_the_page_names_exist() {
    let page = page();
    let names: Vec<(&str, &str)> = page.split('`').filter_map(|code| code.split_once(".rs::")).collect();
    assert!(names.len() > 10, "the page names its functions as `file.rs::function`");
    for (file, function) in names {
        let path = root().join(format!("{file}.rs"));
        let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{PAGE} names {file}.rs, which is not there"));
        let is_there =
            [format!("fn {function}("), format!("fn {function}<")].iter().any(|text_of| text.contains(text_of));
        assert!(is_there, "{PAGE} names {function} in {file}.rs, which is not there");
    }
}
