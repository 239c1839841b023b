//! What all ranges of a namespace together say about a pod or a claim.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{Deadline, Unserved};

use super::api::LimitType;
use super::bounds::{Strictest, Usage};
use super::compiled::CompiledRange;
use super::faults::{RangeFaults, Refusal};

/// The bounds of several ranges, by type.
#[derive(Debug, Default)]
pub struct Judgement<'r> {
    types: BTreeMap<LimitType, Strictest<'r>>,
}

impl<'r> Judgement<'r> {
    /// By these ranges.
    pub fn of(ranges: &[&'r Arc<CompiledRange>]) -> Self {
        let mut judgement = Self::default();
        for range in ranges {
            for (type_, bounds) in range.bounds() {
                judgement.types.entry(*type_).or_default().add(bounds, &range.name);
            }
        }
        judgement
    }

    /// Whether a range says something about the resource.
    pub fn is_about(&self, resource: &str) -> bool {
        self.types.values().any(|bounds| bounds.is_about(resource))
    }

    /// Judges a pod by what its containers ask for, and by what it asks for as a whole.
    ///
    /// # Errors
    /// [`Unserved::OutOfTime`] when the deadline passes.
    pub fn of_pod(
        &self,
        containers: &[Usage],
        pod: &Usage,
        deadline: Deadline<'_>,
    ) -> Result<Option<Refusal<'r>>, Unserved> {
        let mut faults = RangeFaults::default();
        for (type_, bounds) in &self.types {
            let judged = match type_ {
                LimitType::Container => containers,
                LimitType::Pod => std::slice::from_ref(pod),
                LimitType::PersistentVolumeClaim => continue,
            };
            for usage in judged {
                deadline.check()?;
                bounds.check(*type_, usage, &mut faults);
                if faults.is_cut() {
                    return Ok(faults.into_refusal());
                }
            }
        }
        Ok(faults.into_refusal())
    }

    /// Judges a claim.
    pub fn of_claim(&self, claim: &Usage) -> Option<Refusal<'r>> {
        let (type_, mut faults) = (LimitType::PersistentVolumeClaim, RangeFaults::default());
        self.types.get(&type_)?.check(type_, claim, &mut faults);
        faults.into_refusal()
    }
}
