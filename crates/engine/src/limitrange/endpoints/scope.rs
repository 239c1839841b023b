//! Which ranges a request concerns.

use admission::Unserved;

use crate::limitrange::compiled::CompiledRange;
use crate::snapshot::{Snapshot, scope};

/// The ranges that a request concerns.
pub type ConcernedRanges<'s> = scope::Concerned<'s, CompiledRange>;

/// The ranges among `chosen` that select a namespace.
///
/// # Errors
/// As [`scope::concerned`].
pub fn concerned<'s>(
    snapshot: &'s Snapshot,
    namespace: &str,
    chosen: impl Fn(&CompiledRange) -> bool,
) -> Result<ConcernedRanges<'s>, Unserved> {
    scope::concerned(snapshot, namespace, snapshot.limit_ranges.iter().filter(|range| chosen(range)))
}
