//! Host ports as the API server counts them: same protocol, address and number. Ports that only meet, such as on all
//! addresses and on one of them, are a clash of ours and looked for elsewhere.

use std::collections::HashSet;

use crate::sidecarset::compiled::Piece;
use crate::sidecarset::injection::legality::Fault;
use crate::sidecarset::injection::{Injection, Missing};
use crate::sidecarset::needs::PortNeed;

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    let spec = &injection.pod.spec;
    let host_network = spec.host_network;
    if missing.containers().all(|piece| piece.needs.ports.is_empty()) {
        return Ok(());
    }
    let added = &injection.added;
    let mut taken: HashSet<(String, String, i64)> = HashSet::new();
    let key = |port: PortNeed| {
        let number = port.effective_host_port(host_network);
        (number != 0).then_some((port.protocol, port.host_ip, number))
    };
    let there = spec.containers().iter().flat_map(|container| container.ports.iter().map(PortNeed::from));
    taken.extend(there.filter_map(key));
    taken.extend(added.before.iter().chain(&added.after).flat_map(|piece| piece.needs.ports.clone()).filter_map(key));
    for piece in missing.before.iter().chain(&missing.after) {
        if host_network {
            check_mapping(piece)?;
        }
        check_unique(piece, host_network, &mut taken)?;
    }
    // Init containers run one after another, so the API server judges each alone.
    for piece in missing.init_before.iter().chain(&missing.init_after) {
        check_unique(piece, host_network, &mut HashSet::new())?;
    }
    Ok(())
}

/// `validatePodHostNetworkDeps`; it looks at no init containers.
fn check_mapping(piece: &Piece) -> Result<(), Fault> {
    match piece.needs.ports.iter().find(|port| port.host_port != 0 && port.host_port != port.container_port) {
        Some(port) => Err(Fault::new(
            "spec.hostNetwork",
            format!(
                "container {:?} maps host port {} to port {}, and with the node's network both must be equal",
                piece.name, port.host_port, port.container_port
            ),
        )),
        None => Ok(()),
    }
}

/// `checkHostPortConflicts`.
fn check_unique(piece: &Piece, host_network: bool, taken: &mut HashSet<(String, String, i64)>) -> Result<(), Fault> {
    for port in &piece.needs.ports {
        let number = port.effective_host_port(host_network);
        if number != 0 && !taken.insert((port.protocol.clone(), port.host_ip.clone(), number)) {
            let text = format!(
                "container {:?} takes host port {}, which is taken already",
                piece.name,
                port.described(host_network)
            );
            return Err(Fault::new(if host_network { "spec.hostNetwork" } else { "spec.containers" }, text));
        }
    }
    Ok(())
}
