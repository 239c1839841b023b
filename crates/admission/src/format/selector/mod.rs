//! Label selectors: which objects a rule is for.
//!
//! [`LabelSelector`] is what people write. It is validated with their field paths and compiled once into a
//! [`Selector`], which decides for any number of objects.

mod compiled;
mod labels;
mod overlap;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

pub use compiled::{Requirement, Selector};
pub use labels::Labels;

use super::metadata::{validate_label_name, validate_labels};
use super::names::label_value;
use crate::field::{Error, ErrorList, Path};

/// A selector as it is written in an object, all of whose terms must hold. Without terms it selects everything;
/// what an absent selector selects is for its owner to say.
///
/// `null` counts as absent in both fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be present with exactly these values.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further terms.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One term of `matchExpressions`, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelSelectorRequirement {
    /// The key of the label.
    #[serde(default, deserialize_with = "null_as_default")]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub operator: String,
    /// The values of `In` and `NotIn`.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl LabelSelector {
    /// Whether there are no terms, so that everything is selected.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Adds what is wrong with the selector at `path`, as `ValidateLabelSelector` of
    /// `k8s.io/apimachinery/pkg/apis/meta/v1/validation` says it.
    pub fn validate(&self, path: &Path, errors: &mut ErrorList) {
        validate_labels(&self.match_labels, &path.child("matchLabels"), errors);
        let expressions = path.child("matchExpressions");
        for (index, expression) in self.match_expressions.iter().enumerate() {
            expression.validate(&expressions.index(index), errors);
        }
    }

    /// Makes the form that decides.
    ///
    /// # Errors
    /// Everything that [`LabelSelector::validate`] finds, with field paths that start at `labelSelector`; call
    /// that first for the paths of the object at hand.
    pub fn compile(&self) -> Result<Selector, ErrorList> {
        let path = Path::new("labelSelector");
        let mut errors = ErrorList::new();
        self.validate(&path, &mut errors);
        errors.into_result()?;

        let labels = self.match_labels.iter().map(|(key, value)| Requirement::is(key, value));
        let mut requirements: Vec<_> = labels.collect();
        for expression in &self.match_expressions {
            // Validation has let only the four operators through.
            requirements.extend(expression.compile());
        }
        Ok(Selector::new(requirements))
    }
}

impl LabelSelectorRequirement {
    fn validate(&self, path: &Path, errors: &mut ErrorList) {
        match self.operator.as_str() {
            "In" | "NotIn" if self.values.is_empty() => errors
                .push(Error::required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")),
            "Exists" | "DoesNotExist" if !self.values.is_empty() => errors.push(Error::forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            unknown => {
                errors.push(Error::invalid(&path.child("operator"), unknown, "not a valid selector operator"));
            }
        }
        validate_label_name(&self.key, &path.child("key"), errors);
        let values = path.child("values");
        for (index, value) in self.values.iter().enumerate() {
            let wrong = label_value(value).into_iter();
            errors.extend(wrong.map(|message| Error::invalid(&values.index(index), value, message)));
        }
    }

    fn compile(&self) -> Option<Requirement> {
        let key = self.key.clone();
        let values = || {
            let mut values = self.values.clone();
            values.sort_unstable();
            values.dedup();
            values
        };
        match self.operator.as_str() {
            "In" => Some(Requirement::In(key, values())),
            "NotIn" => Some(Requirement::NotIn(key, values())),
            "Exists" => Some(Requirement::Exists(key)),
            "DoesNotExist" => Some(Requirement::DoesNotExist(key)),
            _ => None,
        }
    }
}
