//! Adding sets to one pod: what is missing, what prevents it, and the patch.

mod annotations;
mod app;
mod carried;
mod clash;
mod fit;
mod lacking;
mod legality;
mod ours;
mod patch;
mod ports;
mod presence;
mod quality;
mod tailored;
mod theirs;

pub use app::{AppAddition, UnmatchedEntry};
pub use carried::{Carried, INJECTED_ANNOTATION, RECORD_MAX_BYTES};
pub use clash::Clash;
pub use fit::{Fitting, Plan, Source, Transfer};
pub(crate) use presence::Recorded;
pub use tailored::{AmountsSource, Fit, Tailor};
pub(crate) use tailored::{AskedAnew, ends};

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use admission::Reason;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;

use self::annotations::Annotations;
use self::fit::Sources;
use self::lacking::Repair;
use self::ours::Ours;
use self::presence::{PiecesByName, Presence};
use self::theirs::Theirs;
use crate::pod::view::{Container, PodView};
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, Piece, SecretPiece, VolumePiece};
use crate::sidecarset::metadata::AnnotationPiece;
use crate::sidecarset::sameness::is_same_volume;

/// The list of the pod that a container goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    InitContainers,
    Containers,
}

impl List {
    pub(crate) const fn field(self) -> &'static str {
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
    repairs: Vec<Repair<'s>>,
    annotations: Vec<&'s AnnotationPiece>,
    app: app::Changes<'s>,
    presence: Presence,
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

    /// In what the set that the pod carries is not the current one, if it is not.
    pub fn outdated(&self) -> Option<&str> {
        match &self.presence {
            Presence::Outdated(differing) => Some(differing),
            _ => None,
        }
    }

    /// Names of the containers that the pod lacks.
    pub fn lacking(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.containers().map(|piece| piece.name.as_str())
    }

    /// By whose hand the set is in the pod, if it is.
    pub(crate) const fn present(&self) -> Option<Reason> {
        self.presence.reason()
    }

    /// What containers of the set that the pod has lack of what they take from the pod's own.
    pub fn repairs(&self) -> impl Iterator<Item = String> + '_ {
        let of_app = self.app.first.iter().map(|name| format!("variables and mounts of container {name:?}"));
        self.repairs.iter().map(Repair::described).chain(of_app)
    }

    /// Whether `OpenKruise` says that it put the set into the pod.
    pub(crate) fn is_by_openkruise(&self) -> bool {
        self.presence == Presence::OpenKruise
    }

    /// What of it only a new pod can get, if anything. It has the images and amounts of the set already, as far as a running pod takes these.
    pub(crate) fn for_new_pods_only(&self) -> Option<String> {
        if let Some(differing) = self.outdated() {
            return Some(differing.to_owned());
        }
        let container = self.lacking().next().map(|name| format!("container {name:?} is missing"));
        let volume = || self.volumes.first().map(|volume| format!("volume {:?} is missing", volume.name));
        let secret = || self.secrets.first().map(|secret| format!("pull secret {:?} is missing", secret.name));
        let repair = || self.repairs().next().map(|what| format!("{what} are missing"));
        container.or_else(volume).or_else(secret).or_else(repair)
    }

    fn clear_containers(&mut self) {
        self.repairs.clear();
        for list in [&mut self.init_before, &mut self.init_after, &mut self.before, &mut self.after] {
            list.clear();
        }
    }

    fn is_empty(&self) -> bool {
        self.containers().next().is_none()
            && self.volumes.is_empty()
            && self.secrets.is_empty()
            && self.repairs.is_empty()
            && self.annotations.is_empty()
            && self.app.is_empty()
    }
}

