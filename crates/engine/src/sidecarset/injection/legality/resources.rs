//! Requests and limits of the pod as a whole, which those of its containers must fit in
//! (`validatePodResourceConsistency` in `k8s.io/kubernetes/pkg/apis/core/validation`).
//!
//! Only the resources that a set asks for are summed up: with those of others the pod is as legal as it was without the set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use admission::Text;
use admission::format::Quantity;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::sidecarset::compiled::{CompiledSet, Piece};
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::legality::IllegalResult;
use crate::sidecarset::injection::{Injection, Missing};

pub(in crate::sidecarset::injection) type BorrowedAmounts<'s> = BTreeMap<&'s str, Quantity>;

pub(super) fn check(injection: &Injection<'_, '_>, missing: &Missing<'_>) -> Result<(), IllegalResult> {
    let theirs = injection.theirs.resources.get_or_init(|| PodResources::read(injection));
    let Some(theirs) = theirs else { return Ok(()) };
    // Init containers may have a higher limit than the pod.
    for piece in missing.before.iter().chain(&missing.after) {
        check_limits(piece, &theirs.limits)?;
    }
    let mut new = AddedResources::default();
    new.add(missing);
    let names: BTreeSet<&str> = missing.containers().flat_map(|piece| piece.needs.requests.names()).collect();
    for name in names {
        let sum = sum(name, &injection.ours.resources, &new, theirs);
        match (theirs.requests.get(name), theirs.limits.get(name)) {
            (Some(whole), _) if sum > *whole => return Err(too_much("requests", name, &sum, whole)),
            // What the pod leaves out the API server fills in from its containers (`defaultPodRequests`). Huge pages, which it
            // takes from the limit, come out the same: containers request as much of them as they are limited to.
            (None, Some(whole)) if sum > *whole => return Err(too_much("limits", name, &sum, whole)),
            _ => {}
        }
    }
    Ok(())
}

fn check_limits(piece: &Piece, limits: &BorrowedAmounts<'_>) -> Result<(), IllegalResult> {
    let limit = |name: &str| limits.get(name);
    match piece.needs.limits.iter().find_map(|(name, own)| Some((name, own, limit(name).filter(|whole| own > whole)?)))
    {
        Some((name, own, whole)) => Err(IllegalResult::new(
            format!("spec.resources.limits[{name}]"),
            format!(
                "container {:?} has a limit of {own} {name}, above the pod's own limit of {}",
                piece.name,
                shortened(&whole.to_string())
            ),
        )),
        None => Ok(()),
    }
}

fn too_much(map: &str, name: &str, sum: &Quantity, whole: &Quantity) -> IllegalResult {
    let (sum, whole) = (sum.to_string(), whole.to_string());
    let (sum, whole) = (shortened(&sum), shortened(&whole));
    IllegalResult::new(
        format!("spec.resources.{map}[{name}]"),
        format!("its containers would request {sum} {name} together, and the pod as a whole has {map} of {whole}"),
    )
}

/// What all containers together request of one resource, as `AggregateContainerRequests` in `k8s.io/component-helpers` counts:
/// containers and native sidecars add up; a plain init container runs alone beside the native sidecars in front of it.
fn sum(name: &str, added: &AddedResources<'_>, new: &AddedResources<'_>, theirs: &PodResources<'_>) -> Quantity {
    let mut total = Quantity::ZERO;
    for running in [&added.running, &new.running, &theirs.running] {
        running.get(name).into_iter().for_each(|amount| total.add(amount));
    }
    let (mut sidecars, mut peak) = (Quantity::ZERO, Quantity::ZERO);
    for row in [&added.init_before, &new.init_before, &theirs.inits, &added.init_after, &new.init_after] {
        if let Some(alone) = row.peak.get(name) {
            let mut beside = sidecars.clone();
            beside.add(alone);
            if beside > peak {
                peak = beside;
            }
        }
        if let Some(more) = row.sidecars.get(name) {
            sidecars.add(more);
            total.add(more);
        }
    }
    if peak > total { peak } else { total }
}

/// Init containers that follow each other: what their native sidecars request together, and the most that is requested at one time.
#[derive(Debug, Default)]
struct Row<'s> {
    sidecars: BorrowedAmounts<'s>,
    peak: BorrowedAmounts<'s>,
}

impl<'s> Row<'s> {
    fn push<'q>(&mut self, requests: impl Iterator<Item = (&'s str, &'q Quantity)>, is_sidecar: bool) {
        for (name, amount) in requests {
            let mut at_once = self.sidecars.get(name).cloned().unwrap_or(Quantity::ZERO);
            at_once.add(amount);
            if is_sidecar {
                self.sidecars.insert(name, at_once.clone());
            }
            if self.peak.get(name).is_none_or(|peak| at_once > *peak) {
                self.peak.insert(name, at_once);
            }
        }
    }
}

