//! Events for the user.

use super::{Cause, ReconcileStep};

/// An event about a `CronJob`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning.
    pub warning: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl ReconcileStep {
    /// The event of a step that was taken.
    pub fn event(&self) -> Option<Event> {
        let normal = |reason, message| Some(Event { warning: false, reason, message });
        match self {
            Self::CreateJob { job, .. } => normal("SuccessfulCreate", format!("Created Job {}", job.name())),
            Self::DeleteJob { name, cause: Cause::Replaced, .. } => {
                normal("SuccessfulDelete", format!("Deleted Job {name}, as a newer run takes its place"))
            }
            Self::Publish(event) => Some(event.clone()),
            Self::DeleteJob { cause: Cause::History, .. } | Self::SetFinalizers(_) | Self::WriteStatus(_) => None,
        }
    }
}
