//! The fields of a namespace that plugins read, borrowed from the body.

use admission::Text;
use admission::format::selector::Selector;
use admission::review::null_as_default;
use serde::Deserialize;

use super::said_name;
use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::Limited;
use crate::pod::limits::{self, Exceeded};

/// What is read of a namespace in a review, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NamespaceFacts<'a> {
    /// All that plugins read of one; empty where the review has none.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
}

/// Metadata of a namespace.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    /// Empty where the API server has yet to make one up.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The beginning of a name that the API server makes up.
    #[serde(borrow)]
    pub generate_name: Text<'a>,
    /// Labels.
    #[serde(borrow, deserialize_with = "borrowed_map::labels_alone")]
    pub labels: Option<BorrowedMap<'a>>,
    /// Annotations.
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    pub annotations: Option<BorrowedMap<'a>>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<serde::de::IgnoredAny>,
}

admission::only_objects!(NamespaceFacts<'a>, Metadata<'a>);

impl Limited for NamespaceFacts<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        let Metadata { labels, annotations, .. } = &self.metadata;
        limits::labels_alone(labels.as_ref()).or_else(|| limits::annotations(annotations.as_ref()))
    }
}

impl NamespaceFacts<'_> {
    /// The name in messages, which a request for many objects does not have.
    pub fn said_name<'n>(&'n self, requested: &'n str) -> &'n str {
        said_name([requested, &self.metadata.name, &self.metadata.generate_name])
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key)
    }

    /// Whether the selector selects it.
    pub fn is_selected(&self, selector: &Selector) -> bool {
        let none = BorrowedMap::default();
        selector.matches(self.metadata.labels.as_ref().unwrap_or(&none))
    }
}
