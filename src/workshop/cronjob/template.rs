//! A Job template as its author wrote it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A template in its JSON. Decoded it may take a hundred times as much memory, and it is not read before a run starts; a field
/// that this build does not know reaches the Job untouched.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawTemplate(Option<Box<RawValue>>);

/// The parts of a template; what is no object has none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Parts<'t> {
    /// Metadata of the Job.
    #[serde(borrow)]
    pub metadata: Option<&'t RawValue>,
    /// Its spec.
    #[serde(borrow)]
    pub spec: Option<&'t RawValue>,
}

impl RawTemplate {
    /// Its parts, still as JSON.
    pub fn parts(&self) -> Parts<'_> {
        self.0.as_ref().and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default()
    }

    fn text(&self) -> &str {
        self.0.as_ref().map_or("{}", |text| text.get())
    }
}

impl PartialEq for RawTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// It may be long.
impl fmt::Debug for RawTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({} bytes)", self.text().len())
    }
}
