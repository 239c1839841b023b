//! What the pod's own containers request and are limited to, for `resourcesPolicy`.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use admission::format::Quantity;
use serde_json::value::RawValue;

use crate::pod::view::{Container, PodView};
use crate::sidecarset::api::RawObject;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::expression::{Nanos, Resource};
use crate::sidecarset::injection::clash::shortened;
use crate::sidecarset::injection::legality::amounts;
use crate::sidecarset::resources::{OwnDefaults, ResourcesPolicy, Totals, amount, set_amount};

/// Containers whose names are compared with a regular expression. No node runs a pod of so many.
const MAX_COMPARED: usize = 1000;

/// What the amounts of a set's container follow from.
#[derive(Debug, Clone)]
pub enum AmountsSource<'p> {
    /// The pod's own containers, which are to get these where they lack any.
    Computed(OwnDefaults),
    /// What a container of one of these sets had in the pod before it was changed: it was right then, and the pod's own containers may
    /// have been resized since. Of a container that has others now, the amounts are computed.
    Kept {
        /// The pod before it was changed.
        before: &'p PodView<'p>,
        /// The sets that it was to carry.
        sets: BTreeSet<&'p str>,
        /// Those of these for which the pod may be resized before it gets their images: a container of them that keeps its image is
        /// another with the amounts of the set alone.
        resized: BTreeSet<&'p str>,
    },
}

/// The pod's own containers, read once for all policies.
#[derive(Debug)]
pub(super) struct Targets<'p, 's> {
    pod: &'p PodView<'p>,
    selecting: Vec<&'s CompiledSet>,
    amounts: AmountsSource<'p>,
    own: OnceCell<Vec<OwnContainer<'p>>>,
    // By name, the containers of which the pod keeps the resources.
    kept: OnceCell<BTreeMap<&'p str, Resources<'p>>>,
    // By name, the containers of which the pod keeps the image.
    with_image: OnceCell<BTreeMap<&'p str, Resized<'p>>>,
    // By regular expression. Sets have few different ones.
    totals: RefCell<BTreeMap<(bool, String), Result<Totals, String>>>,
}

/// The resources of a container of the pod, as they are written; none where there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resources<'p>(pub Option<&'p RawValue>);

impl Resources<'_> {
    fn is_as(self, other: Self) -> bool {
        self.0.map(RawValue::get) == other.0.map(RawValue::get)
    }
}

/// A container that no set brings.
#[derive(Debug)]
struct OwnContainer<'p> {
    name: &'p str,
    amounts: Totals,
}

impl<'p, 's> Targets<'p, 's> {
    pub(super) const fn new(pod: &'p PodView<'p>, selecting: Vec<&'s CompiledSet>, amounts: AmountsSource<'p>) -> Self {
        Self {
            pod,
            selecting,
            amounts,
            own: OnceCell::new(),
            kept: OnceCell::new(),
            with_image: OnceCell::new(),
            totals: RefCell::new(BTreeMap::new()),
        }
    }

    /// Whether the pod is to carry a set that it was not to carry before it was changed: nothing that it had is the set's.
    pub(super) fn is_gained(&self, set: &str) -> bool {
        matches!(&self.amounts, AmountsSource::Kept { sets, .. } if !sets.contains(set))
    }

    /// The resources that the pod has in a container of a set, where it had them before it was changed.
    pub(super) fn kept(&self, set: &str, container: &str) -> Option<Resources<'p>> {
        let AmountsSource::Kept { before, sets, .. } = &self.amounts else { return None };
        let read = || {
            let before: BTreeMap<&str, Resources<'_>> = resources(before).collect();
            let is_kept =
                |(name, now): &(&str, Resources<'_>)| before.get(name).is_some_and(|before| before.is_as(*now));
            resources(self.pod).filter(is_kept).collect()
        };
        let kept = self.kept.get_or_init(read).get(container).copied();
        kept.filter(|_| sets.contains(set))
    }

