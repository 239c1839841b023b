//! For which pods the API server need not ask: the sets as one CEL expression. Pure.
//!
//! The expression may be true for pods that no set matches, never false for one that a set matches. What it does not read
//! (labels of namespaces other than the name) is therefore left out of a clause, which makes the clause wider.

use std::collections::BTreeSet;

use admission::format::Selector;
use admission::format::selector::Requirement;

use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope};

/// With more clauses the webhook is called for every pod: the API server evaluates the expression for each one.
pub const MAX_CLAUSES: usize = 200;
/// Longest expression, in bytes. CEL itself takes 100,000 characters (`expressionSizeCodePointLimit` in cel-go), and the whole
/// configuration has to fit into etcd.
pub const MAX_BYTES: usize = 64 * 1024;

const LABELS: &str = "object.metadata.labels";
const HAS_LABELS: &str = "has(object.metadata.labels)";
const OR: &str = "\n|| ";
const NEVER: &str = "false";
/// The wide rule where a condition is needed.
pub const ALWAYS: &str = "true";

/// The pods for which the API server calls the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NarrowingRule {
    /// All of them.
    Wide,
    /// Those for which one of the clauses is true.
    Narrow(BTreeSet<String>),
}

impl NarrowingRule {
    /// What these sets need.
    pub fn of<'a>(sets: impl IntoIterator<Item = &'a CompiledSet>) -> Self {
        let clauses: Option<BTreeSet<String>> = sets.into_iter().map(clause).collect();
        clauses.map_or(Self::Wide, |clauses| Self::Narrow(clauses).within_limits())
    }

    /// The rule of a stored condition; of none, the wide one. `None` for an expression that is not of this form.
    pub fn read(expression: Option<&str>) -> Option<Self> {
        let Some(expression) = expression else { return Some(Self::Wide) };
        if expression == ALWAYS {
            return Some(Self::Wide);
        }
        if expression == NEVER {
            return Some(Self::Narrow(BTreeSet::new()));
        }
        let clauses: BTreeSet<String> = expression.split(OR).map(str::to_owned).collect();
        let is_whole = |clause: &String| clause.starts_with('(') && clause.ends_with(')');
        clauses.iter().all(is_whole).then_some(Self::Narrow(clauses))
    }

    /// The CEL expression; none for the wide rule.
    pub fn expression(&self) -> Option<String> {
        match self {
            Self::Wide => None,
            Self::Narrow(clauses) if clauses.is_empty() => Some(NEVER.to_owned()),
            Self::Narrow(clauses) => Some(clauses.iter().map(String::as_str).collect::<Vec<_>>().join(OR)),
        }
    }

    /// The pods of this rule, and those of the other one.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Narrow(ours), Self::Narrow(theirs)) => Self::Narrow(ours | theirs).within_limits(),
            _ => Self::Wide,
        }
    }

    /// The pods of both rules, by the text of their clauses.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Narrow(ours), Self::Narrow(theirs)) => Self::Narrow(ours & theirs),
            (Self::Wide, rule) | (rule, Self::Wide) => rule.clone(),
        }
    }

    /// Whether it includes all pods of the other one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wide, _) => true,
            (Self::Narrow(_), Self::Wide) => false,
            (Self::Narrow(ours), Self::Narrow(theirs)) => theirs.is_subset(ours),
        }
    }

    fn within_limits(self) -> Self {
        let fits = match &self {
            Self::Wide => true,
            Self::Narrow(clauses) => {
                clauses.len() <= MAX_CLAUSES
                    && clauses.iter().map(|clause| clause.len() + OR.len()).sum::<usize>() <= MAX_BYTES
            }
        };
        if fits { self } else { Self::Wide }
    }
}

/// What is to be written where these rules are stored; nothing where they are as they should be. It widens at once, and narrows
/// only when `settled`, from a rule that covers what is wanted. A stored rule that is `None` is another's: it is replaced by the
/// wide one first.
pub fn step(stored: &[Option<NarrowingRule>], wanted: &NarrowingRule, settled: bool) -> Option<NarrowingRule> {
    let covered = stored.iter().all(|rule| rule.as_ref().is_some_and(|rule| rule.covers(wanted)));
    let target = if settled && covered {
        wanted.clone()
    } else {
        let wider = |all: NarrowingRule, rule: &Option<NarrowingRule>| {
            rule.as_ref().map_or(NarrowingRule::Wide, |rule| all.or(rule))
        };
        stored.iter().fold(wanted.clone(), wider)
    };
    stored.iter().any(|rule| rule.as_ref() != Some(&target)).then_some(target)
}

/// When a pod in a namespace may be matched by the set; `None` for always.
fn clause(set: &CompiledSet) -> Option<String> {
    let mut terms = namespace_terms(&set.scope);
    terms.extend(label_terms(&set.selector));
    if terms.is_empty() { None } else { Some(format!("({})", terms.join(" && "))) }
}

fn namespace_terms(scope: &NamespaceScope) -> Vec<String> {
    match scope {
        NamespaceScope::All => Vec::new(),
        NamespaceScope::Named(name) => namespace_is(std::slice::from_ref(name)).into_iter().collect(),
        NamespaceScope::Selected { selector, .. } => {
            let by_name = selector.requirements().iter().filter(|term| term.key() == NAMESPACE_NAME_LABEL);
            by_name
                .filter_map(|term| match term {
                    Requirement::In(_, names) => namespace_is(names),
                    Requirement::NotIn(_, names) => namespace_is(names).map(|term| format!("!({term})")),
                    Requirement::Exists(_) | Requirement::DoesNotExist(_) => None,
                })
                .collect()
        }
    }
}

fn namespace_is(names: &[String]) -> Option<String> {
    one_of("request.namespace", names)
}

fn label_terms(selector: &Selector) -> Vec<String> {
    let is_positive = |term: &Requirement| matches!(term, Requirement::In(..) | Requirement::Exists(_));
    let mut terms = Vec::new();
    // The API server takes an expression that fails for an answer that did not come. Labels are guarded once for the clause
    // where they have to be there anyway.
    let has_guard = selector.requirements().iter().any(is_positive);
    if has_guard {
        terms.push(HAS_LABELS.to_owned());
    }
    terms.extend(selector.requirements().iter().filter_map(|term| label_term(term, has_guard)));
    terms
}

fn label_term(term: &Requirement, has_guard: bool) -> Option<String> {
    if !is_plain(term.key()) {
        return None;
    }
    let present = format!("'{}' in {LABELS}", term.key());
    let negated = |condition: &str| {
        let guard = if has_guard { String::new() } else { format!("{HAS_LABELS} && ") };
        format!("!({guard}{condition})")
    };
    let has_value = |values: &[String]| {
        let value = one_of(&format!("{LABELS}['{}']", term.key()), values)?;
        Some(format!("{present} && {value}"))
    };
    match term {
        Requirement::In(_, values) => has_value(values),
        Requirement::NotIn(_, values) => has_value(values).map(|condition| negated(&condition)),
        Requirement::Exists(_) => Some(present),
        Requirement::DoesNotExist(_) => Some(negated(&present)),
    }
}

/// `None` for a value that would need escaping, which no label and no namespace has: the term is left out.
fn one_of(what: &str, values: &[String]) -> Option<String> {
    if !values.iter().all(|value| is_plain(value)) {
        return None;
    }
    match values {
        [value] => Some(format!("{what} == '{value}'")),
        values => Some(format!("{what} in ['{}']", values.join("', '"))),
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/'))
}

#[cfg(test)]
#[path = "narrowing_tests.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]
mod tests;
