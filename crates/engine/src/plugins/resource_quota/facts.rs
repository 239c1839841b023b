//! The fields of pods, claims and services that quotas count, borrowed from the body.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use admission::Text;
use admission::format::Quantity;
use admission::raw::{elements, member, members};
use admission::review::null_as_default;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Consumption, QuotaScope};
use crate::plugins::amounts::{Amounts, add, amounts, amounts_of, sum};
use crate::plugins::pod_facts::{Resources, is_best_effort};
use crate::plugins::said_name;
use crate::plugins::storage_classes::annotated;
use crate::pod::borrowed_map::{self, BorrowedMap};
use crate::pod::decoded::Limited;
use crate::pod::limits::{self, Exceeded, at_most_or_none, cut};
use crate::resource_name::is_extended;

/// End of the names of what is counted for a storage class.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

/// What is read of a pod, a claim or a service, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct QuotaFacts<'a> {
    /// By which a refusal names the object.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: Spec<'a>,
}

/// Metadata of what consumes.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    generate_name: Text<'a>,
    #[serde(borrow, deserialize_with = "borrowed_map::annotations")]
    annotations: Option<BorrowedMap<'a>>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<IgnoredAny>,
}

/// Fields of the three kinds; none of them has two meanings.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Spec<'a> {
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::CONTAINERS }>")]
    containers: Vec<Container<'a>>,
    #[serde(borrow, deserialize_with = "at_most_or_none::<_, _, { limits::CONTAINERS }>")]
    init_containers: Vec<Container<'a>>,
    #[serde(borrow)]
    overhead: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<Resources<'a>>,
    #[serde(borrow)]
    priority_class_name: Text<'a>,
    active_deadline_seconds: Option<i64>,
    #[serde(borrow)]
    affinity: Option<&'a RawValue>,
    #[serde(borrow)]
    storage_class_name: Text<'a>,
    #[serde(borrow)]
    volume_attributes_class_name: Text<'a>,
    #[serde(borrow, rename = "type")]
    type_: Text<'a>,
    #[serde(deserialize_with = "at_most_or_none::<_, _, { limits::PORTS }>")]
    ports: Vec<Port>,
    allocate_load_balancer_node_ports: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Container<'a> {
    #[serde(borrow)]
    resources: Option<Resources<'a>>,
    #[serde(borrow)]
    restart_policy: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Port {
    node_port: Option<i64>,
}

admission::only_objects!(QuotaFacts<'a>, Metadata<'a>, Spec<'a>, Container<'a>, Port);

/// Resources that quotas count by their own names.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Whether objects of the resource count for what a quota names (`MatchingResources` of the evaluators).
pub fn is_counted(resource: &str, hard: &str) -> bool {
    let is_object = |prefix: &str| hard == resource || hard.strip_prefix(prefix) == Some(resource);
    match resource {
        "pods" => {
            is_object("count/")
                || ["", "requests.", "limits."].iter().any(|prefix| {
                    let name = hard.strip_prefix(prefix);
                    name.is_some_and(|name| COMPUTE.contains(&name))
                })
                || hard.starts_with("hugepages-")
                || hard
                    .strip_prefix("requests.")
                    .is_some_and(|name| name.starts_with("hugepages-") || name.contains('/'))
        }
        "persistentvolumeclaims" => {
            let of_class = hard.split_once(OF_CLASS).map_or(hard, |(_, what)| what);
            is_object("count/") || ["requests.storage", "persistentvolumeclaims"].contains(&of_class)
        }
        "services" => is_object("count/") || ["services.nodeports", "services.loadbalancers"].contains(&hard),
        _ => false,
    }
}

impl QuotaFacts<'_> {
    /// The name in messages.
    pub fn said_name<'n>(&'n self, requested: &'n str) -> &'n str {
        said_name([requested, &self.metadata.name, &self.metadata.generate_name])
    }
}

impl Limited for QuotaFacts<'_> {
    fn exceeds(&self) -> Option<Exceeded> {
        let spec = &self.spec;
        let of_containers = |(field, all): (&'static str, &[Container<'_>])| {
            let resources = all.iter().flat_map(|container| container.resources.iter().flat_map(Resources::lists));
            limits::containers(field, all.len(), resources)
        };
        [("spec.containers", spec.containers.as_slice()), ("spec.initContainers", spec.init_containers.as_slice())]
            .into_iter()
            .find_map(of_containers)
            .or_else(|| cut("spec.ports", spec.ports.len(), limits::PORTS, "ports"))
            .or_else(|| {
                let of_whole = spec.resources.iter().flat_map(Resources::lists);
                of_whole.into_iter().find_map(|list| limits::of_whole("spec.resources", list))
            })
            .or_else(|| limits::of_whole("spec.overhead", spec.overhead))
            .or_else(|| limits::annotations(self.metadata.annotations.as_ref()))
    }
}

