//! A set as one pod gets it.
//!
//! What of a set depends on the pod is settled first, so that all that follows compares the pod with what injection would give it,
//! and nothing else. A set that depends on nothing is taken as it is.

mod jobs;
mod overrides;
mod pairs;
mod resources;

use admission::Reason;
use serde_json::Value;

use self::jobs::OfJob;
pub(crate) use self::jobs::ends;
use self::overrides::Asked;
pub(crate) use self::overrides::AskedAnew;
pub use self::resources::AmountsSource;
use self::resources::Targets;
use crate::pod::view::PodView;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::hot_upgrade::is_of_pairs;
use crate::sidecarset::injection::{Clash, List};

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
    // The pod before it was changed, if it runs.
    before: Option<&'p PodView<'p>>,
}

impl<'p, 's> Tailor<'p, 's> {
    /// For a pod, the sets that select it, what their amounts follow from, what it was `before` it was changed, if it runs, and the
    /// minor version of the API server.
    pub fn new(
        pod: &'p PodView<'p>,
        selecting: Vec<&'s CompiledSet>,
        (amounts, before): (AmountsSource<'p>, Option<&'p PodView<'p>>),
        minor: Option<u32>,
    ) -> Self {
        let targets = Targets::new(pod, selecting, amounts);
        Self { pod, minor, ends: jobs::ends(pod), asked: Asked::read(&pod.metadata), targets, before }
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
        let kept = |piece: &Piece| self.targets.with_other_image(&set.name, &piece.name, &piece.image);
        let is_kept_of = set.pieces().any(|piece| kept(piece).is_some());
        let is_as_written = match self.before {
            _ if set.pairs.is_empty() => true,
            Some(_) => false,
            None => !pairs::is_turned(set, self.pod),
        };
        if is_as_written
            && !is_native
            && !is_asked_of
            && !is_kept_of
            && set.pieces().all(|piece| piece.policy.is_none())
        {
            return Ok(Fit::AsWritten);
        }
        let mut fitted = set.clone();
        let mut notes = Vec::new();
        for (list, piece) in pieces(&mut fitted) {
            let is_asked_for = is_asked_of && self.asked.concerns_piece(set, piece);
            let becomes_native = is_native && list == List::Containers;
            if piece.policy.is_none() && !is_asked_for && !becomes_native && kept(piece).is_none() {
                continue;
            }
            // Read and prepared for comparing once, whatever changes it.
            let mut object = piece.object();
            self.settle_resources(set, piece, &mut object)?;
            if is_asked_for {
                self.asked.apply(set, piece, &mut object)?;
            }
            let image = object.get("image").and_then(Value::as_str).unwrap_or_default();
            if let Some(resized) = self.targets.with_other_image(&set.name, &piece.name, image) {
                resized.keep(&mut object);
            }
            if becomes_native {
                notes.extend(jobs::to_native(set, &piece.name, &mut object, self.pod));
            }
            *piece = piece.with(&object);
        }
        fitted.notes.extend(notes);
        self.turn_pairs(&mut fitted);
        if is_native {
            jobs::move_to_native(&mut fitted);
        }
        Ok(Fit::Tailored(Box::new(fitted)))
    }

    fn turn_pairs(&self, set: &mut CompiledSet) {
        if set.pairs.is_empty() {
            return;
        }
        if self.before.is_none() {
            return pairs::turn_at_creation(set, self.pod);
        }
        let before = self.before.filter(|_| !self.targets.is_gained(&set.name));
        pairs::turn(set, self.pod, before);
        set.metadata.retain(|piece| !is_of_pairs(&piece.key));
    }

    /// Warnings about an annotation that asks for a change of what none of these sets has.
    pub fn overrides_of_nothing<'f>(&self, sets: impl Iterator<Item = &'f CompiledSet>) -> Vec<String> {
        self.asked.of_nothing(sets)
    }

    fn settle_resources(&self, set: &CompiledSet, piece: &Piece, object: &mut RawObject) -> Result<(), Clash> {
        let Some(policy) = &piece.policy else { return Ok(()) };
        if let Some(kept) = self.targets.kept(&set.name, &piece.name) {
            policy.keep(kept.0, object);
        } else {
            let totals = self.targets.totals(policy).map_err(|why| Clash::evaluation(set, piece, &why))?;
            policy.apply(&totals, object);
        }
        set.resource_defaults.fill(object);
        policy.limit(&self.targets.defaults(), object);
        Ok(())
    }
}

fn pieces(set: &mut CompiledSet) -> impl Iterator<Item = (List, &mut Piece)> {
    let lists = [(List::InitContainers, &mut set.init_containers), (List::Containers, &mut set.containers)];
    lists.into_iter().flat_map(|(list, pieces)| pieces.iter_mut().map(move |piece| (list, piece)))
}
