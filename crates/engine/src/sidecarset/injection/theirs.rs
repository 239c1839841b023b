//! What the pod brings, found by name: each index is made once a review, and only when a set asks for it.

use std::cell::OnceCell;

use serde_json::value::RawValue;

use super::fit::Sources;
use super::{List, legality, ports};
use crate::pod::borrowed_map::BorrowedMap;
use crate::pod::positions::Positions;
use crate::pod::view::{Container, NameOnly, PodView};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::INJECTED_ANNOTATION;
use crate::sidecarset::sameness::Around;

/// What the pod brings.
#[derive(Debug)]
pub(super) struct Theirs<'p, 's> {
    pod: &'p PodView<'p>,
    // Its volumes among it.
    pub(super) around: Around<'p>,
    init_containers: Positions<'p>,
    containers: Positions<'p>,
    secrets: Positions<'p>,
    claims: Positions<'p>,
    pub(super) ports: OnceCell<ports::Table<'p, (List, usize)>>,
    pub(super) resources: OnceCell<Option<legality::PodResources<'s>>>,
    pub(super) volume_claims: OnceCell<legality::VolumeClaims<'p>>,
    pub(super) host_processes: OnceCell<legality::HostProcesses>,
    pub(super) annotation_bytes: OnceCell<usize>,
    pub(super) is_guaranteed: OnceCell<bool>,
    pub(super) sources: OnceCell<Sources<'p, 's>>,
    // Numbers and names that sets ask for; the pod's others are passed over.
    pub(super) selecting: Vec<&'s CompiledSet>,
}

impl<'p, 's> Theirs<'p, 's> {
    pub(super) fn new(pod: &'p PodView<'p>, selecting: Vec<&'s CompiledSet>) -> Self {
        Self {
            pod,
            around: Around::new(pod.spec.host_network, pod.spec.volumes.as_deref().unwrap_or_default()),
            init_containers: Positions::default(),
            containers: Positions::default(),
            secrets: Positions::default(),
            claims: Positions::default(),
            ports: OnceCell::new(),
            resources: OnceCell::new(),
            volume_claims: OnceCell::new(),
            host_processes: OnceCell::new(),
            annotation_bytes: OnceCell::new(),
            is_guaranteed: OnceCell::new(),
            sources: OnceCell::new(),
            selecting,
        }
    }

    /// The first container of that name, init containers first.
    pub(super) fn container(&self, name: &str) -> Option<(List, usize, &'p Container<'p>)> {
        let spec = &self.pod.spec;
        let inits = (List::InitContainers, &self.init_containers, spec.init_containers());
        let containers = (List::Containers, &self.containers, spec.containers());
        [inits, containers].into_iter().find_map(|(list, positions, all)| {
            let is = |container: &Container<'_>| container.name.as_str() == name;
            let index = positions.find(all, name, |container| container.name.as_str().into(), is)?;
            Some((list, index, all.get(index)?))
        })
    }

    /// The first volume of that name.
    pub(super) fn volume(&self, name: &str) -> Option<(usize, &'p RawValue)> {
        self.around.volumes.find(name)
    }

    /// Whether the pod has the pull secret.
    pub(super) fn has_secret(&self, name: &str) -> bool {
        let secrets = self.pod.spec.image_pull_secrets.as_deref().unwrap_or_default();
        has(&self.secrets, secrets, name)
    }

    /// Whether the pod has the resource claim.
    pub(super) fn has_claim(&self, name: &str) -> bool {
        has(&self.claims, &self.pod.spec.resource_claims, name)
    }

    /// Bytes of all annotations but the record of the sets.
    pub(super) fn annotation_bytes(&self) -> usize {
        *self.annotation_bytes.get_or_init(|| {
            let all = self.pod.metadata.annotations.iter().flat_map(BorrowedMap::iter);
            all.filter(|(key, _)| *key != INJECTED_ANNOTATION).map(|(key, value)| key.len() + value.len()).sum()
        })
    }
}

fn has<'p>(positions: &Positions<'p>, list: &'p [NameOnly<'p>], name: &str) -> bool {
    let is = |named: &NameOnly<'_>| named.name.as_str() == name;
    positions.find(list, name, |named| named.name.as_str().into(), is).is_some()
}