impl QuotaFacts<'_> {
    /// What the object consumes, as far as it is wanted.
    pub(super) fn usage(&self, resource: &str, wanted: &Wanted<'_>) -> Consumption {
        let mut usage = Consumption::new();
        let mut count = |name: &str, number: usize| {
            usage.insert(name.to_owned(), Quantity::from(i64::try_from(number).unwrap_or(i64::MAX)));
        };
        count(&format!("count/{resource}"), 1);
        count(resource, 1);
        match resource {
            "services" => {
                let spec = &self.spec;
                let (balanced, all) = (spec.type_.as_str() == "LoadBalancer", spec.ports.len());
                let given = || spec.ports.iter().filter(|port| port.node_port.is_some_and(|port| port != 0)).count();
                let is_allocated = spec.allocate_load_balancer_node_ports != Some(false);
                count("services.loadbalancers", usize::from(balanced));
                count(
                    "services.nodeports",
                    match spec.type_.as_str() {
                        "NodePort" => all,
                        "LoadBalancer" if is_allocated => all,
                        "LoadBalancer" => given(),
                        _ => 0,
                    },
                );
            }
            "persistentvolumeclaims" => self.claim_usage(&mut usage),
            _ => self.pod_usage(&mut usage, wanted),
        }
        usage
    }

    fn claim_usage(&self, usage: &mut Consumption) {
        let class = annotated(self.metadata.annotations.as_ref()).unwrap_or(&self.spec.storage_class_name);
        let of_class = |what: &str| format!("{class}{OF_CLASS}{what}");
        if !class.is_empty() {
            usage.insert(of_class("persistentvolumeclaims"), Quantity::from(1));
        }
        let requests = self.spec.resources.as_ref().and_then(|resources| resources.requests);
        for (_, amount) in amounts(requests).into_iter().filter(|(name, _)| name == "storage") {
            if !class.is_empty() {
                usage.insert(of_class("requests.storage"), amount.clone());
            }
            usage.insert("requests.storage".to_owned(), amount);
        }
    }

    /// `podComputeUsageHelper` of k8s.io/kubernetes/pkg/quota/v1/evaluator/core.
    fn pod_usage(&self, usage: &mut Consumption, wanted: &Wanted<'_>) {
        let mut requests = self.total(|resources| resources.requests, wanted);
        let mut limits = self.total(|resources| resources.limits, wanted);
        for (name, amount) in amounts_of(self.spec.overhead, |name| wanted.has(name)) {
            if let Some(limit) = limits.get_mut(&name).filter(|limit| !limit.is_zero()) {
                limit.add(&amount);
            }
            add(&mut requests, &name, &amount);
        }
        for (name, amount) in requests {
            match name.as_str() {
                _ if COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-") => {
                    usage.insert(format!("requests.{name}"), amount.clone());
                    usage.insert(name, amount);
                }
                _ if is_extended(&name) => drop(usage.insert(format!("requests.{name}"), amount)),
                _ => {}
            }
        }
        for (name, amount) in limits {
            if COMPUTE.contains(&name.as_str()) {
                usage.insert(format!("limits.{name}"), amount);
            }
        }
    }

    /// What all containers ask for together, or the pod for them.
    fn total<'a>(&'a self, list: impl Fn(&Resources<'a>) -> Option<&'a RawValue>, wanted: &Wanted<'_>) -> Amounts {
        let of = |container: &'a Container<'_>| {
            amounts_of(container.resources.as_ref().and_then(&list), |name| wanted.has(name))
        };
        let init = self.spec.init_containers.iter();
        let mut sum = sum(
            self.spec.containers.iter().map(of),
            init.map(|container| (container.restart_policy.as_str() == "Always", of(container))),
        );
        for (name, amount) in amounts(self.spec.resources.as_ref().and_then(&list)) {
            if name == "cpu" || name == "memory" || name.starts_with("hugepages-") {
                sum.insert(name, amount);
            }
        }
        sum
    }

    fn is_terminating(&self) -> bool {
        self.spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0)
    }

    fn is_best_effort(&self) -> bool {
        let containers = self.spec.containers.iter().chain(&self.spec.init_containers);
        is_best_effort(self.spec.resources.as_ref(), containers.filter_map(|container| container.resources.as_ref()))
    }
}

