//! The clauses of the expression. Those that differ only in the values that a label or the namespace must have are one, with a list.

use std::collections::{BTreeMap, BTreeSet};

use admission::format::Selector;
use admission::format::selector::Requirement;

use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope};

const NAMESPACE: &str = "request.namespace";
const LABELS: &str = "object.metadata.labels";
pub(super) const HAS_LABELS: &str = "has(object.metadata.labels)";
const AND: &str = " && ";
/// Between several values in one, and between the keys that they are of. No label value and no namespace has a slash.
const SLASH: &str = "/";
const PLUS_SLASH: &str = " + '/' + ";
const COMMA: &str = "', '";

/// What clauses have in common that are written as one: everything but the values of the keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    /// Terms that do not depend on the values; empty for none.
    conditions: String,
    /// What is compared with values, sorted: labels and the namespace as CEL reads them.
    keys: Vec<String>,
}

/// Clauses, by their shape. Each text has one value for each key, with slashes between; without keys it is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clauses(BTreeMap<Shape, BTreeSet<String>>);

impl Clauses {
    /// Whether no pod is meant.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, shape: Shape, values: BTreeSet<String>) {
        if !values.is_empty() {
            self.0.entry(shape).or_default().extend(values);
        }
    }

    /// Adds a clause as it is written. One of another form than those of sets is equal only to itself.
    pub(super) fn add_text(&mut self, text: &str) {
        let (shape, values) = read(text).unwrap_or_else(|| {
            let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
            (Shape { conditions: inner.to_owned(), keys: Vec::new() }, BTreeSet::from([String::new()]))
        });
        self.add(shape, values);
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|(shape, values)| shape.text(values)).collect()
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (shape, values) in &other.0 {
            all.add(shape.clone(), values.clone());
        }
        all
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = Self::default();
        for (shape, ours) in &self.0 {
            let theirs = other.0.get(shape);
            both.add(shape.clone(), theirs.map_or_else(BTreeSet::new, |theirs| ours & theirs));
        }
        both
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(shape, theirs)| self.0.get(shape).is_some_and(|ours| theirs.is_subset(ours)))
    }
}

impl Shape {
    /// The clause for these values. Keys that have one value in all of them are compared alone, the others together.
    fn text(&self, values: &BTreeSet<String>) -> String {
        let rows: Vec<Vec<&str>> = values.iter().map(|row| row.split(SLASH).collect()).collect();
        let value_of_all = |column: usize| {
            let first = rows.first()?.get(column)?;
            rows.iter().all(|row| row.get(column) == Some(first)).then_some(*first)
        };
        let mut terms: Vec<String> =
            Some(self.conditions.clone()).filter(|text| !text.is_empty()).into_iter().collect();
        let (mut listed, mut columns) = (Vec::new(), Vec::new());
        for (column, key) in self.keys.iter().enumerate() {
            if let Some(value) = value_of_all(column) {
                terms.push(equals(key, value));
            } else {
                listed.push(key.as_str());
                columns.push(column);
            }
        }
        if !listed.is_empty() {
            let row = |row: &Vec<&str>| columns.iter().map(|&column| row[column]).collect::<Vec<_>>().join(SLASH);
            terms.push(is_in(&listed.join(PLUS_SLASH), rows.iter().map(row)));
        }
        format!("({})", terms.join(AND))
    }
}

