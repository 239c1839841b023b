//! Ephemeral containers that see into a container of a must.

use std::collections::{BTreeMap, BTreeSet};

use admission::bounded::first_chars;
use admission::review::null_as_default;
use admission::{Review, Text, Unserved};
use serde::Deserialize;

use super::forms::{Asked, Must, has};
use super::left_over::LeftOver;
use super::{Containers, Update};
use crate::pod::decoded::{Decoded, Limited};
use crate::pod::limits::{self, Exceeded, at_most_or_none, cut};
use crate::pod::validate::must;

/// The longest name that a container can have, in characters.
const NAME_MAX: usize = 63;

impl Update<'_, '_> {
    /// Ephemeral containers that are new and see into a container of a must.
    pub fn targeted(
        &self,
        musts: &[Must<'_>],
        containers: &Containers<'_>,
        left_over: &LeftOver<'_, '_, '_>,
    ) -> Result<Result<Vec<String>, Exceeded>, Unserved> {
        // Read apart: no other decision reads ephemeral containers.
        let Ok(review) = Review::<Decoded<WithEphemeral<'_>>>::parse_in_two_passes(self.request.body.as_bytes()) else {
            return Ok(Ok(vec!["the ephemeral containers of the pod cannot be read".to_owned()]));
        };
        let new = match review.request.object.as_ref().map(Decoded::whole).transpose() {
            Ok(new) => new,
            Err(exceeded) => return Ok(Err(exceeded)),
        };
        // What is missing of the old ones is judged as if it were new.
        let old = review.request.old_object.iter().flat_map(|old| old.even_if_cut().names());
        let old: BTreeSet<&str> = old.collect();
        let new = new.into_iter().flat_map(|pod| &pod.spec.ephemeral_containers);
        let new: Vec<&Ephemeral<'_>> = new.filter(|container| !old.contains(container.name.as_str())).collect();
        let targets: BTreeSet<&str> = new.iter().map(|container| container.target_container_name.as_str()).collect();
        let owners = self.owners(musts, &targets, containers)?;
        let targeted = new.into_iter().filter_map(|container| {
            let target = container.target_container_name.as_str();
            let of_form = owners.get_key_value(target).map(|(name, owner)| (*name, *owner));
            let (target, owner) = of_form.or_else(|| left_over.of(target))?;
            let name = first_chars(container.name.as_str(), NAME_MAX);
            let whose = must(owner.set);
            Some(format!("{whose}, and ephemeral container {name:?} may not target its container {target:?}"))
        });
        Ok(Ok(targeted.collect()))
    }

    /// The musts that bring the containers of these names. Of two with one name neither is evaded, so that either will do.
    fn owners<'a, 's>(
        &self,
        musts: &'a [Must<'s>],
        targets: &BTreeSet<&'a str>,
        containers: &'a Containers<'_>,
    ) -> Result<BTreeMap<&'a str, &'a Must<'s>>, Unserved> {
        let named = |must: &'a Must<'s>| has(must.set).map(move |name| (name, must));
        let mut owners: BTreeMap<&str, &Must<'_>> = musts.iter().flat_map(named).collect();
        let in_any_form = musts.iter().flat_map(|must| must.names(containers).map(move |name| (name, must)));
        let of_older: BTreeMap<&str, &Must<'_>> =
            in_any_form.filter(|(name, _)| targets.contains(name) && !owners.contains_key(name)).collect();
        if of_older.is_empty() {
            return Ok(owners);
        }
        // In a pod that carries the current form it is the pod's own.
        let whole = Asked { is_whole: true, is_changed: true, ..Asked::default() };
        let asked = of_older.values().map(|must| (must.name(), whole)).collect();
        let faults = self.faults(self.new, self.all.clone(), &asked)?;
        owners.extend(of_older.into_iter().filter(|(_, must)| !matches!(faults.get(must.name()), Some(None))));
        Ok(owners)
    }
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", default)]
struct WithEphemeral<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: EphemeralSpec<'a>,
}

impl Limited for WithEphemeral<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        let length = self.spec.ephemeral_containers.len();
        cut("spec.ephemeralContainers", length, limits::CONTAINERS, "containers")
    }
}

impl WithEphemeral<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.spec.ephemeral_containers.iter().map(|container| container.name.as_str())
    }
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct EphemeralSpec<'a> {
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::CONTAINERS }>")]
    ephemeral_containers: Vec<Ephemeral<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Ephemeral<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    target_container_name: Text<'a>,
}

admission::only_objects!(WithEphemeral<'a>, EphemeralSpec<'a>, Ephemeral<'a>);
