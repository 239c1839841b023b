//! The variables that sets give to the pod's own containers, and where a container gets each.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fit::Own;
use super::super::patch::OPERATION;
use super::Change;
use crate::sidecarset::app_containers::{AppPiece, Variable};
use crate::sidecarset::compiled::CompiledSet;

/// The variables of entries, each name once, and whether it is overwritten. Of several with one name the first that is overwritten
/// counts: were the API server to ask again, it would be the one in the container.
pub(super) fn variables_of<'s>(pieces: &[&'s AppPiece]) -> Vec<(bool, &'s Variable)> {
    let all = || pieces.iter().flat_map(|piece| piece.env.iter().map(|variable| (piece.overwrites, variable)));
    if pieces.len() == 1 {
        return all().collect();
    }
    let mut first: BTreeMap<&str, (bool, usize)> = BTreeMap::new();
    for (at, (overwrites, variable)) in all().enumerate() {
        let known = first.entry(&variable.name).or_insert((overwrites, at));
        if overwrites && !known.0 {
            *known = (true, at);
        }
    }
    let counts = |(at, (_, variable)): &(usize, (bool, &Variable))| {
        first.get(variable.name.as_str()).is_some_and(|(_, first)| first == at)
    };
    all().enumerate().filter(counts).map(|(_, variable)| variable).collect()
}

/// A container of the pod, and what earlier sets give it.
#[derive(Clone, Copy)]
pub(super) struct Target<'a, 'p, 's> {
    pub own: &'a Own<'p>,
    pub earlier: Option<&'a Change<'s>>,
    /// Variables that several sets of the pod have.
    pub shared: &'a BTreeSet<&'s str>,
}

/// Where a container has a variable first; the set's own order counts where that is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Before everything else, in the set's order.
    Sooner,
    /// In front, by an earlier set.
    Earlier(i64),
    /// In front, behind those, in the set's order: it is added.
    Added,
    /// Among the container's own.
    Own(usize),
}

impl Target<'_, '_, '_> {
    fn place_of(&self, name: &str) -> Place {
        let earlier = self.earlier.and_then(|earlier| earlier.order_of.get(name)).map(|order| Place::Earlier(*order));
        let own = || self.own.places_of(name).next().map_or(Place::Added, |(at, _)| Place::Own(at));
        earlier.unwrap_or_else(own)
    }
}

/// Names of variables that several of the sets have.
pub fn shared_variables<'s>(sets: &[&'s CompiledSet]) -> BTreeSet<&'s str> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for set in sets {
        for variable in set.app_containers.iter().flat_map(|piece| &piece.env) {
            let owner = owners.entry(&variable.name).or_insert(&set.name);
            if *owner != set.name {
                shared.insert(variable.name.as_str());
            }
        }
    }
    shared
}

/// Names of variables that the set overwrites, and that the container has behind another variable of the set that refers to them: the
/// kubelet resolves a reference by what comes before it. The author of the pod chooses where the container has them.
fn needed_sooner<'s>(variables: &[(bool, &'s Variable)], target: Target<'_, '_, '_>) -> BTreeSet<&'s str> {
    let mut needed = BTreeSet::new();
    let movable =
        variables.iter().filter(|(overwrites, variable)| *overwrites && !target.shared.contains(&*variable.name));
    let mut movable: BTreeSet<&'s str> = movable.map(|(_, variable)| variable.name.as_str()).collect();
    if movable.is_empty() {
        return needed;
    }
    // From behind: what comes in front for another may refer to more. What is written behind a reference does not resolve it anywhere.
    for (overwrites, variable) in variables.iter().rev() {
        let name = variable.name.as_str();
        movable.remove(name);
        let place = if needed.contains(name) { Place::Sooner } else { target.place_of(name) };
        if matches!(place, Place::Earlier(_) | Place::Own(_)) && !overwrites {
            continue;
        }
        let named = variable.references().into_iter().filter_map(|name| movable.get(name));
        needed.extend(named.filter(|other| target.place_of(other) > place));
    }
    needed
}

/// What the container lacks of the variables; bytes that the pod takes more for it.
pub(super) fn add_variables<'s>(
    variables: &[(bool, &'s Variable)],
    target: Target<'_, '_, 's>,
    change: &mut Change<'s>,
) -> usize {
    let sooner = needed_sooner(variables, target);
    let own = target.own;
    let (mut bytes, mut added) = (0, 0_i64);
    let mut first = -i64::try_from(sooner.len()).unwrap_or(i64::MAX);
    for (overwrites, variable) in variables {
        let name = variable.name.as_str();
        let other = target.earlier.and_then(|earlier| earlier.variables.get(name));
        let is_there = other.is_some() || own.place_of(name).is_some();
        if is_there && !overwrites {
            continue;
        }
        let before = change.replaced.len() + change.instead.len();
        match other {
            Some(other) if other.agrees_with(variable) => {}
            // As within a set.
            Some(_) => change.instead.push(variable),
            None => {
                let differing = own.places_of(name).filter(|(_, raw)| !variable.is_same(raw.get()));
                change.replaced.extend(differing.map(|(at, _)| (at, *variable)));
            }
        }
        let mut count = change.replaced.len() + change.instead.len() - before;
        let order = if sooner.contains(name) { &mut first } else { &mut added };
        if !is_there || sooner.contains(name) {
            change.front.insert(*order, variable);
            *order += 1;
            count += 1;
        }
        if count > 0 {
            change.variables.insert(name, variable);
            bytes += (variable.json.len() + OPERATION) * count;
        }
    }
    bytes
}
