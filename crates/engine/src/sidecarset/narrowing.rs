//! For which pods the API server need not ask: the sets as one CEL expression. Pure.
//!
//! The expression may be true for pods that no set matches, never false for one that a set matches. What it does not read
//! (labels of namespaces other than the name) is therefore left out of a clause, which makes the clause wider.

mod clause;

use self::clause::{Clauses, clauses_of};
use crate::sidecarset::compiled::CompiledSet;

/// Longest expression, in characters, which are all of one byte: `expressionSizeCodePointLimit` of cel-go.
pub const MAX_CHARACTERS: usize = 100_000;

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
    Narrow(Clauses),
}

impl NarrowingRule {
    /// No pod.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Narrow(Clauses::default())
    }

    /// Pods for which one of these clauses is true. Each is CEL in parentheses.
    pub fn of_clauses<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut clauses = Clauses::default();
        texts.into_iter().for_each(|text| clauses.add_text(text));
        Self::Narrow(clauses).within_limit()
    }

    /// What these sets need.
    pub fn of<'a>(sets: impl IntoIterator<Item = &'a CompiledSet>) -> Self {
        let mut clauses = Clauses::default();
        for set in sets {
            let Some((shape, values)) = clauses_of(set) else { return Self::Wide };
            clauses.add(shape, values);
        }
        Self::Narrow(clauses).within_limit()
    }

    /// The rule of a stored condition; of none, the wide one. `None` for an expression that is not of this form.
    pub fn read(expression: Option<&str>) -> Option<Self> {
        let Some(expression) = expression else { return Some(Self::Wide) };
        if expression == ALWAYS {
            return Some(Self::Wide);
        }
        if expression == NEVER {
            return Some(Self::nothing());
        }
        let is_whole = |clause: &str| clause.starts_with('(') && clause.ends_with(')');
        let all_whole = expression.split(OR).all(is_whole);
        all_whole.then(|| Self::of_clauses(expression.split(OR)))
    }

    /// The CEL expression; none for the wide rule.
    pub fn expression(&self) -> Option<String> {
        match self {
            Self::Wide => None,
            Self::Narrow(clauses) if clauses.is_empty() => Some(NEVER.to_owned()),
            Self::Narrow(clauses) => Some(clauses.texts().join(OR)),
        }
    }

    /// The pods of this rule, and those of the other one.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Narrow(ours), Self::Narrow(theirs)) => Self::Narrow(ours.or(theirs)).within_limit(),
            _ => Self::Wide,
        }
    }

    /// The pods of both rules, by the text of their clauses.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Narrow(ours), Self::Narrow(theirs)) => Self::Narrow(ours.and(theirs)),
            (Self::Wide, rule) | (rule, Self::Wide) => rule.clone(),
        }
    }

    /// Whether it includes all pods of the other one.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wide, _) => true,
            (Self::Narrow(_), Self::Wide) => false,
            (Self::Narrow(ours), Self::Narrow(theirs)) => ours.covers(theirs),
        }
    }

    fn within_limit(self) -> Self {
        let is_longer = self.expression().is_some_and(|text| text.len() > MAX_CHARACTERS);
        if is_longer { Self::Wide } else { self }
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

#[cfg(test)]
#[path = "narrowing_tests.rs"]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]
mod tests;
