//! Adding sets to one pod: what is missing, what stands in the way, and the patch.

mod carried;
mod clash;
mod legality;
mod patch;
mod ports;

pub use carried::{Carried, INJECTED_ANNOTATION};
pub use clash::Clash;

use std::borrow::Cow;
use std::collections::BTreeMap;

use admission::Reason;
use serde_json::value::RawValue;

use crate::pod::view::{Container, PodView, is_named};
use crate::reasons;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::canonical_volume;
use crate::sidecarset::compiled::{CompiledSet, Piece, SecretPiece, VolumePiece, stated};

/// The list of the pod that a container goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    InitContainers,
    Containers,
}

impl List {
    const fn field(self) -> &'static str {
        match self {
            Self::InitContainers => "initContainers",
            Self::Containers => "containers",
        }
    }
}

/// What a pod lacks of a set.
#[derive(Debug, Default)]
pub struct Missing<'s> {
    init_before: Vec<&'s Piece>,
    init_after: Vec<&'s Piece>,
    before: Vec<&'s Piece>,
    after: Vec<&'s Piece>,
    volumes: Vec<&'s VolumePiece>,
    secrets: Vec<&'s SecretPiece>,
    // Whether any container of the set is in the pod, and by whose hand.
    present: Option<Reason>,
    warnings: Vec<String>,
}

impl<'s> Missing<'s> {
    /// Containers that the pod lacks, init containers first.
    pub fn containers(&self) -> impl Iterator<Item = &'s Piece> + '_ {
        self.init_before.iter().chain(&self.init_after).chain(&self.before).chain(&self.after).copied()
    }

    /// Of these, the ones that run at the same time as the pod's own.
    fn running(&self) -> impl Iterator<Item = &'s Piece> + '_ {
        let sidecars = self.init_before.iter().chain(&self.init_after).filter(|piece| piece.needs.is_native_sidecar);
        sidecars.chain(&self.before).chain(&self.after).copied()
    }

    fn is_empty(&self) -> bool {
        self.containers().next().is_none() && self.volumes.is_empty() && self.secrets.is_empty()
    }
}

/// A pod, and what has been added to it so far.
#[derive(Debug)]
pub struct Injection<'p, 's> {
    pod: &'p PodView<'p>,
    carried: Carried<'p>,
    added: Missing<'s>,
    // Sets that the pod carries now, in order: what they hold is theirs, and a later set may not claim it.
    carrying: Vec<&'s CompiledSet>,
    // Sets that the pod says it carries, whether they come earlier or later in the order.
    recorded_before: Vec<&'s CompiledSet>,
    // Entries of the annotation that have to be written anew, by set.
    new_entries: BTreeMap<&'s str, Cow<'s, str>>,
}

impl<'p, 's> Injection<'p, 's> {
    /// Starts with a pod as it came, and the sets that select it, in order.
    pub fn new(pod: &'p PodView<'p>, selecting: impl IntoIterator<Item = &'s CompiledSet>) -> Self {
        let carried = Carried::read(&pod.metadata);
        let recorded_before = selecting.into_iter().filter(|set| carried.has(&set.name)).collect();
        Self {
            pod,
            carried,
            added: Missing::default(),
            carrying: Vec::new(),
            recorded_before,
            new_entries: BTreeMap::new(),
        }
    }

    /// Adds what the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when the pod cannot carry the set; nothing of it is added then.
    pub fn add(&mut self, set: &'s CompiledSet) -> Result<Reason, Clash> {
        let missing = self.examine(set)?;
        self.carrying.push(set);
        if missing.is_empty() {
            return Ok(missing.present.unwrap_or(reasons::ALREADY_INJECTED));
        }
        let entry = self.new_entry(set, &missing);
        self.new_entries.extend(entry.map(|entry| (set.name.as_str(), entry)));
        self.added.init_before.extend(missing.init_before);
        self.added.init_after.extend(missing.init_after);
        self.added.before.extend(missing.before);
        self.added.after.extend(missing.after);
        self.added.volumes.extend(missing.volumes);
        self.added.secrets.extend(missing.secrets);
        self.added.warnings.extend(missing.warnings);
        Ok(reasons::INJECTED)
    }

