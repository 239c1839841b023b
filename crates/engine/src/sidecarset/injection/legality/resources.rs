//! Requests and limits of the pod as a whole, which those of its containers must fit in
//! (`validatePodResourceConsistency` in `k8s.io/kubernetes/pkg/apis/core/validation`).

use std::collections::BTreeMap;

use admission::format::Quantity;
use serde_json::Value;

use crate::pod::view::Container;
use crate::sidecarset::compiled::Piece;
use crate::sidecarset::injection::legality::Fault;
use crate::sidecarset::injection::{Injection, Missing};
use crate::sidecarset::needs::{Needs, quantities};

type Amounts = BTreeMap<String, Quantity>;

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), Fault> {
    let Some(raw) = injection.pod.spec.resources else { return Ok(()) };
    let pod: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let (requests, limits) = (quantities(pod.get("requests")), quantities(pod.get("limits")));
    if missing.containers().next().is_none() || (requests.is_empty() && limits.is_empty()) {
        return Ok(());
    }
    // Init containers may have a higher limit than the pod.
    for piece in missing.before.iter().chain(&missing.after) {
        check_limits(piece, &limits)?;
    }
    for (name, sum) in &Containers::new(injection, missing).requests() {
        match (requests.get(name), limits.get(name)) {
            (Some(whole), _) if sum > whole => return Err(too_much("requests", name, sum, whole)),
            // What the pod leaves out the API server fills in from its containers (`defaultPodRequests`). Huge pages, which it
            // takes from the limit, come out the same: containers request as much of them as they are limited to.
            (None, Some(whole)) if sum > whole => return Err(too_much("limits", name, sum, whole)),
            _ => {}
        }
    }
    Ok(())
}

fn check_limits(piece: &Piece, limits: &Amounts) -> Result<(), Fault> {
    let limit = |name: &String| limits.get(name);
    match piece.needs.limits.iter().find_map(|(name, own)| Some((name, own, limit(name).filter(|whole| own > whole)?)))
    {
        Some((name, own, whole)) => Err(Fault::new(
            format!("spec.resources.limits[{name}]"),
            format!("container {:?} has a limit of {own} {name}, above the pod's own limit of {whole}", piece.name),
        )),
        None => Ok(()),
    }
}

fn too_much(map: &str, name: &str, sum: &Quantity, whole: &Quantity) -> Fault {
    Fault::new(
        format!("spec.resources.{map}[{name}]"),
        format!("its containers would request {sum} {name} together, and the pod as a whole has {map} of {whole}"),
    )
}

/// All containers of the pod with the set in it, in the order they start.
struct Containers<'s> {
    theirs_init: Vec<Needs>,
    theirs: Vec<Needs>,
    init_before: Vec<&'s Piece>,
    init_after: Vec<&'s Piece>,
    running: Vec<&'s Piece>,
}

impl<'s> Containers<'s> {
    fn new(injection: &Injection<'_, 's>, missing: &Missing<'s>) -> Self {
        let (spec, added) = (&injection.pod.spec, &injection.added);
        let both = |one: &[&'s Piece], other: &[&'s Piece]| [one, other].concat();
        let mut running: Vec<&'s Piece> = both(&added.before, &missing.before);
        running.extend(both(&added.after, &missing.after));
        Self {
            theirs_init: spec.init_containers().iter().map(needs_of).collect(),
            theirs: spec.containers().iter().map(needs_of).collect(),
            init_before: both(&added.init_before, &missing.init_before),
            init_after: both(&added.init_after, &missing.init_after),
            running,
        }
    }

    /// What all containers together request, as `AggregateContainerRequests` in `k8s.io/component-helpers` counts: containers
    /// and native sidecars add up; a plain init container runs alone beside the native sidecars in front of it.
    fn requests(&self) -> Amounts {
        let mut total = Amounts::new();
        let running = self.running.iter().map(|piece| &piece.needs).chain(&self.theirs);
        running.for_each(|needs| add(&mut total, &needs.requests));
        let before = self.init_before.iter().map(|piece| &piece.needs);
        let after = self.init_after.iter().map(|piece| &piece.needs);
        let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
        for needs in before.chain(&self.theirs_init).chain(after) {
            if needs.is_native_sidecar {
                add(&mut sidecars, &needs.requests);
                add(&mut total, &needs.requests);
                raise(&mut peak, &sidecars);
            } else {
                let mut alone = sidecars.clone();
                add(&mut alone, &needs.requests);
                raise(&mut peak, &alone);
            }
        }
        raise(&mut total, &peak);
        total
    }
}

fn needs_of(container: &Container<'_>) -> Needs {
    let resources: Value = container.resources.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let limits = quantities(resources.get("limits"));
    let mut requests = limits.clone();
    requests.extend(quantities(resources.get("requests")));
    Needs { requests, limits, is_native_sidecar: container.is_native_sidecar(), ..Needs::default() }
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).or_insert(Quantity::ZERO).add(amount);
    }
}

fn raise(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let place = total.entry(name.clone()).or_insert(Quantity::ZERO);
        if amount > place {
            *place = amount.clone();
        }
    }
}
