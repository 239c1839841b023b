//! Amounts of resources, and what the containers of a pod ask for together.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use admission::format::Quantity;
use serde_json::value::RawValue;

/// By resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a list. The API server has read them before.
pub fn amounts(list: Option<&RawValue>) -> Amounts {
    amounts_of(list, |_| true)
}

/// The amounts of a list that are named so.
pub fn amounts_of(list: Option<&RawValue>, mut is_wanted: impl FnMut(&str) -> bool) -> Amounts {
    let mut found = Amounts::new();
    if let Some(list) = list {
        admission::raw::members(list, |key, value| {
            if is_wanted(key.name())
                && let Ok(amount) = serde_json::from_str::<Quantity>(value.get())
            {
                found.insert(key.name().to_owned(), amount);
            }
        });
    }
    found
}

/// Adds an amount.
pub fn add(sum: &mut Amounts, name: &str, amount: &Quantity) {
    match sum.get_mut(name) {
        Some(known) => known.add(amount),
        None => drop(sum.insert(name.to_owned(), amount.clone())),
    }
}

/// What containers ask for together (`AggregateContainerRequests` of k8s.io/component-helpers/resource). Of each init container is said
/// whether it is a sidecar.
///
/// An init container runs beside the sidecars before it. What those ask for that it does not is part of the sum in any case.
pub fn sum<A: Borrow<Amounts>>(
    containers: impl Iterator<Item = A>,
    init_containers: impl Iterator<Item = (bool, A)>,
) -> Amounts {
    let (mut sum, mut sidecars, mut init) = (Amounts::new(), Amounts::new(), Amounts::new());
    for asked in containers {
        for (name, amount) in asked.borrow() {
            add(&mut sum, name, amount);
        }
    }
    for (is_sidecar, asked) in init_containers {
        for (name, amount) in asked.borrow() {
            if is_sidecar {
                add(&mut sidecars, name, amount);
                add(&mut sum, name, amount);
            } else {
                let mut amount = amount.clone();
                sidecars.get(name).into_iter().for_each(|sidecars| amount.add(sidecars));
                raise(&mut init, name, amount);
            }
        }
    }
    for (name, amount) in init {
        raise(&mut sum, &name, amount);
    }
    sum
}

fn raise(most: &mut Amounts, name: &str, amount: Quantity) {
    match most.get_mut(name) {
        Some(known) if *known >= amount => {}
        Some(known) => *known = amount,
        None => drop(most.insert(name.to_owned(), amount)),
    }
}
