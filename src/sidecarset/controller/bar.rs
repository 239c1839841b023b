//! Whether pods of a workload are evicted for a form of a set.

use crate::sidecarset::controller::pods::PodKey;

/// Whether pods of a workload are evicted for a form of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// As far as budgets allow.
    Free,
    /// One alone: it is not known whether new pods have the form.
    First,
    /// That one is on its way.
    Awaiting,
    /// No more of them; why.
    Barred(Bar),
}

/// Why no more pods of a workload are evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// A new pod of it lacks the form.
    Outdated,
    /// It has not replaced a pod that was evicted at this time, in seconds since 1970.
    NotReplaced(u32),
}

/// Workloads of which no more pods are evicted: of each kind how many, and one of the pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Barred {
    /// [`Bar::Outdated`], with the new pod.
    pub outdated: (usize, Option<PodKey>),
    /// [`Bar::NotReplaced`], with the pod that was evicted.
    pub not_replaced: (usize, Option<PodKey>),
}