/// The shape and the values of a clause that [`Shape::text`] wrote; none for another.
fn read(text: &str) -> Option<(Shape, BTreeSet<String>)> {
    let mut terms = terms(text.strip_prefix('(')?.strip_suffix(')')?);
    let listed = terms.last().and_then(|term| read_list(term));
    if listed.is_some() {
        terms.pop();
    }
    let (names, rows) = listed.unwrap_or_else(|| (Vec::new(), vec![Vec::new()]));
    let (mut conditions, mut fixed) = (Vec::new(), Vec::new());
    for term in terms {
        match read_equals(term) {
            Some(pair) => fixed.push(pair),
            None => conditions.push(term),
        }
    }
    let mut keys: Vec<&str> = names.iter().copied().chain(fixed.iter().map(|(key, _)| *key)).collect();
    keys.sort_unstable();
    let value = |row: &[&str]| {
        let of_row = |key: &&str| names.iter().position(|name| name == key).and_then(|column| row.get(column).copied());
        let of_all = |key: &&str| fixed.iter().find(|(fixed, _)| fixed == key).map(|(_, value)| *value);
        let all: Option<Vec<&str>> = keys.iter().map(|key| of_row(key).or_else(|| of_all(key))).collect();
        all.map(|all| all.join(SLASH))
    };
    let values: Option<BTreeSet<String>> = rows.iter().map(|row| value(row)).collect();
    let keys = keys.iter().map(ToString::to_string).collect();
    let shape = Shape { conditions: conditions.join(AND), keys };
    let values = values?;
    (shape.text(&values) == text).then_some((shape, values))
}

/// The parts between `&&`, but not those in parentheses.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && at >= start && text[at..].starts_with(AND) => {
                terms.push(&text[start..at]);
                start = at + AND.len();
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn read_equals(term: &str) -> Option<(&str, &str)> {
    let (key, value) = term.split_once(" == '")?;
    let value = value.strip_suffix('\'')?;
    (is_key(key) && is_value(value)).then_some((key, value))
}

type List<'a> = (Vec<&'a str>, Vec<Vec<&'a str>>);

/// The keys of a list, and its rows of values.
fn read_list(term: &str) -> Option<List<'_>> {
    let (keys, values) = term.split_once(" in ['")?;
    let keys: Vec<&str> = keys.split(PLUS_SLASH).collect();
    let rows: Vec<Vec<&str>> = values.strip_suffix("']")?.split(COMMA).map(|row| row.split(SLASH).collect()).collect();
    let is_row = |row: &Vec<&str>| row.len() == keys.len() && row.iter().all(|value| is_value(value));
    (keys.iter().all(|key| is_key(key)) && rows.iter().all(is_row)).then_some((keys, rows))
}

fn is_key(text: &str) -> bool {
    let label = || text.strip_prefix(LABELS)?.strip_prefix("['")?.strip_suffix("']");
    text == NAMESPACE || label().is_some_and(is_label_key)
}

/// When a pod in a namespace may be matched by the set; `None` for always. No values where no pod is.
pub(super) fn clauses_of(set: &CompiledSet) -> Option<(Shape, BTreeSet<String>)> {
    let (mut conditions, mut allowed) = (Vec::new(), Allowed::default());
    label_terms(&set.selector, &mut conditions, &mut allowed);
    namespace_terms(&set.scope, &mut conditions, &mut allowed);
    if conditions.is_empty() && allowed.0.is_empty() {
        return None;
    }
    Some(allowed.into_clauses(conditions))
}

/// The values that each key may have.
#[derive(Default)]
struct Allowed<'a>(BTreeMap<String, BTreeSet<&'a str>>);

impl<'a> Allowed<'a> {
    /// A value that would need escaping has no label and no namespace: the term is left out.
    fn restrict(&mut self, key: String, values: &'a [String]) {
        if !values.iter().all(|value| is_value(value)) {
            return;
        }
        let values: BTreeSet<&str> = values.iter().map(String::as_str).collect();
        let both = self.0.get(&key).map_or_else(|| values.clone(), |before| before & &values);
        self.0.insert(key, both);
    }

