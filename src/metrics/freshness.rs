//! How old the read model is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

/// Generation and age of the snapshot: written by the code that updates the read model, read by probes and metrics.
#[derive(Debug, Clone, Default)]
pub struct Freshness {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    generation: AtomicU64,
    replaced: ArcSwapOption<Instant>,
}

impl Freshness {
    /// A new snapshot is in use.
    pub fn replaced(&self, generation: u64) {
        self.shared.generation.store(generation, Ordering::Relaxed);
        self.shared.replaced.store(Some(Arc::new(Instant::now())));
    }

    /// The snapshot in use was confirmed so long ago: where objects are watched, a snapshot that nothing changes is not old.
    pub fn confirmed(&self, generation: u64, ago: Duration) {
        self.shared.generation.store(generation, Ordering::Relaxed);
        self.shared.replaced.store(Instant::now().checked_sub(ago).map(Arc::new));
    }

    /// The generation of the snapshot in use, 0 before the first.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Relaxed)
    }

    /// How long ago the snapshot was replaced, none before the first.
    pub fn age(&self) -> Option<Duration> {
        self.shared.replaced.load().as_deref().map(Instant::elapsed)
    }
}
