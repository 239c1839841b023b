//! What the pod's own containers request and are limited to, for `resourcesPolicy`.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use admission::format::Quantity;

use crate::pod::view::{Container, PodView};
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::expression::{Nanos, Resource, UNIT};
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::legality::amounts;
use crate::sidecarset::resources::{ResourcesPolicy, Totals};

/// Containers whose names are compared with a regular expression. No node runs a pod of so many.
const MAX_COMPARED: usize = 1000;
/// Nanos in a thousandth.
const MILLI: Nanos = UNIT / 1000;

/// The pod's own containers, read once for all policies.
#[derive(Debug)]
pub(super) struct Targets<'p, 's> {
    pod: &'p PodView<'p>,
    selecting: Vec<&'s CompiledSet>,
    own: OnceCell<Vec<Own<'p>>>,
    // By regular expression. Sets have few different ones.
    totals: RefCell<BTreeMap<(bool, String), Result<Totals, String>>>,
}

/// A container that no set brings.
#[derive(Debug)]
struct Own<'p> {
    name: &'p str,
    amounts: Totals,
}

impl<'p, 's> Targets<'p, 's> {
    pub(super) const fn new(pod: &'p PodView<'p>, selecting: Vec<&'s CompiledSet>) -> Self {
        Self { pod, selecting, own: OnceCell::new(), totals: RefCell::new(BTreeMap::new()) }
    }

    /// What the containers that the policy is about have together.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub(super) fn totals(&self, policy: &ResourcesPolicy) -> Result<Totals, String> {
        let key = (policy.is_max, policy.pattern.clone());
        let mut known = self.totals.borrow_mut();
        known.entry(key).or_insert_with(|| self.compute(policy)).clone()
    }

    fn compute(&self, policy: &ResourcesPolicy) -> Result<Totals, String> {
        let own = self.own.get_or_init(|| self.read());
        if own.len() > MAX_COMPARED && !policy.is_about_all() {
            return Err(format!("the pod has more than {MAX_COMPARED} containers"));
        }
        let mut targets = own.iter().filter(|own| policy.is_about(own.name)).map(|own| own.amounts);
        let Some(first) = targets.next() else {
            return Err(format!(
                "none of the pod's own containers has a name that matches {:?}",
                shortened(&policy.pattern)
            ));
        };
        let join = |one: Nanos, other: Nanos| if policy.is_max { one.max(other) } else { one.saturating_add(other) };
        Ok(targets.fold(first, |totals, target| Totals {
            limits: [0, 1].map(|at| {
                let limit = |totals: &Totals| totals.limits.get(at).copied().flatten();
                Some(join(limit(&totals)?, limit(&target)?))
            }),
            requests: [0, 1].map(|at| {
                let request = |totals: &Totals| totals.requests.get(at).copied().unwrap_or_default();
                join(request(&totals), request(&target))
            }),
        }))
    }

    /// Containers and native sidecars of the pod, but for those that have the name of a set's.
    fn read(&self) -> Vec<Own<'p>> {
        let names: BTreeSet<&str> =
            self.selecting.iter().flat_map(|set| set.pieces()).map(|piece| piece.name.as_str()).collect();
        let spec = &self.pod.spec;
        let sidecars = spec.init_containers().iter().filter(|container| container.is_native_sidecar());
        let own = sidecars.chain(spec.containers()).filter(|container| !names.contains(container.name.as_str()));
        own.map(|container| Own { name: &container.name, amounts: amounts_of(container) }).collect()
    }
}

/// Amounts as the API server stores them; a missing request is the limit.
fn amounts_of(container: &Container<'_>) -> Totals {
    let Some(raw) = container.resources else { return Totals::default() };
    let (requests, limits) = amounts(raw, &Resource::ALL.map(Resource::name).into());
    let nanos = |resource: Resource, amounts: &BTreeMap<&str, Quantity>| {
        let amount = amounts.get(resource.name())?;
        Some(match resource {
            Resource::Cpu => Nanos::from(amount.milli_value()) * MILLI,
            Resource::Memory => Nanos::from(amount.value()) * UNIT,
        })
    };
    let limits = Resource::ALL.map(|resource| nanos(resource, &limits));
    let mut requests = Resource::ALL.map(|resource| nanos(resource, &requests)).into_iter();
    let requests = limits.map(|limit| requests.next().flatten().or(limit).unwrap_or_default());
    Totals { limits, requests }
}