/// A pod, and what has been added to it so far.
#[derive(Debug)]
pub struct Injection<'p, 's> {
    pod: &'p PodView<'p>,
    // What the pod was read from.
    body: &'p str,
    theirs: Theirs<'p, 's>,
    carried: Carried<'p, 's>,
    added: Missing<'s>,
    ours: Ours<'s>,
    annotations: Annotations<'s>,
    // Entries of the annotation that have to be written anew, by set.
    new_entries: BTreeMap<&'s str, Cow<'s, str>>,
    // Bytes of the record with the new entries.
    record_bytes: usize,
    volume_owners: OnceCell<BTreeMap<&'s str, Vec<&'s str>>>,
    pieces: OnceCell<PiecesByName<'s>>,
    // Names in `spec.appContainers` of several sets that select the pod.
    shared_variables: BTreeSet<&'s str>,
    // Sets that the pod goes without.
    absent: BTreeSet<&'s str>,
}

impl<'p, 's> Injection<'p, 's> {
    /// Starts with a pod as it came, the body that it was read from, and the sets that select it, in order. No container of the pod is
    /// of the sets that are `absent`, whatever it runs.
    pub fn new(
        pod: &'p PodView<'p>,
        body: &'p str,
        selecting: impl IntoIterator<Item = &'s CompiledSet>,
        absent: BTreeSet<&'s str>,
    ) -> Self {
        let selecting: Vec<&'s CompiledSet> = selecting.into_iter().collect();
        let carried = Carried::read(&pod.metadata, &selecting);
        Self {
            pod,
            body,
            record_bytes: carried.bytes(),
            carried,
            shared_variables: app::shared_variables(&selecting),
            theirs: Theirs::new(pod, selecting),
            added: Missing::default(),
            ours: Ours::default(),
            annotations: Annotations::default(),
            new_entries: BTreeMap::new(),
            volume_owners: OnceCell::new(),
            pieces: OnceCell::new(),
            absent,
        }
    }

    /// Adds what the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when the pod cannot carry the set; nothing of it is added then.
    pub fn add(&mut self, set: &'s CompiledSet) -> Result<Reason, Clash> {
        let missing = self.examine(set)?;
        Ok(self.add_missing(set, missing))
    }

    /// Adds what [`Self::examine`] has just found missing.
    pub fn add_missing(&mut self, set: &'s CompiledSet, missing: Missing<'s>) -> Reason {
        let quality = quality::warning(self, set, &missing);
        self.ours.spoils_guaranteed |= quality.is_some();
        self.ours.add(set, &missing, &self.pod.spec);
        if let Some(entry) = self.new_entry(set, &missing) {
            self.record_bytes += Carried::entry_bytes(&set.name, &entry);
            self.record_bytes -= match self.new_entries.insert(&set.name, entry) {
                Some(before) => Carried::entry_bytes(&set.name, &before),
                None => self.carried.bytes_of(&set.name),
            };
        }
        match missing.outdated() {
            Some(differing) => self.added.warnings.push(outdated_warning(set, differing)),
            None => self.note_overwritten(set),
        }
        if matches!(missing.presence, Presence::Absent | Presence::Current) {
            self.annotations.add(set, &missing.annotations, &self.pod.metadata);
        }
        if missing.is_empty() {
            return missing.presence.reason().unwrap_or(reasons::ALREADY_INJECTED);
        }
        self.added.warnings.extend(set.notes.iter().cloned());
        self.added.init_before.extend(missing.init_before);
        self.added.init_after.extend(missing.init_after);
        self.added.before.extend(missing.before);
        self.added.after.extend(missing.after);
        self.added.volumes.extend(missing.volumes);
        self.added.secrets.extend(missing.secrets);
        self.added.repairs.extend(missing.repairs);
        self.added.app.extend(missing.app);
        self.added.warnings.extend(missing.warnings);
        self.added.warnings.extend(quality);
        reasons::INJECTED
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
        match missing.presence {
            // Its hash is not that of what the pod carries, and the controller is not to count the pod as updated.
            Presence::Outdated(_) => self.carried.entry_without_hash(set),
            // It may be of an older form: what that gave the pod's own containers cannot be distinguished from what is theirs.
            Presence::Absent if missing.is_empty() && self.carried.has(&set.name) => None,
            // OpenKruise's record speaks for it.
            Presence::OpenKruise if missing.is_empty() => None,
            // Although nothing of the set comes, the pod has all that it gives: without a record it would count as one that lacks it.
            _ if missing.is_empty() && !self.has_room_for_record(set) => None,
            _ => Some(set.entry()).filter(|entry| !self.carried.says(&set.name, entry)).map(Cow::Owned),
        }
    }

