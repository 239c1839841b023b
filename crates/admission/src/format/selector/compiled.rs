//! The form of a selector that decides.

use std::fmt;

use super::Labels;

/// A validated selector, ready to decide. Made by [`LabelSelector::compile`](super::LabelSelector::compile).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One condition on one label. Values are sorted and each is there once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label is there and has one of the values.
    In(String, Vec<String>),
    /// The label is absent or has none of the values.
    NotIn(String, Vec<String>),
    /// The label is there, whatever its value.
    Exists(String),
    /// The label is absent.
    DoesNotExist(String),
}

impl Selector {
    pub(super) const fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Whether an object with these labels is selected. A selector without requirements selects everything.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether every object is selected, because there are no requirements.
    pub const fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The conditions, all of which must hold: first those of `matchLabels`, in the order of their keys, each as
    /// an [`Requirement::In`] with one value, then those of `matchExpressions` as written.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl Requirement {
    pub(super) fn is(key: &str, value: &str) -> Self {
        Self::In(key.to_owned(), vec![value.to_owned()])
    }

    /// The key of the label that the condition is about.
    pub fn key(&self) -> &str {
        match self {
            Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::DoesNotExist(key) => key,
        }
    }

    /// Whether the condition holds for an object with these labels.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let label = labels.get(self.key());
        match self {
            Self::In(_, values) => label.is_some_and(|value| contains(values, value)),
            Self::NotIn(_, values) => label.is_none_or(|value| !contains(values, value)),
            Self::Exists(_) => label.is_some(),
            Self::DoesNotExist(_) => label.is_none(),
        }
    }
}

/// As `kubectl get --selector` takes it.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(f, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

/// As `kubectl get --selector` takes it.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Self::NotIn(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}!={value}"),
                values => write!(f, "{key} notin ({})", values.join(",")),
            },
            Self::Exists(key) => f.write_str(key),
            Self::DoesNotExist(key) => write!(f, "!{key}"),
        }
    }
}

pub(super) fn contains(sorted: &[String], value: &str) -> bool {
    sorted.binary_search_by(|candidate| candidate.as_str().cmp(value)).is_ok()
}