/// Requests of containers that sets bring.
#[derive(Debug, Default)]
pub(in crate::sidecarset::injection) struct AddedResources<'s> {
    init_before: Row<'s>,
    init_after: Row<'s>,
    running: BorrowedAmounts<'s>,
}

impl<'s> AddedResources<'s> {
    pub(in crate::sidecarset::injection) fn add(&mut self, missing: &Missing<'s>) {
        for (row, pieces) in
            [(&mut self.init_before, &missing.init_before), (&mut self.init_after, &missing.init_after)]
        {
            for piece in pieces {
                row.push(requests(piece), piece.needs.is_native_sidecar);
            }
        }
        for (name, amount) in missing.before.iter().chain(&missing.after).flat_map(|piece| requests(piece)) {
            self.running.entry(name).or_insert(Quantity::ZERO).add(amount);
        }
    }
}

fn requests(piece: &Piece) -> impl Iterator<Item = (&str, &Quantity)> {
    piece.needs.requests.iter()
}

/// What the pod has as a whole, and what its own containers request, of the resources that sets ask for.
#[derive(Debug)]
pub(in crate::sidecarset::injection) struct PodResources<'s> {
    requests: BorrowedAmounts<'s>,
    limits: BorrowedAmounts<'s>,
    inits: Row<'s>,
    running: BorrowedAmounts<'s>,
}

impl<'s> PodResources<'s> {
    /// Nothing where the pod says nothing of them for itself.
    fn read(injection: &Injection<'_, 's>) -> Option<Self> {
        let raw = injection.pod.spec.resources?;
        let wanted = wanted(&injection.theirs.selecting);
        let (requests, limits) = amounts(raw, &wanted);
        if requests.is_empty() && limits.is_empty() {
            return None;
        }
        let spec = &injection.pod.spec;
        let mut resources = Self { requests, limits, inits: Row::default(), running: BorrowedAmounts::new() };
        for container in spec.init_containers() {
            let requests = container.resources.map(|raw| requested(raw, &wanted)).unwrap_or_default();
            let requests = requests.iter().map(|(name, amount)| (*name, amount));
            resources.inits.push(requests, container.is_native_sidecar());
        }
        for (name, amount) in
            spec.containers().iter().filter_map(|it| it.resources).flat_map(|raw| requested(raw, &wanted))
        {
            resources.running.entry(name).or_insert(Quantity::ZERO).add(&amount);
        }
        Some(resources)
    }
}

fn wanted<'s>(sets: &[&'s CompiledSet]) -> BTreeSet<&'s str> {
    let needs = sets.iter().flat_map(|set| set.pieces()).map(|piece| &piece.needs);
    needs.flat_map(|needs| needs.requests.names().chain(needs.limits.names())).collect()
}

/// Requests; a missing one is the limit, as the API server defaults it.
fn requested<'s>(raw: &RawValue, wanted: &BTreeSet<&'s str>) -> BorrowedAmounts<'s> {
    let (requests, mut all) = amounts(raw, wanted);
    all.extend(requests);
    all
}

/// Requests and limits of the resources of these names.
pub(in crate::sidecarset::injection) fn amounts<'s>(
    raw: &RawValue,
    wanted: &BTreeSet<&'s str>,
) -> (BorrowedAmounts<'s>, BorrowedAmounts<'s>) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Resources<'a> {
        #[serde(borrow)]
        requests: Option<&'a RawValue>,
        #[serde(borrow)]
        limits: Option<&'a RawValue>,
    }
    let resources: Resources<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
    let read = |map: Option<&RawValue>| {
        let mut decoder = serde_json::Deserializer::from_str(map.map_or("{}", RawValue::get));
        Picked(wanted).deserialize(&mut decoder).unwrap_or_default()
    };
    (read(resources.requests), read(resources.limits))
}

/// The amounts of these names. What does not parse is left out: validation has said so.
struct Picked<'w, 's>(&'w BTreeSet<&'s str>);

impl<'de, 's> DeserializeSeed<'de> for Picked<'_, 's> {
    type Value = BorrowedAmounts<'s>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, 's> Visitor<'de> for Picked<'_, 's> {
    type Value = BorrowedAmounts<'s>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of quantities")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut amounts = BorrowedAmounts::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let Some(name) = self.0.get(key.as_str()) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if let Some(amount) = quantity(map.next_value::<&'de RawValue>()?.get()) {
                amounts.insert(name, amount);
            }
        }
        Ok(amounts)
    }
}

fn quantity(json: &str) -> Option<Quantity> {
    if json.starts_with('"') {
        serde_json::from_str::<Text<'_>>(json).ok()?.parse().ok()
    } else {
        serde_json::from_str::<serde_json::Number>(json).ok()?.to_string().parse().ok()
    }
}
