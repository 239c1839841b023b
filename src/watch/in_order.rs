//! The on-demand entries of the API server, as far as they are known.

use std::sync::Arc;

use engine::demand::Demand;

/// The entries that are needed, and that the API server had exactly so when it was last read. Empty before the leader has read them.
pub type InOrder = Arc<Vec<Demand>>;