    /// A container of a set for which the pod may be resized first, where it keeps another image than this one.
    pub(super) fn with_other_image(&self, set: &str, name: &str, image: &str) -> Option<Resized<'p>> {
        let AmountsSource::Kept { before, resized, .. } = &self.amounts else { return None };
        let read = || {
            let now: BTreeMap<&str, &'p Container<'p>> = all(self.pod).map(|it| (it.name.as_str(), it)).collect();
            let kept = all(before).filter_map(|before| {
                let now = now.get(before.name.as_str())?;
                let is_kept = now.image.as_str() == before.image.as_str();
                is_kept.then_some((before.name.as_str(), Resized { before, now }))
            });
            kept.collect()
        };
        let of_set = resized.contains(set).then(|| self.with_image.get_or_init(read))?;
        of_set.get(name).copied().filter(|found| found.before.image.as_str() != image)
    }

    /// What containers are to get that lack a request or limit.
    pub(super) fn defaults(&self) -> OwnDefaults {
        match &self.amounts {
            AmountsSource::Computed(defaults) => *defaults,
            AmountsSource::Kept { .. } => OwnDefaults::default(),
        }
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
    fn read(&self) -> Vec<OwnContainer<'p>> {
        let names: BTreeSet<&str> =
            self.selecting.iter().flat_map(|set| set.pieces()).map(|piece| piece.name.as_str()).collect();
        let spec = &self.pod.spec;
        let sidecars = spec.init_containers().iter().filter(|container| container.is_native_sidecar());
        let own = sidecars.chain(spec.containers()).filter(|container| !names.contains(container.name.as_str()));
        let defaults = self.defaults();
        own.map(|container| OwnContainer { name: &container.name, amounts: amounts_of(container, &defaults) }).collect()
    }
}

fn resources<'p>(pod: &'p PodView<'p>) -> impl Iterator<Item = (&'p str, Resources<'p>)> {
    all(pod).map(|container| (container.name.as_str(), Resources(container.resources)))
}

fn all<'p>(pod: &'p PodView<'p>) -> impl Iterator<Item = &'p Container<'p>> {
    pod.spec.containers().iter().chain(pod.spec.init_containers())
}

/// A container that was resized.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resized<'p> {
    before: &'p Container<'p>,
    now: &'p Container<'p>,
}

impl Resized<'_> {
    /// Gives a container of a set the image that the pod keeps, and what the set leaves open of requests and limits as it was; nothing where
    /// the pod has got amounts of what both leave open.
    pub(super) fn keep(self, container: &mut RawObject) {
        let names = Resource::ALL.map(Resource::name).into();
        let of = |container: &Container<'_>| {
            let (requests, limits) = container.resources.map(|raw| amounts(raw, &names)).unwrap_or_default();
            [("limits", limits), ("requests", requests)]
        };
        let mut kept = container.clone();
        for (list, amounts) in of(self.before) {
            for (name, before) in amounts {
                if amount(&kept, list, name).is_none() {
                    set_amount(&mut kept, list, name, before.to_string().into());
                }
            }
        }
        // A missing request is the limit.
        let is_known =
            |list: &str, name: &str| amount(&kept, list, name).or_else(|| amount(&kept, "limits", name)).is_some();
        if of(self.now).iter().all(|(list, amounts)| amounts.keys().all(|name| is_known(list, name))) {
            kept.insert("image".to_owned(), self.before.image.as_str().into());
            *container = kept;
        }
    }
}

/// Amounts as the API server stores them, with these defaults; a missing request is the limit.
fn amounts_of(container: &Container<'_>, defaults: &OwnDefaults) -> Totals {
    let names = Resource::ALL.map(Resource::name).into();
    let (requests, limits) = container.resources.map(|raw| amounts(raw, &names)).unwrap_or_default();
    let mut totals = Totals::default();
    let defaults = defaults.limits.into_iter().zip(defaults.requests);
    let both = totals.limits.iter_mut().zip(&mut totals.requests);
    for ((resource, (default_limit, default_request)), (limit, request)) in
        Resource::ALL.into_iter().zip(defaults).zip(both)
    {
        let of = |amounts: &BTreeMap<&str, Quantity>| amounts.get(resource.name()).map(|amount| resource.nanos(amount));
        let own = of(&limits);
        *limit = own.or(default_limit);
        *request = of(&requests).or(own).or(default_request).or(*limit).unwrap_or_default();
    }
    totals
}
