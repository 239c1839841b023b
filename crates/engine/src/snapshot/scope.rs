//! Which objects with a selector of namespaces a request concerns.

use std::sync::Arc;

use admission::Unserved;
use admission::format::selector::Selector;

use super::Snapshot;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// An object for the namespaces that it selects.
pub trait Scoped {
    /// The kind, for warnings about what is not known offline.
    const KIND: &'static str;
    /// What one of them is called.
    const WORD: &'static str;

    /// Its name.
    fn name(&self) -> &str;

    /// The namespaces; all where there is none.
    fn namespaces(&self) -> Option<&Selector>;
}

/// All objects of a kind that can be used, by name.
#[derive(Debug)]
pub struct ByName<T> {
    all: Vec<Arc<T>>,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<T: Scoped> ByName<T> {
    /// These, in the order of their names.
    pub fn build(objects: impl IntoIterator<Item = Arc<T>>) -> Self {
        Self::of(objects.into_iter().collect())
    }

    fn of(mut all: Vec<Arc<T>>) -> Self {
        all.sort_by(|one, other| one.name().cmp(other.name()));
        Self { all }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The object of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.all.binary_search_by(|object| object.name().cmp(name)).ok().and_then(|at| self.all.get(at))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.iter()
    }
}

impl<T: Clone> ByName<T> {
    /// A copy that shares no memory with it.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { all: self.all.iter().map(|object| Arc::new((**object).clone())).collect() }
    }
}

/// The objects that a request concerns.
#[derive(Debug)]
pub struct Concerned<'s, T> {
    /// By name.
    pub objects: Vec<&'s Arc<T>>,
    /// About what is not known without a cluster.
    pub warnings: Vec<String>,
}

/// Those of `all` that select a namespace; none of one that is excluded.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] when one needs to know a namespace that is not known yet, [`Unserved::NamespaceLabels`] when it
/// depends on labels that were not kept.
pub fn concerned<'s, T: Scoped>(
    snapshot: &Snapshot,
    namespace: &str,
    all: impl Iterator<Item = &'s Arc<T>>,
) -> Result<Concerned<'s, T>, Unserved> {
    let mut found = Concerned { objects: Vec::new(), warnings: Vec::new() };
    let mut all = all.peekable();
    if all.peek().is_none() || snapshot.excludes(namespace) {
        return Ok(found);
    }
    let known = snapshot.namespaces.known(namespace);
    let named = &[(NAMESPACE_NAME_LABEL, namespace)][..];
    for object in all {
        let is_selected = match (object.namespaces(), known) {
            (None, _) => true,
            (Some(selector), Some(known)) => {
                known.is_selected(selector).ok_or_else(|| Unserved::NamespaceLabels(namespace.to_owned()))?
            }
            (Some(selector), None) if is_by_name_alone(selector) => selector.matches(named),
            (Some(_), None) if snapshot.namespaces_may_appear => {
                return Err(Unserved::NamespaceUnknown(namespace.to_owned()));
            }
            (Some(_), None) => {
                found.warnings.push(format!(
                    "{} {:?} reads labels of namespaces, and those of namespace {namespace:?} are not known; the {} counts as not \
                     matching. Add the Namespace to the manifests",
                    T::KIND,
                    object.name(),
                    T::WORD
                ));
                false
            }
        };
        if is_selected {
            found.objects.push(object);
        }
    }
    Ok(found)
}

/// Whether the names of namespaces alone say which of them are selected.
fn is_by_name_alone(selector: &Selector) -> bool {
    selector.requirements().iter().all(|requirement| requirement.key() == NAMESPACE_NAME_LABEL)
}
