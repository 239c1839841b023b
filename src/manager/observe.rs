//! What the manager tells whoever measures it.

use std::time::Duration;

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done.
    Success,
    /// Failed; comes back later.
    Error,
    /// Panicked; comes back later.
    Panic,
}

impl Outcome {
    /// The word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Panic => "panic",
        }
    }
}

/// Hears what controllers and the lease do. Called often; must not block.
pub trait Observer: Send + Sync {
    /// A reconcile has ended.
    fn reconciled(&self, controller: &'static str, outcome: Outcome, took: Duration) {
        let _ = (controller, outcome, took);
    }

    /// So many keys wait for a reconcile.
    fn queue_depth(&self, controller: &'static str, depth: usize) {
        let _ = (controller, depth);
    }

    /// This process began or ceased to lead.
    fn leads(&self, leads: bool) {
        let _ = leads;
    }
}

/// Measures nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
