//! Ports of added containers against those of the pod and of other sets.

use crate::pod::view::Container;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::{Clash, Injection, List, Missing};
use crate::sidecarset::needs::PortNeed;

impl<'s> Injection<'_, 's> {
    /// Finds host ports that cannot both be had, and returns warnings about ports that two containers name.
    ///
    /// A plain init container has ended when the others start: its ports are in nobody's way.
    pub(super) fn check_ports(&self, set: &'s CompiledSet, missing: &Missing<'s>) -> Result<Vec<String>, Clash> {
        self.check_own_ports(set, missing)?;
        let mut warnings = Vec::new();
        for piece in missing.running() {
            for port in &piece.needs.ports {
                self.check_against_sets(set, piece, port, &mut warnings)?;
                self.check_against_pod(set, piece, port, &mut warnings)?;
            }
        }
        // A port may be listed for several protocols.
        warnings.dedup();
        Ok(warnings)
    }

    /// With the node's network every container port takes a port of the node, so that a set that is legal elsewhere may not be.
    fn check_own_ports(&self, set: &CompiledSet, missing: &Missing<'_>) -> Result<(), Clash> {
        let host_network = self.pod.spec.host_network;
        let plain_inits = missing.containers().filter(|piece| !missing.running().any(|it| it.name == piece.name));
        let running: Vec<&Piece> = missing.running().collect();
        for containers in std::iter::once(running).chain(plain_inits.map(|piece| vec![piece])) {
            let mut taken: Vec<(&str, &PortNeed)> = Vec::new();
            for piece in containers {
                for port in &piece.needs.ports {
                    if let Some((owner, _)) = taken.iter().find(|(_, other)| clash_on_host(port, other, host_network)) {
                        return Err(Clash::own_port(set, owner, piece, &port.described(host_network)));
                    }
                    taken.push((&piece.name, port));
                }
            }
        }
        Ok(())
    }

    fn check_against_sets(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        port: &PortNeed,
        warnings: &mut Vec<String>,
    ) -> Result<(), Clash> {
        let host_network = self.pod.spec.host_network;
        for owner in &self.carrying {
            for (theirs, other) in owner.running().flat_map(|it| it.needs.ports.iter().map(move |port| (it, port))) {
                if clash_on_host(port, other, host_network) {
                    let what = format!("host port {}", port.described(host_network));
                    return Err(Clash::between_sets(set, &owner.name, &what));
                }
                if port.shares(other) {
                    warnings.push(shared(set, piece, port, &theirs.name));
                }
            }
        }
        Ok(())
    }

    fn check_against_pod(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        port: &PortNeed,
        warnings: &mut Vec<String>,
    ) -> Result<(), Clash> {
        let host_network = self.pod.spec.host_network;
        for (list, index, container) in self.running_in_pod() {
            let name = container.name.as_str();
            // Of an older revision it may have other ports than the set has now.
            let carrying = self.carrying.iter().find(|owner| owner.running().any(|it| it.name == name));
            for other in container.ports.iter().map(PortNeed::from) {
                if clash_on_host(port, &other, host_network) {
                    let what = format!("host port {}", port.described(host_network));
                    let carrying = carrying.map(|owner| owner.name.as_str());
                    return Err(match carrying.or_else(|| self.owner_in_pod(set, container)) {
                        Some(owner) => Clash::between_sets(set, owner, &what),
                        None => Clash::port(set, piece, &what, container, list, index),
                    });
                }
                if port.shares(&other) && carrying.is_none() && !set.running().any(|ours| ours.name == name) {
                    warnings.push(shared(set, piece, port, name));
                }
            }
        }
        Ok(())
    }

    fn running_in_pod(&self) -> impl Iterator<Item = (List, usize, &Container<'_>)> {
        let spec = &self.pod.spec;
        let sidecars = spec.init_containers().iter().enumerate().filter(|(_, container)| container.is_native_sidecar());
        let sidecars = sidecars.map(|(index, container)| (List::InitContainers, index, container));
        let containers = spec.containers().iter().enumerate();
        sidecars.chain(containers.map(|(index, container)| (List::Containers, index, container)))
    }
}

fn clash_on_host(port: &PortNeed, other: &PortNeed, host_network: bool) -> bool {
    port.on_host(host_network) && other.on_host(host_network) && port.takes(other)
}

fn shared(set: &CompiledSet, piece: &Piece, port: &PortNeed, other: &str) -> String {
    format!(
        "{}: container {:?} of SidecarSet {:?} and container {other:?} both name port {}; \
         only one of them can listen on it",
        reasons::PORT_SHARED,
        piece.name,
        set.name,
        port.container_port
    )
}
