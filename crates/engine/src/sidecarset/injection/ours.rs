//! What sets have brought so far, found by name.

use std::collections::{BTreeMap, BTreeSet};

use super::{Missing, app, legality, ports};
use crate::pod::view::Spec;
use crate::sidecarset::compiled::{CompiledSet, VolumePiece};

/// What the sets that the pod carries by now hold: a later set may not claim it.
#[derive(Debug, Default)]
pub(super) struct Ours<'s> {
    /// Volumes of these sets that the pod loses when it is moved to another node.
    pub(super) empty_dirs: Vec<&'s str>,
    /// Containers, and whose they are.
    pub(super) containers: BTreeMap<&'s str, &'s CompiledSet>,
    /// Of these, the ones that run at the same time as the pod's own.
    pub(super) running: BTreeMap<&'s str, &'s CompiledSet>,
    /// Ports of running containers: the set's name and the container's.
    pub(super) ports: ports::Table<'s, (&'s str, &'s str)>,
    /// Volumes that were added.
    pub(super) volumes: BTreeMap<&'s str, (&'s VolumePiece, &'s CompiledSet)>,
    /// Pull secrets that were added.
    pub(super) secrets: BTreeSet<&'s str>,
    /// Claims of the volumes that were added.
    pub(super) volume_claims: legality::VolumeClaims<'s>,
    /// Containers that were added.
    pub(super) host_processes: legality::HostProcesses,
    /// Variables of the pod's own containers that sets overwrite.
    pub(super) overwritten: app::Overwritten<'s>,
    /// With what was added, the pod is no longer Guaranteed.
    pub(super) spoils_guaranteed: bool,
    /// What the containers that were added request.
    pub(super) resources: legality::AddedResources<'s>,
}

impl<'s> Ours<'s> {
    /// Takes note of a set that the pod carries now, and of what it lacked of it.
    pub(super) fn add(&mut self, set: &'s CompiledSet, missing: &Missing<'s>, pod: &Spec<'_>) {
        for piece in set.pieces() {
            self.containers.entry(&piece.name).or_insert(set);
        }
        for piece in set.running() {
            self.running.entry(&piece.name).or_insert(set);
            for port in &piece.needs.ports {
                self.ports.insert(port.view(), (set.name.as_str(), piece.name.as_str()), pod.host_network, true);
            }
        }
        let empty_dirs = set.volumes.iter().filter(|volume| volume.is_empty_dir);
        self.empty_dirs.extend(empty_dirs.map(|volume| volume.name.as_str()));
        for volume in &missing.volumes {
            self.volumes.entry(&volume.name).or_insert((volume, set));
            self.volume_claims.add_piece(volume);
        }
        self.secrets.extend(missing.secrets.iter().map(|secret| secret.name.as_str()));
        missing.containers().for_each(|piece| self.host_processes.add(piece.needs.host_process));
        if pod.resources.is_some() {
            self.resources.add(missing);
        }
    }
}
