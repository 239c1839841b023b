//! One consistent view of everything that a decision reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sidecarset::index::SetIndex;
use crate::world::namespace::Namespaces;

/// What a decision is taken from. Never changed; replaced.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Rises with every replacement.
    pub generation: u64,
    /// Every SidecarSet, compiled.
    pub sets: Arc<SetIndex>,
    /// Labels of the namespaces.
    pub namespaces: Arc<Namespaces>,
    /// Namespaces, and the label, that keep pods out.
    pub exclusion: Arc<Exclusion>,
    /// Whether a namespace that has not been seen may appear yet: true with a cluster, false offline.
    pub namespaces_may_appear: bool,
}

/// Where Outrider never changes or refuses a pod, whatever the sets say.
#[derive(Debug, Clone, Default)]
pub struct Exclusion {
    /// Names of namespaces.
    pub namespaces: BTreeSet<String>,
}
