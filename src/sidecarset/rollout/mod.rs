//! Rollouts: which pods that carry an older form of a set take its current one next. Pure: the state of pods, a strategy and
//! budgets in, a plan out. [`crate::sidecarset::controller`] carries the plan out.

mod disruption;
mod order;
mod plan;
mod scatter;
pub mod strategy;
#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;

pub use disruption::{Disrupted, Disruption, Disruptions, Left};
pub use plan::{EvictionsWait, Plan, Vacancy, Waits, plan};

use crate::sidecarset::controller::packed::Packed;

/// What a pod is doing, from first to last to be updated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing of it runs yet.
    #[default]
    Pending,
    /// Not known.
    Unknown,
    /// It runs.
    Running,
}

/// Whether a pod has the current form of the set that it carries, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// It has it.
    Updated,
    /// It has an older one. It is not known whether it can take the current one in place.
    Outdated,
    /// It has an older one, and only a new pod can have the current one.
    NewPodOnly,
    /// The same, and the pod may be evicted, so that its workload creates a new one.
    Evictable,
    /// The same, at a later time.
    Awaiting,
    /// The same, and the API server has just refused to evict the pod at this time.
    Blocked,
    /// It has an older one, and a try to change it has just failed: it waits before the next.
    Failed,
    /// `OpenKruise` put the set there: the pod is left alone.
    OpenKruise,
    /// It has an older one, and its workload is held back: new pods of it get an older form too.
    HeldBack,
}

/// A pod that carries the set and counts for it.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone, Copy)]
pub struct PodState<'p> {
    /// Namespace.
    pub namespace: &'p str,
    /// Name.
    pub name: &'p str,
    /// Labels.
    pub labels: &'p Packed,
    /// Whether these may not be all of them.
    pub some_left_out: bool,
    /// The form that it carries.
    pub form: Form,
    /// Whether its containers run what the pod asks for, as far as rollouts changed that.
    pub is_settled: bool,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Whether a rollout took it down that served, and it has not been back since.
    pub is_touched: bool,
    /// Whether that is so long ago that it holds up its own workload and namespace alone.
    pub is_overdue: bool,
    /// Whether it would be the first of its workload to be evicted for this form: alone, as it is not known what its new pods have.
    pub is_first: bool,
    /// The workload that it is of; 0 for a pod without a controller.
    pub owner: u64,
    /// When it was created, in seconds.
    pub created: u32,
    /// When its readiness changed last, in seconds.
    pub ready_since: u32,
    /// How often its containers were started again.
    pub restarts: u16,
    /// Phase.
    pub phase: Phase,
    /// Whether a node is to run it.
    pub is_assigned: bool,
}

impl<'p> PodState<'p> {
    /// As `PodDisruptionBudget`s read it.
    pub(super) const fn disrupted(&self) -> Disrupted<'p> {
        Disrupted { namespace: self.namespace, labels: self.labels, some_left_out: self.some_left_out }
    }

    /// Whether it serves, with the containers that it asks for.
    pub const fn is_available(&self) -> bool {
        self.is_ready && self.is_settled
    }

    /// Whether a rollout took it down and it is not back, whatever form it has by now: it takes a place in the budget. One that was
    /// not ready anyway is nothing that the rollout waits for.
    pub const fn is_in_flight(&self) -> bool {
        self.is_touched && !self.is_available()
    }
}
