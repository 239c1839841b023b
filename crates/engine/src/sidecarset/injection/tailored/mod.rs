//! A set as one pod gets it.
//!
//! What of a set depends on the pod is settled first, so that all that follows compares the pod with what injection would give it,
//! and nothing else. A set that depends on nothing is taken as it is.

mod jobs;
mod overrides;
mod resources;

use admission::Reason;

use self::jobs::OfJob;
use self::overrides::Asked;
use self::resources::Targets;
use crate::pod::view::PodView;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::Clash;

/// What becomes of a set for one pod.
#[derive(Debug)]
pub enum Fit {
    /// Nothing of it depends on the pod.
    AsWritten,
    /// The pod gets this.
    Tailored(Box<CompiledSet>),
    /// The pod goes without it, and why.
    Skipped(Reason, String),
}

/// Settles what of sets depends on one pod.
#[derive(Debug)]
pub struct Tailor<'p, 's> {
    pod: &'p PodView<'p>,
    // The minor version of the API server.
    minor: Option<u32>,
    ends: bool,
    asked: Asked<'p>,
    targets: Targets<'p, 's>,
}

impl<'p, 's> Tailor<'p, 's> {
    /// For a pod, the sets that select it, and the minor version of the API server.
    pub fn new(pod: &'p PodView<'p>, selecting: Vec<&'s CompiledSet>, minor: Option<u32>) -> Self {
        Self { pod, minor, ends: jobs::ends(pod), asked: Asked::read(pod), targets: Targets::new(pod, selecting) }
    }

    /// The set as the pod gets it.
    ///
    /// # Errors
    /// [`Clash`] when that cannot be said.
    pub fn fit(&self, set: &CompiledSet) -> Result<Fit, Clash> {
        let of_job = if self.ends { jobs::of_job(set, self.minor)? } else { OfJob::AsElsewhere };
        let is_native = match of_job {
            OfJob::Skipped(reason, why) => return Ok(Fit::Skipped(reason, why)),
            OfJob::Native => true,
            OfJob::AsElsewhere => false,
        };
        let is_asked_of = self.asked.concerns(set);
        if !is_native && !is_asked_of && set.pieces().all(|piece| piece.policy.is_none()) {
            return Ok(Fit::AsWritten);
        }
        let mut fitted = set.clone();
        for piece in pieces(&mut fitted) {
            self.settle_resources(set, piece)?;
            if is_asked_of {
                self.asked.apply(set, piece)?;
            }
        }
        if is_native {
            jobs::make_native(&mut fitted, self.pod);
        }
        Ok(Fit::Tailored(Box::new(fitted)))
    }

    /// Warnings about an annotation that asks for a change of what none of these sets has.
    pub fn overrides_of_nothing<'f>(&self, sets: impl Iterator<Item = &'f CompiledSet>) -> Vec<String> {
        self.asked.of_nothing(sets)
    }

    fn settle_resources(&self, set: &CompiledSet, piece: &mut Piece) -> Result<(), Clash> {
        let Some(policy) = piece.policy.clone() else { return Ok(()) };
        let totals = self.targets.totals(&policy).map_err(|why| Clash::evaluation(set, piece, &why))?;
        let mut object = piece.object();
        policy.apply(&totals, &mut object);
        set.resource_defaults.fill(&mut object);
        *piece = piece.with(&object);
        Ok(())
    }
}

fn pieces(set: &mut CompiledSet) -> impl Iterator<Item = &mut Piece> {
    let [inits, containers] = [&mut set.init_containers, &mut set.containers];
    let lists = [&mut inits.before, &mut inits.after, &mut containers.before, &mut containers.after];
    lists.into_iter().flatten()
}
