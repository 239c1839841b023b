//! Which ranges a request concerns.

use std::sync::Arc;

use admission::Unserved;

use crate::limitrange::compiled::CompiledRange;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::snapshot::Snapshot;

/// The ranges that a request concerns.
#[derive(Default)]
pub struct Concerned<'s> {
    /// By name.
    pub ranges: Vec<&'s Arc<CompiledRange>>,
    /// About what is not known without a cluster.
    pub warnings: Vec<String>,
}

/// The ranges among `chosen` that select a namespace.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] when one needs to know a namespace that is not known yet, [`Unserved::NamespaceLabels`] when it
/// depends on labels that were not kept.
pub fn concerned<'s>(
    snapshot: &'s Snapshot,
    namespace: &str,
    chosen: impl Fn(&CompiledRange) -> bool,
) -> Result<Concerned<'s>, Unserved> {
    let mut found = Concerned::default();
    if snapshot.limit_ranges.is_empty() || snapshot.excludes(namespace) {
        return Ok(found);
    }
    let known = snapshot.namespaces.known(namespace);
    let named = &[(NAMESPACE_NAME_LABEL, namespace)][..];
    for range in snapshot.limit_ranges.iter().filter(|range| chosen(range)) {
        let is_selected = match (&range.namespaces, known) {
            (None, _) => true,
            (Some(selector), Some(known)) => {
                known.is_selected(selector).ok_or_else(|| Unserved::NamespaceLabels(namespace.to_owned()))?
            }
            (Some(selector), None) if range.is_by_name_alone() => selector.matches(named),
            (Some(_), None) if snapshot.namespaces_may_appear => {
                return Err(Unserved::NamespaceUnknown(namespace.to_owned()));
            }
            (Some(_), None) => {
                found.warnings.push(format!(
                    "ClusterLimitRange {:?} reads labels of namespaces, and those of namespace {namespace:?} are not known; the \
                     range counts as not matching. Add the Namespace to the manifests",
                    range.name
                ));
                false
            }
        };
        if is_selected {
            found.ranges.push(range);
        }
    }
    Ok(found)
}
