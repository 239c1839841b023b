//! What two sets for the same pods may clash in.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::sidecarset::app_containers::overwritten;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::hot_upgrade::WORKING_ANNOTATION;
use crate::sidecarset::metadata::PatchPolicy;

/// In place of a name, which would take its own block of memory in each of thousands of sets.
pub(super) fn digest(name: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The names of the containers and volumes of a set, of the variables that it overwrites, and the keys of the annotations that it changes.
pub(super) fn parts(set: &CompiledSet) -> impl Iterator<Item = &str> {
    let containers = set.pieces().map(|piece| piece.name.as_str());
    let volumes = set.volumes.iter().map(|volume| volume.name.as_str());
    let unused = set.unused_names.iter().map(|name| &**name);
    let keys = set.metadata.iter().filter(|piece| piece.policy != PatchPolicy::Retain).map(|piece| piece.key.as_str());
    let overwritten = overwritten(&set.app_containers).map(|variable| variable.name.as_str());
    containers.chain(volumes).chain(unused).chain(overwritten).chain(keys.filter(|key| *key != WORKING_ANNOTATION))
}

/// The ports of the node that the containers of a set take, each once.
pub(super) fn host_ports(set: &CompiledSet) -> BTreeSet<i64> {
    let ports = set.running().flat_map(|piece| &piece.needs.ports);
    ports.map(|port| port.host_port).filter(|port| *port != 0).collect()
}
