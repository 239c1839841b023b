//! What one stored object costs in memory, of every kind that is watched: an ordinary one, and the worst that a user may write.
//!
//! `UPDATE_GOLDEN=1` writes what was measured into `docs/operations.md`. Only here is the allocator one that counts. What runs
//! beside is counted with it, so that tests take turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod convert;
mod examples;
#[path = "../server/hostile_cronjobs.rs"]
mod hostile_cronjobs;
mod keep;
mod kept;
mod objects;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use outrider::kinds::Kinds;
use outrider::manifests::rbac::Rbac;
use peak_alloc::PeakAlloc;

use crate::kept::{KINDS, Kind};
use crate::objects::Object;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Held by each test: what one allocates beside another is counted with it.
static ALONE: Mutex<()> = Mutex::new(());

const BEGIN: &str = "<!-- measured by `make bench-memory` -->\n";
const END: &str = "<!-- end -->\n";

/// Bytes: of the JSON, of what is kept, and of what decoding takes meanwhile.
struct Cost {
    json: usize,
    kept: usize,
    decoding: usize,
}

#[test]
fn a_stored_object_costs_no_more_than_is_stated() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut table = String::from(
        "| kind | kept by | ordinary: bytes | kept | worst: bytes | kept | while it is decoded | at most |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut too_much = Vec::new();
    for kind in KINDS {
        let ordinary = cost(kind, &kind.ordinary());
        let costs: Vec<(Object, Cost)> =
            kind.hostile().into_iter().map(|object| (object.clone(), cost(kind, &object))).collect();
        for (object, cost) in &costs {
            println!("{} with {}: {} bytes, kept {}", kind.name, object.what, cost.json, cost.kept);
            if cost.kept > kind.limit(cost.json) || cost.decoding > cost.json * 24 + 1_000_000 + 3 * kind.allowed {
                let Cost { json, kept, decoding } = cost;
                too_much.push(format!(
                    "{} with {}: {json} bytes, kept {kept}, decoding {decoding}",
                    kind.name, object.what
                ));
            }
        }
        if ordinary.kept > kind.limit(ordinary.json) {
            too_much.push(format!("an ordinary {}: {} bytes, kept {}", kind.name, ordinary.json, ordinary.kept));
        }
        let (_, worst) = costs.iter().max_by_key(|(_, cost)| cost.kept).unwrap();
        let decoding = costs.iter().map(|(_, cost)| cost.decoding).max().unwrap();
        let Kind { name, kept_by, .. } = kind;
        writeln!(
            table,
            "| {name} | {kept_by} | {} | {} | {} | {} | {} | {} |",
            ordinary.json,
            ordinary.kept,
            worst.json,
            worst.kept,
            decoding,
            kind.limit_in_words()
        )
        .unwrap();
    }
    assert!(too_much.is_empty(), "\n{}", too_much.join("\n"));
    document(&table);
}

/// What the process may not watch is not watched.
#[test]
fn every_kind_that_is_watched_has_a_row() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rbac = Rbac::of("outrider-system", &Kinds::all(), Some("outrider"));
    let rules = rbac.cluster_role.rules.into_iter().chain(rbac.role.rules).flatten();
    let watched = rules.filter(|rule| rule.verbs.iter().any(|verb| verb == "watch"));
    let resources = watched.flat_map(|rule| {
        let groups = rule.api_groups.unwrap_or_default();
        let of_group = move |resource: String| groups.clone().into_iter().map(move |group| (group, resource.clone()));
        rule.resources.unwrap_or_default().into_iter().flat_map(of_group).collect::<Vec<_>>()
    });
    let watched: BTreeSet<(String, String)> = resources.collect();
    let rows = KINDS.iter().map(|kind| (kind.resource.0.to_owned(), kind.resource.1.to_owned())).collect();
    assert_eq!(watched, rows, "what may be watched, and what KINDS has a row for");
}

/// A cluster may have thousands of sets, and every replica keeps all of them.
#[test]
fn a_set_of_one_container_takes_at_most_3_kib() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let kind = KINDS.iter().find(|kind| kind.name == "SidecarSet").unwrap();
    let kept = cost(kind, &kind.ordinary()).kept;
    assert!(kept <= 3 * 1024, "{kept} bytes");
}

fn cost(kind: &Kind, object: &Object) -> Cost {
    let texts = object.texts();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    // One alone: what it takes while it is decoded.
    let kept = (kind.keep)(&texts[..1]);
    let decoding = ALLOCATOR.peak_usage() - before;
    drop(kept);
    let all = kept_bytes(kind, &texts).saturating_sub(kept_bytes(kind, &[]));
    Cost { json: texts[0].len(), kept: all / texts.len(), decoding }
}

fn kept_bytes(kind: &Kind, texts: &[String]) -> usize {
    let before = ALLOCATOR.current_usage();
    let kept = (kind.keep)(texts);
    let bytes = ALLOCATOR.current_usage() - before;
    drop(kept);
    bytes
}

/// Writes the table, or checks that it has a line for every kind.
fn document(table: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (old, tail) = rest.split_once(END).expect("the end of the table");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    let kinds = |table: &str| -> Vec<String> {
        table.lines().map(|line| line.split('|').take(3).collect::<Vec<_>>().join("|")).collect()
    };
    assert_eq!(kinds(old), kinds(table), "docs/operations.md: run `make bench-memory`");
}