    /// The set's entry in the annotation, where it has to be written anew.
    fn new_entry(&self, set: &'s CompiledSet, missing: &Missing<'_>) -> Option<Cow<'s, str>> {
        if missing.present == Some(reasons::ALREADY_INJECTED) {
            // It stays true for containers that were there already, whatever revision they are of.
            return self.carried.entry_with(&set.name, missing);
        }
        let entry = self.carried.fresh_entry(&set.name, &set.entry, |name| self.find(name).is_some());
        Some(entry).filter(|entry| !self.carried.says(&set.name, entry))
    }

    /// What the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when something stands in the way.
    pub fn examine(&self, set: &'s CompiledSet) -> Result<Missing<'s>, Clash> {
        let mut missing = Missing::default();
        for (list, pieces) in [(List::InitContainers, &set.init_containers), (List::Containers, &set.containers)] {
            let (before, after) = match list {
                List::InitContainers => (&mut missing.init_before, &mut missing.init_after),
                List::Containers => (&mut missing.before, &mut missing.after),
            };
            for (side, pieces) in [(before, &pieces.before), (after, &pieces.after)] {
                for piece in pieces {
                    match self.present(set, piece, list)? {
                        Some(reason) => missing.present = Some(reason),
                        None => side.push(piece),
                    }
                }
            }
        }
        if missing.present == Some(reasons::INJECTED_BY_OPENKRUISE) && missing.containers().next().is_none() {
            return Ok(missing);
        }
        // A volume that came with the set's containers is taken as it is: the API server may have filled in whatever a later
        // release of it fills in.
        let is_whole = missing.present.is_some() && missing.containers().next().is_none();
        for volume in &set.volumes {
            if !self.has_volume(set, volume, is_whole)? {
                missing.volumes.push(volume);
            }
        }
        missing.secrets = set.secrets.iter().filter(|secret| !self.has_secret(&secret.name)).collect();
        missing.warnings = self.check_ports(set, &missing)?;
        legality::check(self, set, &missing)?;
        Ok(missing)
    }

    /// Whether the pod has the container already, and by whose hand. A foreign container of that name is a clash.
    fn present(&self, set: &'s CompiledSet, piece: &Piece, list: List) -> Result<Option<Reason>, Clash> {
        if let Some(owner) = self.carrying.iter().find(|other| other.pieces().any(|theirs| theirs.name == piece.name)) {
            return Err(Clash::between_sets(set, &owner.name, &format!("container {:?}", piece.name)));
        }
        let Some((found_in, index, container)) = self.find(&piece.name) else { return Ok(None) };
        let by = self.carried.by(&set.name, &piece.name, list).filter(|_| found_in == list);
        match by {
            Some(_) if !set.may_opt_out && !is_ours(piece, container) => {
                Err(Clash::forged(set, piece, container, found_in, index))
            }
            Some(reason) => Ok(Some(reason)),
            None => match self.owner_in_pod(set, container) {
                Some(owner) => Err(Clash::between_sets(set, owner, &format!("container {:?}", piece.name))),
                None => Err(Clash::container(set, piece, container, found_in, index)),
            },
        }
    }

    /// Another set that brought the container, as far as the pod's word for it goes: it must not keep out a set that denies
    /// opting out.
    fn owner_in_pod<'a>(&'a self, set: &'a CompiledSet, container: &'a Container<'_>) -> Option<&'a str> {
        let is_true = |owner: &&str| {
            self.recorded_before
                .iter()
                .filter(|known| known.name == **owner)
                .any(|known| known.pieces().any(|piece| piece.name == *container.name && is_ours(piece, container)))
        };
        self.carried.other_owners(&set.name, &container.name).find(|owner| set.may_opt_out || is_true(owner))
    }

    fn find(&self, name: &str) -> Option<(List, usize, &Container<'p>)> {
        let spec = &self.pod.spec;
        [(List::InitContainers, spec.init_containers()), (List::Containers, spec.containers())].into_iter().find_map(
            |(list, containers)| {
                let index = containers.iter().position(|container| container.name.as_str() == name)?;
                Some((list, index, containers.get(index)?))
            },
        )
    }

    /// Whether the pod has the volume by now, as it came or added by an earlier set. One of the same name with another source is
    /// a clash, unless `any_source` will do.
    fn has_volume(&self, set: &'s CompiledSet, volume: &VolumePiece, any_source: bool) -> Result<bool, Clash> {
        if let Some(added) = self.added.volumes.iter().find(|added| added.name == volume.name) {
            if added.canonical == volume.canonical {
                return Ok(true);
            }
            let owner = self.carrying.iter().find(|owner| owner.volumes.iter().any(|it| it.name == volume.name));
            return Err(Clash::between_sets(set, owner.map_or("", |owner| &owner.name), &other_source(volume)));
        }
        let volumes: &[&RawValue] = self.pod.spec.volumes.as_deref().unwrap_or_default();
        let Some((index, found)) = volumes.iter().enumerate().find(|(_, raw)| is_named(raw, &volume.name)) else {
            return Ok(false);
        };
        if any_source || is_same_volume(found, volume) {
            return Ok(true);
        }
        let owner = self.recorded_before.iter().find(|owner| {
            owner.name != set.name
                && owner.volumes.iter().any(|theirs| theirs.name == volume.name && is_same_volume(found, theirs))
        });
        Err(match owner {
            Some(owner) => Clash::between_sets(set, &owner.name, &other_source(volume)),
            None => Clash::volume(set, volume, found, index),
        })
    }

    fn has_secret(&self, name: &str) -> bool {
        let secrets = self.pod.spec.image_pull_secrets.as_deref().unwrap_or_default();
        secrets.iter().any(|secret| secret.name.as_str() == name)
            || self.added.secrets.iter().any(|secret| secret.name == name)
    }

    /// Sentences that the user should see about what was added.
    pub fn warnings(&self) -> &[String] {
        &self.added.warnings
    }
}

fn other_source(volume: &VolumePiece) -> String {
    format!("volume {:?} with another source", volume.name)
}

fn is_same_volume(found: &RawValue, ours: &VolumePiece) -> bool {
    serde_json::from_str::<RawObject>(found.get()).is_ok_and(|found| canonical_volume(&found) == ours.canonical)
}

/// Whether a container that the annotation calls ours is what the set injects, in all that decides what runs.
fn is_ours(piece: &Piece, container: &Container<'_>) -> bool {
    let found = [container.command, container.args, container.security_context];
    piece.image == *container.image
        && piece.identity.iter().zip(found).all(|(ours, found)| {
            let found: Option<serde_json::Value> = found.and_then(|raw| serde_json::from_str(raw.get()).ok());
            *ours == found.and_then(stated)
        })
}
