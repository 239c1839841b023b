//! Storage classes, as far as plugins read them.

use std::collections::BTreeMap;

use crate::pod::borrowed_map::BorrowedMap;

/// Annotations that make a class the default, the older one last (`IsDefaultAnnotation` of k8s.io/kubernetes/pkg/volume/util).
const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Annotation of claims from before there was a field.
const OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";

/// The class that a claim with these annotations names in one of them, which goes before its field (`GetPersistentVolumeClaimClass` of
/// k8s.io/component-helpers/storage/volume).
pub fn annotated<'a>(annotations: Option<&'a BorrowedMap<'_>>) -> Option<&'a str> {
    annotations?.get(OF_CLAIM)
}

/// What is kept of a `StorageClass`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageClass {
    /// Whether claims that name none get it.
    pub is_default: bool,
    /// When it was created, as in `metadata.creationTimestamp`: of several defaults the newest counts.
    pub created: String,
    /// Whether its claims may grow.
    pub expands: bool,
}

impl StorageClass {
    /// A class with these annotations.
    pub fn of<'a>(annotation: impl Fn(&str) -> Option<&'a str>, created: &str, expands: bool) -> Self {
        let is_default = IS_DEFAULT.iter().any(|key| annotation(key) == Some("true"));
        // Without the zone, which is always UTC, a time with a fraction of a second is behind the same without.
        Self { is_default, created: created.trim_end_matches('Z').to_owned(), expands }
    }
}

/// Every class that has been seen.
#[derive(Debug, Clone, Default)]
pub struct StorageClasses {
    known: BTreeMap<String, StorageClass>,
    /// Whether all that there are have been seen. They are watched only while a plugin reads them.
    pub is_complete: bool,
}

impl StorageClasses {
    /// The class that claims get which name none: the newest default, and of those of one time the first by name.
    pub fn default_class(&self) -> Option<&str> {
        let defaults = self.known.iter().filter(|(_, class)| class.is_default);
        let newest = defaults.max_by(|(a, one), (b, other)| one.created.cmp(&other.created).then_with(|| b.cmp(a)));
        newest.map(|(name, _)| name.as_str())
    }

    /// Why it is not known which class is the default. Offline there are those of the manifests; with none of them, the cluster's are
    /// not known.
    pub fn unknown(&self, with_a_cluster: bool) -> Option<&'static str> {
        match (with_a_cluster, self.is_complete, self.known.is_empty()) {
            (true, false, _) => Some("StorageClasses have not been read yet"),
            (false, _, true) => Some("there is no StorageClass among the manifests"),
            _ => None,
        }
    }

    /// The class of this name.
    pub fn class(&self, name: &str) -> Option<&StorageClass> {
        self.known.get(name)
    }

    /// Takes in a class.
    pub fn take(&mut self, name: String, class: StorageClass) {
        self.known.insert(name, class);
    }

    /// Forgets a class.
    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(is_default: bool, created: &str) -> StorageClass {
        let value = if is_default { "true" } else { "false" };
        StorageClass::of(|key| (key == IS_DEFAULT[1]).then_some(value), created, false)
    }

    #[test]
    fn of_several_defaults_the_newest_counts_and_then_the_first_by_name() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z");
        for (classes, expected) in [
            (vec![], None),
            (vec![("a", false, new)], None),
            (vec![("a", false, new), ("b", true, old)], Some("b")),
            (vec![("a", true, old), ("b", true, old)], Some("a")),
            (vec![("a", true, old), ("b", true, new)], Some("b")),
            (vec![("a", true, new), ("b", true, old)], Some("a")),
        ] {
            let mut known = StorageClasses::default();
            for (name, is_default, created) in &classes {
                known.take((*name).to_owned(), class(*is_default, created));
            }
            assert_eq!(known.default_class(), expected, "{classes:?}");
        }
    }
}
