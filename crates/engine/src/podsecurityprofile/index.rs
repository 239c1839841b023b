//! Every profile.

use std::sync::Arc;

use super::compiled::CompiledProfile;

/// All profiles, by name.
#[derive(Debug, Default)]
pub struct Profiles {
    all: Vec<Arc<CompiledProfile>>,
}

impl Profiles {
    /// These, in the order of their names.
    pub fn build(profiles: impl IntoIterator<Item = Arc<CompiledProfile>>) -> Self {
        let mut all: Vec<_> = profiles.into_iter().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self { all }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The profile of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<CompiledProfile>> {
        self.all.binary_search_by(|profile| profile.name.as_str().cmp(name)).ok().and_then(|at| self.all.get(at))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<CompiledProfile>> {
        self.all.iter()
    }
}