    /// One text for each value of the key that has the most: all combinations of several keys could be far too many.
    fn into_clauses(self, mut conditions: Vec<String>) -> (Shape, BTreeSet<String>) {
        let most = self.0.values().map(BTreeSet::len).max().unwrap_or_default();
        let is_never = self.0.values().any(BTreeSet::is_empty);
        let longest = self.0.iter().find(|(_, values)| values.len() == most).map(|(key, _)| key.clone());
        let (mut keys, mut columns): (Vec<String>, Vec<Vec<&str>>) = (Vec::new(), Vec::new());
        for (key, values) in self.0 {
            if values.len() > 1 && Some(&key) != longest.as_ref() {
                conditions.push(is_in(&key, values.iter().map(ToString::to_string)));
            } else {
                keys.push(key);
                columns.push(values.into_iter().collect());
            }
        }
        let rows = if is_never { 0 } else { most.max(1) };
        let value = |column: &Vec<&'a str>, row: usize| column.get(row).or_else(|| column.first()).copied();
        let row = |row| columns.iter().filter_map(|column| value(column, row)).collect::<Vec<_>>().join(SLASH);
        (Shape { conditions: conditions.join(AND), keys }, (0..rows).map(row).collect())
    }
}

fn namespace_terms<'a>(scope: &'a NamespaceScope, conditions: &mut Vec<String>, allowed: &mut Allowed<'a>) {
    match scope {
        NamespaceScope::All => {}
        NamespaceScope::Named(name) => allowed.restrict(NAMESPACE.to_owned(), std::slice::from_ref(name)),
        NamespaceScope::Selected { selector, .. } => {
            for term in selector.requirements().iter().filter(|term| term.key() == NAMESPACE_NAME_LABEL) {
                match term {
                    Requirement::In(_, names) => allowed.restrict(NAMESPACE.to_owned(), names),
                    Requirement::NotIn(_, names) => {
                        conditions.extend(one_of(NAMESPACE, names).map(|term| format!("!({term})")));
                    }
                    Requirement::Exists(_) | Requirement::DoesNotExist(_) => {}
                }
            }
        }
    }
}

/// The API server takes an expression that fails for an answer that did not come, so that what is read is guarded. Labels are guarded once
/// for the clause where they have to be there anyway.
fn label_terms<'a>(selector: &'a Selector, conditions: &mut Vec<String>, allowed: &mut Allowed<'a>) {
    let terms = || selector.requirements().iter().filter(|term| is_label_key(term.key()));
    let is_positive = |term: &&Requirement| matches!(term, Requirement::In(..) | Requirement::Exists(_));
    let present: BTreeSet<String> = terms().filter(is_positive).map(|term| is_present(term.key())).collect();
    let has_guard = selector.requirements().iter().any(|term| is_positive(&term));
    if has_guard {
        conditions.push(HAS_LABELS.to_owned());
    }
    conditions.extend(present);
    let negated = |condition: &str| {
        let guard = if has_guard { String::new() } else { format!("{HAS_LABELS}{AND}") };
        format!("!({guard}{condition})")
    };
    for term in terms() {
        let (key, label) = (is_present(term.key()), format!("{LABELS}['{}']", term.key()));
        match term {
            Requirement::In(_, values) => allowed.restrict(label, values),
            Requirement::NotIn(_, values) => {
                conditions.extend(one_of(&label, values).map(|value| negated(&format!("{key}{AND}{value}"))));
            }
            Requirement::Exists(_) => {}
            Requirement::DoesNotExist(_) => conditions.push(negated(&key)),
        }
    }
}

fn is_present(key: &str) -> String {
    format!("'{key}' in {LABELS}")
}

/// `None` for a value that would need escaping.
fn one_of(key: &str, values: &[String]) -> Option<String> {
    let are_plain = values.iter().all(|value| is_value(value));
    are_plain.then(|| match values {
        [value] => equals(key, value),
        values => is_in(key, values.iter().cloned()),
    })
}

fn equals(key: &str, value: &str) -> String {
    format!("{key} == '{value}'")
}

fn is_in(key: &str, values: impl Iterator<Item = String>) -> String {
    format!("{key} in ['{}']", values.collect::<Vec<_>>().join(COMMA))
}

fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_label_key(text: &str) -> bool {
    text.split(SLASH).all(is_value)
}
