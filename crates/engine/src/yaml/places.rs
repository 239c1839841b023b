//! On which line each field of a text is, for messages about it.

use granit_parser::{Event, Parser};

use super::MAX_DEPTH;
use super::read::chunks;

/// A value of a document, and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// The line on which it starts, counted from 1; of a field, that of its key.
    pub line: usize,
    fields: Vec<(String, Self)>,
    items: Vec<Self>,
}

/// The documents of a text, as [`read`](super::read()) has them. What cannot be read has no places: the reader says why.
pub fn places(text: &str) -> Vec<Lines> {
    let chunks = chunks(text.strip_prefix('\u{feff}').unwrap_or(text), 1).unwrap_or_default();
    chunks.iter().filter_map(|chunk| document(&chunk.text, chunk.first_line)).collect()
}

impl Lines {
    /// The field of this name, or the item at this index.
    pub fn step(&self, step: &str) -> Option<&Self> {
        let field = self.fields.iter().find(|(name, _)| name == step).map(|(_, place)| place);
        field.or_else(|| self.items.get(step.parse::<usize>().ok()?))
    }

    /// The items of a list.
    pub fn items(&self) -> &[Self] {
        &self.items
    }

    /// The place at a field path such as `spec.containers[0].env[1]`, as far as it is there, and how many steps of the path are.
    pub fn at(&self, path: &str) -> (&Self, usize) {
        let (mut place, mut known) = (self, 0);
        for step in steps(path) {
            let Some(next) = place.step(step) else { break };
            place = next;
            known += 1;
        }
        (place, known)
    }
}

/// The steps of a field path: names between dots, and whatever is between brackets, without the quotes around it.
pub fn steps(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.is_empty() {
            return None;
        }
        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').map_or((inner, ""), |(step, after)| (unquoted(step), after)),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = after;
        Some(step)
    })
}

/// A key as some write it between brackets, `["example.com/team"]`, without its quotes.
pub fn unquoted(step: &str) -> &str {
    let within = |quote| step.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    within('"').or_else(|| within('\'')).unwrap_or(step)
}

/// Whether a text is a field path, so that [`steps`] leaves nothing of it out.
pub fn is_path(path: &str) -> bool {
    let (mut rest, mut is_first) = (path, true);
    while is_first || !rest.is_empty() {
        let after = if let Some(inner) = rest.strip_prefix('[') {
            inner.split_once(']').filter(|(step, _)| !unquoted(step).is_empty()).map(|(_, after)| after)
        } else {
            let named = if is_first { Some(rest) } else { rest.strip_prefix('.') };
            named.map(|named| named.split_at(named.find(['.', '[']).unwrap_or(named.len()))).and_then(
                |(name, after)| {
                    let is_name = !name.is_empty() && !name.contains(']');
                    is_name.then_some(after)
                },
            )
        };
        let Some(after) = after else { return false };
        (rest, is_first) = (after, false);
    }
    true
}

/// A list or mapping whose end has not come yet.
#[derive(Default)]
struct Open {
    place: Lines,
    is_mapping: bool,
    /// The key whose value is next, and its line.
    key: Option<(String, usize)>,
}

impl Open {
    fn add(&mut self, mut place: Lines) {
        match self.key.take() {
            Some((key, line)) => {
                place.line = line;
                self.place.fields.push((key, place));
            }
            None => self.place.items.push(place),
        }
    }
}

fn document(text: &str, first_line: usize) -> Option<Lines> {
    let options = granit_parser::options! { emit_comments: false };
    let mut open: Vec<Open> = Vec::new();
    for item in Parser::new_from_str_with_options(text, options) {
        let (event, span) = item.ok()?;
        let line = first_line + span.start.line().saturating_sub(1);
        let place = Lines { line, ..Lines::default() };
        let whole = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_mapping = matches!(event, Event::MappingStart(..));
                open.push(Open { place, is_mapping, key: None });
                if open.len() > MAX_DEPTH {
                    return None;
                }
                continue;
            }
            Event::Scalar(key, ..) if open.last().is_some_and(|top| top.is_mapping && top.key.is_none()) => {
                if let Some(top) = open.last_mut() {
                    top.key = Some((key.into_owned(), line));
                }
                continue;
            }
            Event::Scalar(..) | Event::Alias(_) => place,
            Event::SequenceEnd | Event::MappingEnd => open.pop()?.place,
            _ => continue,
        };
        match open.last_mut() {
            Some(top) => top.add(whole),
            None => return Some(whole),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{places, steps};

    const TEXT: &str = "# a set\nspec:\n  containers:\n  - name: a\n    env:\n      - {name: X}\n      - name: Y\n  labels:\n    a.b/c: d\n---\n{\"kind\": \"List\",\n \"items\": [\n  {\"a\": 1},\n  {\"b\": 2}]}\n";

    #[test]
    fn a_field_path_is_found_on_the_line_of_its_key() {
        let documents = places(TEXT);
        let [set, list] = documents.as_slice() else { panic!("{documents:?}") };
        for (path, line, known) in [
            ("spec", 2, 1),
            ("spec.containers", 3, 2),
            ("spec.containers[0]", 4, 3),
            ("spec.containers[0].env[1].name", 7, 6),
            ("spec.labels[a.b/c]", 9, 3),
            // What is missing is where it would be.
            ("spec.containers[0].image", 4, 3),
            ("status", 2, 0),
        ] {
            let (place, steps) = set.at(path);
            assert_eq!((place.line, steps), (line, known), "{path}");
        }
        assert_eq!(list.at("items").0.items().iter().map(|item| item.line).collect::<Vec<_>>(), [13, 14]);
    }

    #[test]
    fn what_cannot_be_read_has_no_places() {
        assert!(places("a: [\n").is_empty());
        assert!(places(&"[".repeat(100_000)).is_empty());
    }

    #[test]
    fn a_path_is_cut_at_dots_and_brackets() {
        assert_eq!(steps("a.b[0][c.d].e").collect::<Vec<_>>(), ["a", "b", "0", "c.d", "e"]);
        assert_eq!(steps("a[\"b.c/d\"]['e'][\"].f").collect::<Vec<_>>(), ["a", "b.c/d", "e", "\"", "f"]);
        assert!(super::is_path("a[\"b\"].c") && !super::is_path("a[\"\"]"));
        assert_eq!(steps("[").collect::<Vec<_>>(), [""]);
        assert_eq!(steps("").count(), 0);
    }
}
