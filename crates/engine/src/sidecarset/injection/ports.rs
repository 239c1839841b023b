//! Ports of added containers against those of the pod and of other sets.

use std::collections::{BTreeMap, BTreeSet};

use crate::pod::view::Container;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::{Clash, Injection, List, Missing};
use crate::sidecarset::needs::PortView;

/// Warnings about shared ports in one review: there may be as many as the pod has ports.
const SHARED_TOLD: usize = 16;

type Number<'a> = (i64, &'a str);

/// Ports by number and protocol, and who has them.
#[derive(Debug)]
pub(super) struct Table<'a, H> {
    on_host: BTreeMap<Number<'a>, OnHost<'a, H>>,
    in_pod: BTreeMap<Number<'a>, Vec<H>>,
    entries: usize,
}

/// Who has a port of the node, in the order of the entries: the first on any address, on all addresses, and on each.
#[derive(Debug)]
struct OnHost<'a, H> {
    first: (usize, H),
    everywhere: Option<(usize, H)>,
    at: BTreeMap<&'a str, (usize, H)>,
}

impl<H> Default for Table<'_, H> {
    fn default() -> Self {
        Self { on_host: BTreeMap::new(), in_pod: BTreeMap::new(), entries: 0 }
    }
}

impl<'a, H: Copy> Table<'a, H> {
    /// Adds a port; `shares` says whether the holder is to be found by the port in the pod's network too.
    pub(super) fn insert(&mut self, port: PortView<'a>, holder: H, host_network: bool, shares: bool) {
        let entry = (self.entries, holder);
        self.entries += 1;
        if port.on_host(host_network) {
            let on_host = self.on_host.entry(port.on_node());
            let on_host = on_host.or_insert_with(|| OnHost { first: entry, everywhere: None, at: BTreeMap::new() });
            if port.is_everywhere() {
                on_host.everywhere.get_or_insert(entry);
            }
            on_host.at.entry(port.host_ip).or_insert(entry);
        }
        if shares {
            self.in_pod.entry(port.in_pod()).or_default().push(holder);
        }
    }

    /// The first holder of a host port that cannot be had together with this one.
    fn taker(&self, port: PortView<'_>, host_network: bool) -> Option<H> {
        if !port.on_host(host_network) {
            return None;
        }
        let on_host = self.on_host.get(&port.on_node())?;
        if port.is_everywhere() {
            return Some(on_host.first.1);
        }
        let same = on_host.at.get(port.host_ip);
        let first = on_host.everywhere.iter().chain(same).min_by_key(|(entry, _)| *entry);
        first.map(|(_, holder)| *holder)
    }

    fn sharing<'t>(&'t self, port: PortView<'t>) -> &'t [H] {
        self.in_pod.get(&port.in_pod()).map(Vec::as_slice).unwrap_or_default()
    }
}

impl<'p, 's> Injection<'p, 's> {
    /// Finds host ports that cannot both be had, and returns warnings about ports that two containers name.
    ///
    /// A plain init container has ended when the others start: its ports conflict with none.
    pub(super) fn check_ports(&self, set: &'s CompiledSet, missing: &Missing<'s>) -> Result<Vec<String>, Clash> {
        let mut warnings = Warnings { told: Vec::new(), before: self.added.warnings.len() };
        if missing.containers().all(|piece| piece.needs.ports.is_empty()) {
            return Ok(warnings.told);
        }
        self.check_own_ports(set, missing)?;
        let own: BTreeSet<&str> = set.running().map(|piece| piece.name.as_str()).collect();
        for piece in missing.running() {
            for port in &piece.needs.ports {
                self.check_against_sets(set, piece, port.view(), &mut warnings)?;
                self.check_against_pod(set, piece, port.view(), &own, &mut warnings)?;
            }
        }
        Ok(warnings.told)
    }

    /// With the node's network every container port takes a port of the node, so that a set that is legal elsewhere may not be.
    fn check_own_ports(&self, set: &CompiledSet, missing: &Missing<'_>) -> Result<(), Clash> {
        let inits = missing.init_before.iter().chain(&missing.init_after);
        let plain_inits = inits.filter(|piece| !piece.needs.is_native_sidecar).copied();
        let running: Vec<&Piece> = missing.running().collect();
        for containers in std::iter::once(running).chain(plain_inits.map(|piece| vec![piece])) {
            let mut taken = Table::default();
            for piece in containers {
                for port in piece.needs.ports.iter().map(|port| port.view()) {
                    if let Some(owner) = taken.taker(port, self.host_network()) {
                        return Err(Clash::own_port(set, owner, piece, &port.described(self.host_network())));
                    }
                    taken.insert(port, piece.name.as_str(), self.host_network(), false);
                }
            }
        }
        Ok(())
    }