/// The names whose amounts are needed: a pod may name very many resources that nothing limits.
#[derive(Debug)]
pub(super) enum Wanted<'w> {
    /// All of them: what is consumed is compared with what was.
    All,
    /// Those whose names in quotas contain one of these texts.
    Containing(BTreeSet<&'w str>),
}

impl Wanted<'_> {
    /// Whether the amount of a resource of containers is needed.
    fn has(&self, name: &str) -> bool {
        let Self::Containing(parts) = self else { return true };
        if parts.is_empty() {
            return false;
        }
        // In a quota the name follows one of these.
        ["requests.", "limits."].into_iter().any(|prefix| {
            parts.iter().any(|part| {
                part.len() <= prefix.len() + name.len() && (name.contains(part) || spans(prefix, name, part))
            })
        })
    }
}

/// Whether `part` is in `prefix` and `name` together, and not in `name` alone.
fn spans(prefix: &str, name: &str, part: &str) -> bool {
    let mut starts = prefix.char_indices().map(|(at, _)| prefix.get(at..).unwrap_or_default());
    starts.any(|start| match part.strip_prefix(start) {
        Some(rest) => name.starts_with(rest),
        None => start.starts_with(part),
    })
}

/// An object with what quotas count of it.
pub(super) struct Counted<'r, 'a> {
    facts: &'r QuotaFacts<'a>,
    resource: &'r str,
    pub(super) usage: Consumption,
    // Each reads a large part of a pod, and only where a scope is about it.
    is_best_effort: OnceCell<bool>,
    crosses_namespaces: OnceCell<bool>,
}

impl<'r, 'a> Counted<'r, 'a> {
    pub(super) fn of(facts: &'r QuotaFacts<'a>, resource: &'r str, wanted: &Wanted<'_>) -> Self {
        let usage = facts.usage(resource, wanted);
        Self { facts, resource, usage, is_best_effort: OnceCell::new(), crosses_namespaces: OnceCell::new() }
    }

    /// Whether the object is in a scope.
    pub(super) fn is_in(&self, scope: &QuotaScope) -> bool {
        let spec = &self.facts.spec;
        let is_best_effort = || *self.is_best_effort.get_or_init(|| self.facts.is_best_effort());
        let crosses = || *self.crosses_namespaces.get_or_init(|| spec.affinity.is_some_and(crosses_namespaces));
        match (self.resource, scope.name.as_str()) {
            ("pods", "Terminating") => self.facts.is_terminating(),
            ("pods", "NotTerminating") => !self.facts.is_terminating(),
            ("pods", "BestEffort") => is_best_effort(),
            ("pods", "NotBestEffort") => !is_best_effort(),
            ("pods", "PriorityClass") => scope.allows(&spec.priority_class_name),
            ("pods", "CrossNamespacePodAffinity") => crosses(),
            ("persistentvolumeclaims", "VolumeAttributesClass") => scope.allows(&spec.volume_attributes_class_name),
            _ => false,
        }
    }
}

/// Whether a term of the affinity selects pods of other namespaces.
fn crosses_namespaces(affinity: &RawValue) -> bool {
    let mut crosses = false;
    for of_pods in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = member(affinity, of_pods) else { continue };
        members(terms, |_, list| {
            // One by one: the list may be very long. Of a list that cannot be read, none counts.
            let mut one_does = false;
            let read = elements(list, |term| {
                one_does |= serde_json::from_str::<Term<'_>>(term.get())?.crosses();
                Ok::<(), serde_json::Error>(())
            });
            crosses |= read.is_ok() && one_does;
        });
    }
    crosses
}

/// A term, or a preferred one with a term in it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term<'a> {
    #[serde(borrow)]
    namespaces: Option<&'a RawValue>,
    #[serde(borrow)]
    namespace_selector: Option<&'a RawValue>,
    #[serde(borrow, rename = "podAffinityTerm")]
    preferred: Option<&'a RawValue>,
}

impl Term<'_> {
    fn crosses(&self) -> bool {
        let is_set =
            |value: Option<&RawValue>, empty: &str| value.is_some_and(|value| ![empty, "null"].contains(&value.get()));
        let preferred = || {
            let term = self.preferred.and_then(|term| serde_json::from_str::<Term<'_>>(term.get()).ok());
            term.is_some_and(|term| is_set(term.namespaces, "[]") || is_set(term.namespace_selector, "null"))
        };
        is_set(self.namespaces, "[]") || is_set(self.namespace_selector, "null") || preferred()
    }
}
