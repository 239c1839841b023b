//! Adding sets to one pod: what is missing, what stands in the way, and the patch.

mod carried;
mod clash;
mod legality;
mod patch;

pub use carried::{Carried, INJECTED_ANNOTATION};
pub use clash::Clash;

use admission::Reason;
use serde_json::value::RawValue;

use crate::pod::view::{Container, PodView, name_of};
use crate::sidecarset::api::RawObject;
use crate::sidecarset::canonical::canonical_volume;
use crate::sidecarset::compiled::{CompiledSet, Piece, SecretPiece, VolumePiece};
use crate::sidecarset::needs::PortNeed;

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
    // Of these, the sets whose entry in the annotation has to be written anew.
    recorded: Vec<&'s CompiledSet>,
}

impl<'p, 's> Injection<'p, 's> {
    /// Starts with a pod as it came.
    pub fn new(pod: &'p PodView<'p>) -> Self {
        let carried = Carried::read(&pod.metadata);
        Self { pod, carried, added: Missing::default(), carrying: Vec::new(), recorded: Vec::new() }
    }

    /// Adds what the pod lacks of a set.
    ///
    /// # Errors
    /// [`Clash`] when the pod cannot carry the set; nothing of it is added then.
    pub fn add(&mut self, set: &'s CompiledSet) -> Result<Reason, Clash> {
        let missing = self.examine(set)?;
        self.carrying.push(set);
        if missing.is_empty() {
            return Ok(missing.present.unwrap_or(Reason::AlreadyInjected));
        }
        // An entry stays true for containers that were there already, whatever revision they are of.
        if missing.present.is_none() || !self.carried.has(&set.name) {
            self.recorded.push(set);
        }
        self.added.init_before.extend(missing.init_before);
        self.added.init_after.extend(missing.init_after);
        self.added.before.extend(missing.before);
        self.added.after.extend(missing.after);
        self.added.volumes.extend(missing.volumes);
        self.added.secrets.extend(missing.secrets);
        self.added.warnings.extend(missing.warnings);
        Ok(Reason::Injected)
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
        if missing.present == Some(Reason::InjectedByOpenKruise) && missing.containers().next().is_none() {
            return Ok(missing);
        }
        for volume in &set.volumes {
            if !self.has_volume(set, volume)? {
                missing.volumes.push(volume);
            }
        }
        missing.secrets = set.secrets.iter().filter(|secret| !self.has_secret(&secret.name)).collect();
        self.check_ports(set, &mut missing)?;
        legality::check(self, set, &missing)?;
        Ok(missing)
    }