    fn check_against_sets(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        port: PortView<'_>,
        warnings: &mut Warnings,
    ) -> Result<(), Clash> {
        let table = &self.ours.ports;
        if let Some((owner, _)) = table.taker(port, self.host_network()) {
            let what = format!("host port {}", port.described(self.host_network()));
            return Err(Clash::between_sets(set, owner, &what));
        }
        for (_, theirs) in table.sharing(port) {
            if !warnings.push(|| shared(set, piece, port, theirs)) {
                break;
            }
        }
        Ok(())
    }

    fn check_against_pod(
        &self,
        set: &CompiledSet,
        piece: &Piece,
        port: PortView<'_>,
        own: &BTreeSet<&str>,
        warnings: &mut Warnings,
    ) -> Result<(), Clash> {
        let table = self.theirs.ports.get_or_init(|| self.ports_of_pod());
        if let Some((list, index)) = table.taker(port, self.host_network())
            && let Some(container) = self.container_at(list, index)
        {
            let what = format!("host port {}", port.described(self.host_network()));
            // Of an older revision it may have other ports than the set has now.
            let carrying = self.ours.running.get(container.name.as_str()).map(|owner| owner.name.as_str());
            return Err(match carrying.or_else(|| self.owner_in_pod(set, list, container)) {
                Some(owner) => Clash::between_sets(set, owner, &what),
                None => Clash::port(set, piece, &what, container, list, index),
            });
        }
        for (list, index) in table.sharing(port) {
            let Some(container) = self.container_at(*list, *index) else { continue };
            let name = container.name.as_str();
            let is_of_sets = self.ours.running.contains_key(name) || own.contains(name);
            if !is_of_sets && !warnings.push(|| shared(set, piece, port, name)) {
                break;
            }
        }
        Ok(())
    }

    /// The pod's ports of those numbers that the sets have too.
    fn ports_of_pod(&self) -> Table<'p, (List, usize)> {
        let pieces = self.theirs.selecting.iter().flat_map(|set| set.running());
        let ports = pieces.flat_map(|piece| &piece.needs.ports).map(|port| port.view());
        let wanted: BTreeSet<i64> = ports.flat_map(|port| [port.in_pod().0, port.on_node().0]).collect();
        let mut table = Table::default();
        for (list, index, container) in self.running_in_pod() {
            // Only the first of a name counts, which it can have but once.
            let mut is_first = None;
            for port in container.ports().iter().map(PortView::from) {
                if wanted.contains(&port.in_pod().0) || wanted.contains(&port.on_node().0) {
                    let is_first = *is_first.get_or_insert_with(|| {
                        self.find(&container.name).is_some_and(|(found, at, _)| found == list && at == index)
                    });
                    table.insert(port, (list, index), self.host_network(), is_first);
                }
            }
        }
        table
    }

    const fn host_network(&self) -> bool {
        self.pod.spec.host_network
    }

    fn container_at(&self, list: List, index: usize) -> Option<&'p Container<'p>> {
        let spec = &self.pod.spec;
        match list {
            List::InitContainers => spec.init_containers().get(index),
            List::Containers => spec.containers().get(index),
        }
    }

    fn running_in_pod(&self) -> impl Iterator<Item = (List, usize, &'p Container<'p>)> + use<'p, 's> {
        let spec = &self.pod.spec;
        let sidecars = spec.init_containers().iter().enumerate().filter(|(_, container)| container.is_native_sidecar());
        let sidecars = sidecars.map(|(index, container)| (List::InitContainers, index, container));
        let containers = spec.containers().iter().enumerate();
        sidecars.chain(containers.map(|(index, container)| (List::Containers, index, container)))
    }
}

/// Warnings of one set, as many as those of earlier sets leave room for.
struct Warnings {
    told: Vec<String>,
    before: usize,
}

impl Warnings {
    /// Adds a warning, unless it repeats the last one: a port may be listed for several protocols. Whether there may be more.
    fn push(&mut self, warning: impl FnOnce() -> String) -> bool {
        let room = SHARED_TOLD.checked_sub(self.before + self.told.len());
        let warning = match room {
            None => return false,
            Some(0) => format!("{}: further containers name the same ports; not all are listed", reasons::PORT_SHARED),
            Some(_) => warning(),
        };
        if self.told.last() != Some(&warning) {
            self.told.push(warning);
        }
        room != Some(0)
    }
}

fn shared(set: &CompiledSet, piece: &Piece, port: PortView<'_>, other: &str) -> String {
    format!(
        "{}: container {:?} of SidecarSet {:?} and container {other:?} both name port {}; \
         only one of them can listen on it",
        reasons::PORT_SHARED,
        piece.name,
        set.name,
        port.container_port
    )
}