    /// Whether the set's entry fits into a record that is still read as a whole. No pod is refused for the record of what it has already.
    fn has_room_for_record(&self, set: &CompiledSet) -> bool {
        let record = self.record_bytes_with(&set.name, &set.entry());
        record <= RECORD_MAX_BYTES && self.annotation_bytes_with(record) <= ANNOTATIONS_MAX_BYTES
    }

    /// Bytes that the record takes with that entry of a set, its other brace included.
    fn record_bytes_with(&self, set: &str, entry: &str) -> usize {
        self.record_bytes - self.bytes_of_record(set) + Carried::entry_bytes(set, entry) + 1
    }

    /// Bytes that all annotations take, those that sets give among them, with a record of so many.
    fn annotation_bytes_with(&self, record: usize) -> usize {
        self.theirs.annotation_bytes() + self.annotations.growth() + INJECTED_ANNOTATION.len() + record
    }

    /// What the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when something prevents it.
    pub fn examine(&self, set: &'s CompiledSet) -> Result<Missing<'s>, Clash> {
        let mut missing = Missing::default();
        missing.presence = self.presence(set, &mut missing)?;
        let is_whole = missing.presence != Presence::Absent && missing.containers().next().is_none();
        if missing.outdated().is_some() || (is_whole && missing.presence == Presence::OpenKruise) {
            return Ok(missing);
        }
        // A volume that came with the set's containers is taken as it is: the API server may have filled in whatever a later
        // release of it fills in. Not so where a pod must not evade the set.
        let any_source = is_whole && set.may_opt_out && self.carried.has(&set.name);
        for volume in &set.volumes {
            if !self.has_volume(set, volume, any_source || set.allowed.volume(&volume.name))? {
                missing.volumes.push(volume);
            }
        }
        missing.secrets = set.secrets.iter().filter(|secret| !self.has_secret(&secret.name)).collect();
        if missing.presence != Presence::OpenKruise {
            missing.annotations = self.annotations.examine(set, &self.pod.metadata)?;
        }
        missing.warnings = self.check_ports(set, &missing)?;
        self.examine_app(set, &mut missing)?;
        legality::check(self, set, &missing)?;
        Ok(missing)
    }

    /// The pod's own containers.
    fn sources(&self) -> &Sources<'p, 's> {
        self.theirs.sources.get_or_init(|| {
            let coming = self.theirs.selecting.iter().filter(|set| !self.absent.contains(set.name.as_str()));
            Sources::new(self.pod, self.body, &coming.copied().collect::<Vec<_>>())
        })
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

    /// What the pod's annotations say that it carries.
    pub(crate) const fn carried(&self) -> &Carried<'p, 's> {
        &self.carried
    }

    /// Takes in that the pod carries an earlier set, in whatever form: annotations that this one changes, a later set may not.
    pub(crate) fn claim(&mut self, set: &'s CompiledSet) {
        self.annotations.add(set, &[], &self.pod.metadata);
    }

    /// Sentences that the user should see about what was added.
    pub fn warnings(&self) -> &[String] {
        &self.added.warnings
    }
}

fn other_source(volume: &VolumePiece) -> String {
    format!("volume {:?} with another source", volume.name)
}

/// A sentence for the author of a pod with another form of the set than the current one.
pub fn outdated(set: &CompiledSet, differing: &str) -> String {
    format!(
        "the pod carries another form of SidecarSet {:?} than the current one: {differing}; it is left as it is",
        set.name
    )
}

/// The same as a warning, which begins with the reason code.
pub fn outdated_warning(set: &CompiledSet, differing: &str) -> String {
    format!("{}: {}", reasons::OUTDATED, outdated(set, differing))
}
