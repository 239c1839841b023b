//! Every range.

use std::sync::Arc;

use super::compiled::CompiledRange;

/// All ranges, by name.
#[derive(Debug, Default)]
pub struct LimitRanges {
    all: Vec<Arc<CompiledRange>>,
}

impl LimitRanges {
    /// These, in the order of their names.
    pub fn build(ranges: impl IntoIterator<Item = Arc<CompiledRange>>) -> Self {
        let mut all: Vec<_> = ranges.into_iter().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self { all }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The range of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<CompiledRange>> {
        self.all.binary_search_by(|range| range.name.as_str().cmp(name)).ok().and_then(|at| self.all.get(at))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CompiledRange>> {
        self.all.iter()
    }
}
