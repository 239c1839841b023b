//! Adding sets to one pod: what is missing, what stands in the way, and the patch.

mod carried;
mod clash;
mod legality;
mod ours;
mod patch;
mod ports;
mod positions;
mod theirs;

pub use carried::{Carried, INJECTED_ANNOTATION};
pub use clash::Clash;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use admission::Reason;
use serde_json::value::RawValue;

use crate::pod::view::{Container, PodView};
use crate::reasons;
use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::canonical_volume;
use crate::sidecarset::compiled::{CompiledSet, Piece, SecretPiece, VolumePiece, stated};
use ours::Ours;
use theirs::Theirs;

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
    theirs: Theirs<'p, 's>,
    carried: Carried<'p, 's>,
    added: Missing<'s>,
    ours: Ours<'s>,
    // Entries of the annotation that have to be written anew, by set.
    new_entries: BTreeMap<&'s str, Cow<'s, str>>,
    // Bytes of the record with the new entries.
    record_bytes: usize,
    volume_owners: OnceCell<BTreeMap<&'s str, Vec<&'s str>>>,
}

impl<'p, 's> Injection<'p, 's> {
    /// Starts with a pod as it came, and the sets that select it, in order.
    pub fn new(pod: &'p PodView<'p>, selecting: impl IntoIterator<Item = &'s CompiledSet>) -> Self {
        let selecting: Vec<&'s CompiledSet> = selecting.into_iter().collect();
        let carried = Carried::read(&pod.metadata, &selecting);
        Self {
            pod,
            record_bytes: carried.bytes(),
            carried,
            theirs: Theirs::new(pod, selecting),
            added: Missing::default(),
            ours: Ours::default(),
            new_entries: BTreeMap::new(),
            volume_owners: OnceCell::new(),
        }
    }

    /// Adds what the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when the pod cannot carry the set; nothing of it is added then.
    pub fn add(&mut self, set: &'s CompiledSet) -> Result<Reason, Clash> {
        let missing = self.examine(set)?;
        self.ours.add(set, &missing, &self.pod.spec);
        if missing.is_empty() {
            return Ok(missing.present.unwrap_or(reasons::ALREADY_INJECTED));
        }
        let entry = self.new_entry(set, &missing);
        if let Some(entry) = entry {
            self.record_bytes -= self.bytes_of_record(&set.name);
            self.record_bytes += Carried::entry_bytes(&set.name, &entry);
            self.new_entries.insert(&set.name, entry);
        }
        self.added.init_before.extend(missing.init_before);
        self.added.init_after.extend(missing.init_after);
        self.added.before.extend(missing.before);
        self.added.after.extend(missing.after);
        self.added.volumes.extend(missing.volumes);
        self.added.secrets.extend(missing.secrets);
        self.added.warnings.extend(missing.warnings);
        Ok(reasons::INJECTED)
    }

    /// Bytes that the record of the set takes, with what is new.
    fn bytes_of_record(&self, set: &str) -> usize {
        match self.new_entries.get(set) {
            Some(entry) => Carried::entry_bytes(set, entry),
            None => self.carried.bytes_of(set),
        }
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
        if let Some(owner) = self.ours.containers.get(piece.name.as_str()) {
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
        let name = container.name.as_str();
        if set.may_opt_out {
            return self.carried.other_owner(&set.name, name);
        }
        let is_true =
            |known: &&CompiledSet| known.pieces().any(|piece| piece.name == name && is_ours(piece, container));
        self.carried.other_selecting_owners(&set.name, name).find(is_true).map(|known| known.name.as_str())
    }

    fn find(&self, name: &str) -> Option<(List, usize, &'p Container<'p>)> {
        self.theirs.container(name)
    }

    /// Whether the pod has the volume by now, as it came or added by an earlier set. One of the same name with another source is
    /// a clash, unless `any_source` will do.
    fn has_volume(&self, set: &'s CompiledSet, volume: &VolumePiece, any_source: bool) -> Result<bool, Clash> {
        if let Some((added, owner)) = self.ours.volumes.get(volume.name.as_str()) {
            if added.canonical == volume.canonical {
                return Ok(true);
            }
            return Err(Clash::between_sets(set, &owner.name, &other_source(volume)));
        }
        let Some((index, found)) = self.theirs.volume(&volume.name) else { return Ok(false) };
        if any_source || is_same_volume(found, volume) {
            return Ok(true);
        }
        let owners = self.volume_owners.get_or_init(|| self.recorded_volumes());
        let owner = owners.get(volume.name.as_str()).into_iter().flatten().find(|owner| **owner != set.name);
        Err(match owner {
            Some(owner) => Clash::between_sets(set, owner, &other_source(volume)),
            None => Clash::volume(set, volume, found, index),
        })
    }

    /// Volumes of the pod that are those of sets which it says it carries: any two of the sets, for one may be the set at hand.
    fn recorded_volumes(&self) -> BTreeMap<&'s str, Vec<&'s str>> {
        let mut owners: BTreeMap<&'s str, Vec<&'s str>> = BTreeMap::new();
        for set in self.theirs.selecting.iter().filter(|set| self.carried.has(&set.name)) {
            for volume in &set.volumes {
                let names = owners.entry(&volume.name).or_default();
                let is_theirs = || self.theirs.volume(&volume.name).is_some_and(|(_, raw)| is_same_volume(raw, volume));
                if names.len() < 2 && is_theirs() {
                    names.push(&set.name);
                }
            }
        }
        owners
    }

    fn has_secret(&self, name: &str) -> bool {
        self.ours.secrets.contains(name) || self.theirs.has_secret(name)
    }

    /// Sentences that the user should see about what was added.
    pub fn warnings(&self) -> &[String] {
        &self.added.warnings
    }
}

fn other_source(volume: &VolumePiece) -> String {
    format!("volume {:?} with another source", volume.name)
}

/// How much longer a volume may be written and still be the same: the API server and others fill in defaults.
const VOLUME_FACTOR: usize = 16;
const VOLUME_MORE: usize = 4096;

fn is_same_volume(found: &RawValue, ours: &VolumePiece) -> bool {
    // A pod's volume may be megabytes, and every set may have one of that name.
    found.get().len() <= ours.json.len() * VOLUME_FACTOR + VOLUME_MORE
        && serde_json::from_str::<RawObject>(found.get()).is_ok_and(|found| canonical_volume(&found) == ours.canonical)
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