    /// Whether the pod has the container already, and by whose hand. A foreign container of that name is a clash.
    fn present(&self, set: &'s CompiledSet, piece: &Piece, list: List) -> Result<Option<Reason>, Clash> {
        if let Some(owner) = self.carrying.iter().find(|other| other.pieces().any(|theirs| theirs.name == piece.name)) {
            return Err(Clash::between_sets(set, owner, &format!("container {:?}", piece.name)));
        }
        let Some((found_in, index, container)) = self.find(&piece.name) else { return Ok(None) };
        let by = self.carried.by(&set.name, &piece.name, list).filter(|_| found_in == list);
        match by {
            Some(_) if !set.may_opt_out && !is_ours(piece, container) => {
                Err(Clash::forged(set, piece, container, found_in, index))
            }
            Some(reason) => Ok(Some(reason)),
            None => match self.carried.other_owner(&set.name, &piece.name) {
                Some(owner) => Err(Clash::with_carried_set(set, owner, &format!("container {:?}", piece.name))),
                None => Err(Clash::container(set, piece, container, found_in, index)),
            },
        }
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

    fn has_volume(&self, set: &'s CompiledSet, volume: &VolumePiece) -> Result<bool, Clash> {
        for owner in &self.carrying {
            if let Some(theirs) = owner.volumes.iter().find(|theirs| theirs.name == volume.name) {
                return if theirs.canonical == volume.canonical {
                    Ok(true)
                } else {
                    Err(Clash::between_sets(set, owner, &format!("volume {:?} with another source", volume.name)))
                };
            }
        }
        let volumes: &[&RawValue] = self.pod.spec.volumes.as_deref().unwrap_or_default();
        let Some((index, found)) = volumes.iter().enumerate().find(|(_, raw)| name_of(raw).as_str() == volume.name)
        else {
            return Ok(false);
        };
        let same = serde_json::from_str::<RawObject>(found.get())
            .is_ok_and(|found| canonical_volume(&found) == volume.canonical);
        if same { Ok(true) } else { Err(Clash::volume(set, volume, found, index)) }
    }

    fn has_secret(&self, name: &str) -> bool {
        let secrets = self.pod.spec.image_pull_secrets.as_deref().unwrap_or_default();
        secrets.iter().any(|secret| secret.name.as_str() == name)
            || self.added.secrets.iter().any(|secret| secret.name == name)
    }

    fn check_ports(&self, set: &'s CompiledSet, missing: &mut Missing<'s>) -> Result<(), Clash> {
        let mut warnings = Vec::new();
        for piece in missing.containers() {
            for port in &piece.needs.ports {
                self.check_port(set, piece, port, &mut warnings)?;
            }
        }
        missing.warnings = warnings;
        Ok(())
    }

    fn check_port(
        &self,
        set: &'s CompiledSet,
        piece: &Piece,
        port: &PortNeed,
        warnings: &mut Vec<String>,
    ) -> Result<(), Clash> {
        let host_network = self.pod.spec.host_network;
        let on_host = port.on_host(host_network);
        for owner in &self.carrying {
            for (theirs, other) in owner.pieces().flat_map(|theirs| theirs.needs.ports.iter().map(move |p| (theirs, p)))
            {
                if on_host && other.on_host(host_network) && port.takes(other) {
                    return Err(Clash::between_sets(
                        set,
                        owner,
                        &format!("host port {}", port.described(host_network)),
                    ));
                }
                if port.shares(other) {
                    warnings.push(shared_port(set, piece, port.container_port, &theirs.name));
                }
            }
        }
        for (index, container) in self.pod.spec.containers().iter().enumerate() {
            if self.carrying.iter().any(|owner| owner.pieces().any(|theirs| theirs.name == *container.name)) {
                continue;
            }
            for other in container.ports.iter().map(PortNeed::from) {
                if on_host && other.on_host(host_network) && port.takes(&other) {
                    return Err(Clash::port(set, piece, port, host_network, container, index));
                }
                if port.shares(&other) {
                    warnings.push(shared_port(set, piece, port.container_port, &container.name));
                }
            }
        }
        Ok(())
    }

    /// Sentences that the user should see about what was added.
    pub fn warnings(&self) -> &[String] {
        &self.added.warnings
    }
}

fn shared_port(set: &CompiledSet, piece: &Piece, port: i64, other: &str) -> String {
    format!(
        "{}: container {:?} of SidecarSet {:?} and container {other:?} both name port {port}; \
         only one of them can listen on it",
        Reason::PortShared,
        piece.name,
        set.name
    )
}

/// Whether a container that the annotation calls ours is what the set injects, in all that decides what runs.
fn is_ours(piece: &Piece, container: &Container<'_>) -> bool {
    let found = [container.command, container.args, container.security_context];
    piece.image == *container.image
        && piece.identity.iter().zip(found).all(|(ours, found)| {
            let found: Option<serde_json::Value> = found.and_then(|raw| serde_json::from_str(raw.get()).ok());
            ours.as_ref() == found.as_ref().filter(|value| !value.is_null())
        })
}

/// The names of the sets that the annotation `outrider.dev/skip` of a pod names.
pub(crate) fn opted_out(annotation: Option<&str>, set: &str) -> bool {
    annotation.is_some_and(|value| value.trim() == "true" || value.split(',').any(|name| name.trim() == set))
}
