//! Whether this replica can answer: a set of named gates, fixed at start, each opened by its owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::ArcSwap;

/// All gates of the process.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    gates: ArcSwap<Vec<Arc<GateState>>>,
    closed: AtomicUsize,
    draining: AtomicBool,
}

#[derive(Debug)]
struct GateState {
    name: String,
    open: AtomicBool,
    detail: ArcSwap<String>,
}

/// One gate: the handle of the component that opens it.
#[derive(Debug, Clone)]
pub struct Gate {
    state: Arc<GateState>,
    readiness: Readiness,
}

/// What is known about a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateStatus {
    /// The gate's name, such as `sync:namespaces`.
    pub name: String,
    /// Whether it is open.
    pub open: bool,
    /// Why not, or other news; may be empty.
    pub detail: String,
}

impl Readiness {
    /// Adds a gate, closed. Make all gates before the first probe, so that it is right.
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        let state = Arc::new(GateState {
            name: name.into(),
            open: AtomicBool::new(false),
            detail: ArcSwap::from_pointee("has not started".to_owned()),
        });
        self.shared.closed.fetch_add(1, Ordering::SeqCst);
        self.shared.gates.rcu(|gates| {
            let mut gates = Vec::clone(gates);
            gates.push(Arc::clone(&state));
            gates
        });
        Gate { state, readiness: self.clone() }
    }

    /// Whether every gate is open, so that a review can be decided. Stays true while draining.
    pub fn can_serve(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire) == 0
    }

    /// Whether new requests should be sent here: every gate is open and the process is not about to end.
    pub fn is_ready(&self) -> bool {
        self.can_serve() && !self.is_draining()
    }

    /// From now on not ready, for good.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
    }

    /// Whether [`Readiness::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }

    /// Every gate, in the order of their making.
    pub fn checks(&self) -> Vec<GateStatus> {
        let check = |state: &Arc<GateState>| GateStatus {
            name: state.name.clone(),
            open: state.open.load(Ordering::Acquire),
            detail: String::clone(&state.detail.load()),
        };
        self.shared.gates.load().iter().map(check).collect()
    }

    /// The names of the gates that are closed, for an error message.
    pub fn missing(&self) -> String {
        let closed: Vec<String> =
            self.checks().into_iter().filter(|check| !check.open).map(|check| check.name).collect();
        closed.join(", ")
    }
}

impl Gate {
    /// The part works.
    pub fn open(&self) {
        self.state.detail.store(Arc::default());
        if !self.state.open.swap(true, Ordering::SeqCst) {
            self.readiness.shared.closed.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The part does not work (any more), and why.
    pub fn close(&self, why: impl Into<String>) {
        self.state.detail.store(Arc::new(why.into()));
        if self.state.open.swap(false, Ordering::SeqCst) {
            self.readiness.shared.closed.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Says something about the part without changing its state.
    pub fn note(&self, detail: impl Into<String>) {
        self.state.detail.store(Arc::new(detail.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_while_every_gate_is_open_and_nothing_drains() {
        let readiness = Readiness::default();
        let (sets, namespaces) = (readiness.gate("sync:sidecarsets"), readiness.gate("sync:namespaces"));
        sets.open();
        sets.open();
        assert!(!readiness.is_ready());
        assert_eq!(readiness.missing(), "sync:namespaces");
        namespaces.open();
        assert!(readiness.is_ready());
        sets.close("the watch failed");
        sets.close("the watch failed again");
        assert!(!readiness.can_serve());
        sets.open();
        assert!(readiness.is_ready());
        readiness.drain();
        assert!(readiness.can_serve());
        assert!(!readiness.is_ready());
    }
}
