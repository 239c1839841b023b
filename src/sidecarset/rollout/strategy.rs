//! `spec.updateStrategy`, compiled.

use admission::format::int_or_percent::Rounding;
use admission::format::{IntOrString, LabelSelector, Selector};
use serde_json::Value;

use crate::sidecarset::controller::packed::Packed;
use engine::sidecarset::api::{ScatterTerm, UpdateStrategy};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::vocabulary::{NOT_UPDATE, REPAIR_EVICT};

/// How running pods follow a change of the set.
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
#[derive(Debug, Clone)]
pub struct Strategy {
    /// Running pods stay as they are.
    pub not_update: bool,
    /// Which pods are to follow cannot be read, as of a set that was stored while no webhook validated it: none does.
    pub is_unreadable: bool,
    /// The rollout is stopped.
    pub paused: bool,
    /// The only pods that are updated.
    pub selector: Option<Selector>,
    /// How many pods stay at an older form, whichever these are.
    pub partition: IntOrString,
    /// How many pods the rollout may make unavailable at a time.
    pub max_unavailable: IntOrString,
    /// The same for each workload by itself.
    pub max_unavailable_per_owner: Option<IntOrString>,
    /// Pods that only a new pod can follow are evicted.
    pub recreate: bool,
    /// So are pods that lack the set.
    pub repair: bool,
    /// Which pods go first.
    pub priority: Priority,
    /// Labels whose pods are spread.
    pub scatter: Vec<ScatterTerm>,
}

/// Which pods go first.
#[derive(Debug, Clone, Default)]
pub enum Priority {
    /// None in particular.
    #[default]
    None,
    /// By the number that ends the value of the first of these labels that a pod has.
    Order(Vec<String>),
    /// By the sum of the weights whose selector matches.
    Weight(Vec<(i64, Selector)>),
}

impl Strategy {
    /// Whether pods are evicted.
    pub const fn evicts(&self) -> bool {
        self.recreate || self.repair
    }

    /// Whether a pod is evicted that only a new one can follow, and that lacks the set or carries it in an older form.
    pub const fn replaces(&self, lacks_the_set: bool) -> bool {
        if lacks_the_set { self.repair } else { self.recreate }
    }

    /// Whether pods that lack the set are replaced as the rollout goes on.
    pub const fn repairs_now(&self) -> bool {
        self.repair && !self.not_update && !self.paused && !self.is_unreadable
    }

    /// Whether a pod with these labels is updated at all.
    pub fn selects(&self, labels: &Packed) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    }

    /// That of a set. A partition that is one of workloads holds back the pods of these, and no others.
    pub fn of(set: &CompiledSet) -> Self {
        let mut strategy = Self::written(set.update_strategy());
        if set.pin.as_ref().is_some_and(|pin| pin.is_by_workload()) {
            strategy.partition = IntOrString::Int(0);
        }
        strategy
    }

    /// As it is written. What validation refuses counts as its default, unless that would be more pods.
    pub fn written(strategy: UpdateStrategy) -> Self {
        let selector = strategy.selector.as_ref().map(|selector| selector.compile().ok());
        let partition = strategy.partition.unwrap_or(IntOrString::Int(0));
        Self {
            is_unreadable: selector.as_ref().is_some_and(Option::is_none) || read(&partition, 1).is_none(),
            not_update: strategy.type_.as_deref() == Some(NOT_UPDATE),
            paused: strategy.paused.unwrap_or_default(),
            selector: selector.flatten(),
            partition,
            max_unavailable: strategy.max_unavailable.unwrap_or(IntOrString::Int(1)),
            max_unavailable_per_owner: strategy.max_unavailable_per_owner,
            recreate: strategy.recreate.unwrap_or_default(),
            repair: strategy.repair.as_deref() == Some(REPAIR_EVICT),
            priority: Priority::of(strategy.priority_strategy.as_ref()),
            scatter: strategy.scatter_strategy.unwrap_or_default(),
        }
    }

    /// Keys of the labels that it reads.
    pub fn label_keys(&self) -> Vec<String> {
        let of =
            |selector: &Selector| selector.requirements().iter().map(|term| term.key().to_owned()).collect::<Vec<_>>();
        let mut keys: Vec<String> = self.selector.iter().flat_map(of).collect();
        match &self.priority {
            Priority::None => {}
            Priority::Order(order) => keys.extend(order.iter().cloned()),
            Priority::Weight(weights) => keys.extend(weights.iter().flat_map(|(_, selector)| of(selector))),
        }
        keys.extend(self.scatter.iter().map(|term| term.key.clone()));
        keys
    }

    /// How many of `total` pods may be unavailable: a share is rounded up, so that a small one never stops the rollout.
    pub fn unavailable_of(&self, total: usize) -> usize {
        amount(&self.max_unavailable, total, 1)
    }

    /// The same of the pods of one workload, where the set limits that.
    pub fn unavailable_per_owner_of(&self, total: usize) -> Option<usize> {
        self.max_unavailable_per_owner.as_ref().map(|limit| amount(limit, total, 1))
    }

    /// How many of `total` pods stay at an older form. A share below 100% leaves at least one of several pods to update.
    pub fn kept_of(&self, total: usize) -> usize {
        let kept = amount(&self.partition, total, 0).min(total);
        let is_share_of_some =
            matches!(&self.partition, IntOrString::String(text) if text.trim_end_matches('%') != "100");
        if is_share_of_some && total > 1 { kept.min(total.saturating_sub(1)) } else { kept }
    }
}

fn amount(amount: &IntOrString, total: usize, default: usize) -> usize {
    read(amount, total).unwrap_or(default)
}

fn read(amount: &IntOrString, total: usize) -> Option<usize> {
    let total = i32::try_from(total).unwrap_or(i32::MAX);
    usize::try_from(amount.scaled(total, Rounding::Up).ok()?).ok()
}

impl Priority {
    fn of(written: Option<&Value>) -> Self {
        let list = |field: &str| {
            let list = written.and_then(|priority| priority.get(field)).and_then(Value::as_array);
            list.map(Vec::as_slice).unwrap_or_default()
        };
        let (orders, weights) = (list("orderPriority"), list("weightPriority"));
        if !orders.is_empty() {
            let keys = orders.iter().filter_map(|term| term.get("orderedKey").and_then(Value::as_str));
            return Self::Order(keys.map(str::to_owned).collect());
        }
        let weight = |term: &Value| {
            let selector: LabelSelector = serde_json::from_value(term.get("matchSelector")?.clone()).ok()?;
            Some((term.get("weight")?.as_i64()?, selector.compile().ok()?))
        };
        let weights: Vec<(i64, Selector)> = weights.iter().filter_map(weight).collect();
        if weights.is_empty() { Self::None } else { Self::Weight(weights) }
    }
}
