//! How a pod asks to go without sets.

use std::sync::Arc;

use super::Selection;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::index::SetIndex;
use crate::suggest::suggest;

/// On a pod: `true`, or names of sets joined by commas.
pub const SKIP_ANNOTATION: &str = "outrider.dev/skip";

/// A [`SKIP_ANNOTATION`], read once for all sets.
#[derive(Debug, Default)]
pub struct Skip<'p> {
    text: Option<&'p str>,
    // Sorted. Empty where all are skipped.
    names: Vec<&'p str>,
}

impl<'p> Skip<'p> {
    /// Reads the annotation's value.
    pub fn read(text: Option<&'p str>) -> Self {
        let text = text.map(str::trim);
        let mut names: Vec<&str> = text.into_iter().flat_map(names_in).collect();
        names.sort_unstable();
        Self { text, names }
    }

    /// Whether the pod asks to go without the set, whether or not the set allows it.
    pub fn asks_for(&self, set: &CompiledSet) -> bool {
        self.text == Some("true") || self.names.binary_search(&set.name.as_str()).is_ok()
    }
}

/// The names between the commas. There may be very many commas with nothing between them, which a search for the next one is slow for.
#[allow(clippy::manual_pattern_char_comparison)] // it makes no such search
fn names_in(list: &str) -> impl Iterator<Item = &str> {
    list.split(|char| char == ',').filter(|name| !name.is_empty()).map(str::trim_ascii).filter(|name| !name.is_empty())
}

/// Names in a [`SKIP_ANNOTATION`] that are reported; it may hold very many.
const NAMES_TOLD: usize = 3;
/// Bytes of the longest name that an object can have (a DNS-1123 subdomain): to compare longer ones takes time for nothing.
const MAX_NAME: usize = 253;

/// Warnings about a [`SKIP_ANNOTATION`] that names no set: the author of a wrong name believes that the pod goes without. `selected`
/// are the sets that select the pod.
pub fn opts_out_of_nothing(
    skip: &Skip<'_>,
    selected: &[(&Arc<CompiledSet>, Selection)],
    sets: &SetIndex,
) -> Vec<String> {
    let skip = skip.text.filter(|value| !matches!(*value, "true" | "false"));
    let unknown = skip.into_iter().flat_map(names_in).filter(|name| !sets.contains(name));
    let warning = |name: &str| {
        let known = selected.iter().map(|(set, _)| set.name.as_str());
        let meant = if name.len() <= MAX_NAME { suggest(name, known) } else { None };
        let help = match meant {
            _ if name.eq_ignore_ascii_case("true") => " (\"true\" alone opts out of every set)".to_owned(),
            Some(meant) => format!(" (did you mean {meant:?}?)"),
            None => String::new(),
        };
        format!("{SKIP_ANNOTATION} names {name:?}, but there is no SidecarSet of that name{help}")
    };
    unknown.take(NAMES_TOLD).map(warning).collect()
}
