//! What may be done to a pod that carries a must set, after it was created: updates of containers and labels, resizes, and ephemeral
//! containers.
//!
//! A must is a set that no pod goes without (`optOut: Denied`). The pod is compared with what it was: what it lacked it may go on
//! lacking, and what it keeps as it was is not compared with anything.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Phase, Resource, Rule};
use admission::review::null_as_default;
use admission::{Findings, ObjectLimit, Operation, Reason, Request, Review, Text, Unserved, Validating};
use serde::Deserialize;

use crate::demand::Demand;
use crate::outcome::refuse;
use crate::pod::limits::{self, at_most_or_none, too_large};
use crate::pod::select::{Fitted, Selected, Selection, fitted, injection, selected};
use crate::pod::validate::{must, refusal};
use crate::pod::view::{Container, MIRROR_ANNOTATION, PodView};
use crate::reasons;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::Injection;
use crate::snapshot::Snapshot;

const EPHEMERAL: &str = "ephemeralcontainers";

/// Ephemeral containers that a refusal names: a pod may have very many.
const TOLD: usize = 8;
/// The longest name that a container can have, in characters.
const NAME_MAX: usize = 63;

const RESOURCES: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
];

/// Annotations and finalizers are no matter, and controllers write them often.
const CHANGES: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/changes"),
    expression: "(has(request.subResource) && request.subResource != '') || object.spec.containers != oldObject.spec.containers || \
                 has(object.spec.initContainers) != has(oldObject.spec.initContainers) || \
                 (has(object.spec.initContainers) && object.spec.initContainers != oldObject.spec.initContainers) || \
                 has(object.metadata.labels) != has(oldObject.metadata.labels) || \
                 (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)",
};

/// The rule: its entry exists only while there is a must.
pub const RULE: Rule = Rule {
    suffix: "update",
    failure_policy: FailurePolicy::Chosen,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[CHANGES],
    ..Rule::new(concat!("pod-update.", api_domain!()), RESOURCES, &[Operation::Update])
};

/// The entry, while there is a must.
pub fn demands(snapshot: &Snapshot) -> Vec<Demand> {
    let has_must = snapshot.sets.iter().any(|set| set.is_must());
    has_must.then(|| Demand::of(Phase::Validating, RULE)).into_iter().collect()
}

/// The endpoint.
pub struct PodUpdateValidation;

impl Validating<Snapshot> for PodUpdateValidation {
    type Object<'a> = PodView<'a>;

    /// The view of a pod bounds what is built of it.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, PodView<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        if request.operation != Operation::Update {
            findings.reason = reasons::ALLOWED;
            return Ok(());
        }
        let (Some(new), Some(old)) = (&request.object, &request.old_object) else {
            findings.lacks(if request.object.is_none() { "object" } else { "oldObject" }, request);
            return Ok(());
        };
        if let Some(reason) = left_alone(request, old, snapshot) {
            findings.reason = reason;
            return Ok(());
        }
        let all = match selected(new, &request.namespace, snapshot)? {
            Ok(all) => all,
            Err(exceeded) => {
                refuse(findings, Reason::TOO_LARGE, too_large(request, exceeded));
                return Ok(());
            }
        };
        let refusals = refusals(request, (old, new), all, snapshot, findings)?;
        if !refusals.is_empty() {
            refuse(findings, Reason::INVALID, refusal(request, "FieldValueForbidden", &refusals));
        }
        Ok(())
    }
}

fn left_alone(request: &Request<'_, PodView<'_>>, old: &PodView<'_>, snapshot: &Snapshot) -> Option<Reason> {
    if snapshot.excludes(&request.namespace) {
        Some(reasons::NAMESPACE_EXCLUDED)
    } else if old.metadata.deletion_timestamp.is_some() {
        Some(Reason::TERMINATING)
    } else if old.metadata.annotation(MIRROR_ANNOTATION).is_some() {
        Some(reasons::MIRROR_POD)
    } else {
        None
    }
}

/// Why the pod may not be changed so, for each must. `all` are the sets that select it.
fn refusals(
    request: &Request<'_, PodView<'_>>,
    (old, new): (&PodView<'_>, &PodView<'_>),
    all: Selected<'_>,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<Vec<String>, Unserved> {
    let due: Vec<bool> = all.iter().map(is_due).collect();
    // As this pod gets them: what of a set depends on the pod is not another form of it. All of them, as containers of other sets are
    // not the pod's own.
    let Fitted { sets, selections, .. } = fitted(new, request.body, all, snapshot);
    let due = sets.iter().zip(&selections).zip(due).filter(|(_, is_due)| *is_due);
    let (musts, of_musts): (Vec<&CompiledSet>, Vec<&Selection>) =
        due.map(|((set, selection), _)| -> (&CompiledSet, &Selection) { (set, selection) }).unzip();
    findings.reason = if musts.is_empty() { reasons::NO_MATCH } else { reasons::ALLOWED };
    let before = musts_before(old, new, request, snapshot)?;
    let containers = Containers::of(old, new, request.body);
    let mut refusals = Vec::new();
    if let Some(before) = &before {
        let names: BTreeSet<&str> = musts.iter().map(|must| must.name.as_str()).collect();
        let lost = before.iter().filter(|(set, _)| !names.contains(set.name.as_str()));
        refusals.extend(lost.filter_map(|(set, _)| containers.lost(set)));
    }
    let names_before: Option<BTreeSet<&str>> =
        before.as_ref().map(|before| before.iter().map(|(set, _)| set.name.as_str()).collect());
    let found = OnceCell::new();
    for (set, selection) in musts.iter().zip(of_musts) {
        request.deadline.check()?;
        let is_new = names_before.as_ref().is_some_and(|names| !names.contains(set.name.as_str()));
        let changed: Vec<&str> = containers.changed(set).collect();
        if !changed.is_empty() || is_new {
            let injection = found.get_or_init(|| injection(new, request.body, &sets, &selections));
            refusals.extend(fault(injection, (set, selection), &changed, is_new));
        }
    }
    if request.sub_resource.as_str() == EPHEMERAL {
        refusals.extend(targeted(request, &musts));
    }
    Ok(refusals)
}

/// Whether the pod is to carry the set, and the set is a must.
fn is_due((set, selection): &(&Arc<CompiledSet>, Selection)) -> bool {
    set.is_must() && matches!(selection, Selection::Selected)
}

/// The musts that the pod was to carry, where its labels have changed. A pod whose old labels are too long is treated as new.
fn musts_before<'s>(
    old: &PodView<'_>,
    new: &PodView<'_>,
    request: &Request<'_, PodView<'_>>,
    snapshot: &'s Snapshot,
) -> Result<Option<Selected<'s>>, Unserved> {
    if old.metadata.labels.iter().eq(new.metadata.labels.iter()) {
        return Ok(None);
    }
    let all = selected(old, &request.namespace, snapshot)?.unwrap_or_default();
    Ok(Some(all.into_iter().filter(is_due).collect()))
}

/// Names of the containers that a pod had.
struct Containers<'p> {
    old: BTreeSet<&'p str>,
    /// Of these, the ones that are others now, or gone.
    changed: BTreeSet<&'p str>,
}

impl<'p> Containers<'p> {
    fn of(old: &'p PodView<'_>, new: &PodView<'_>, body: &str) -> Self {
        let text = |container: &Container<'_>| container.raw(body).map(|raw| raw.get().to_owned());
        let now: BTreeMap<&str, Option<String>> =
            all(new).map(|container| (container.name.as_str(), text(container))).collect();
        let mut containers = Self { old: BTreeSet::new(), changed: BTreeSet::new() };
        for container in all(old) {
            let name = container.name.as_str();
            containers.old.insert(name);
            let before = text(container);
            if before.is_none() || now.get(name) != Some(&before) {
                containers.changed.insert(name);
            }
        }
        containers
    }

    /// Containers of the set that the pod had and that are others now.
    fn changed<'s>(&self, set: &'s CompiledSet) -> impl Iterator<Item = &'s str> {
        set.pieces().map(|piece| piece.name.as_str()).filter(|name| self.changed.contains(name))
    }

    /// A pod that carries a must keeps the labels by which it does: without them, its containers could be changed one by one.
    fn lost(&self, set: &CompiledSet) -> Option<String> {
        let carries = set.pieces().any(|piece| self.old.contains(piece.name.as_str()));
        carries.then(|| {
            format!(
                "{}: the labels by which the set selects it may not be taken from a pod that carries the set; recreate the pod",
                must(set)
            )
        })
    }
}

/// Why the pod may not be changed so, for one must.
fn fault<'s>(
    injection: &Injection<'_, 's>,
    (set, selection): (&'s CompiledSet, &Selection),
    changed: &[&str],
    is_new: bool,
) -> Option<String> {
    let fault = match selection {
        // What the pod would get of it is not known. The set as it is written leaves open what it would settle for the pod, and
        // annotations and owners, on which that depends, may be changed without a webhook.
        Selection::Unfit(clash) => Some(clash.text.clone()),
        Selection::Skipped(_, why) if !changed.is_empty() => Some(why.clone()),
        _ => differing(injection, set, is_new),
    }?;
    Some(if is_new {
        format!("{}, and labels that the set selects do not bring it: {fault}; recreate the pod", must(set))
    } else {
        format!("{}, and container {} may not become another: {fault}", must(set), changed.join(", "))
    })
}

/// In what the pod does not carry the set.
fn differing<'s>(injection: &Injection<'_, 's>, set: &'s CompiledSet, is_new: bool) -> Option<String> {
    let missing = match injection.examine(set) {
        Err(clash) => return Some(clash.text),
        Ok(missing) => missing,
    };
    let lacking: Vec<&str> = missing.lacking().collect();
    // What it lacked it may go on lacking.
    let lacks = (is_new && !lacking.is_empty()).then(|| format!("it lacks container {}", lacking.join(", ")));
    lacks.or_else(|| missing.outdated().map(str::to_owned))
}

fn all<'p, 'a>(pod: &'p PodView<'a>) -> impl Iterator<Item = &'p Container<'a>> {
    pod.spec.containers().iter().chain(pod.spec.init_containers())
}

/// Ephemeral containers that are new and see into a container of a must.
fn targeted(request: &Request<'_, PodView<'_>>, musts: &[&CompiledSet]) -> Vec<String> {
    // Read apart: no other decision reads ephemeral containers.
    let Ok(review) = Review::<WithEphemeral<'_>>::parse(request.body.as_bytes()) else {
        return vec!["the ephemeral containers of the pod cannot be read".to_owned()];
    };
    let old: BTreeSet<&str> = review.request.old_object.iter().flat_map(WithEphemeral::names).collect();
    let new = review.request.object.iter().flat_map(|pod| &pod.spec.ephemeral_containers);
    // Of two musts with one name neither is evaded, so that either will do.
    let owners: BTreeMap<&str, &CompiledSet> =
        musts.iter().flat_map(|set| set.pieces().map(|piece| (piece.name.as_str(), *set))).collect();
    let targeted = new.filter(|container| !old.contains(container.name.as_str())).filter_map(|container| {
        let (target, set) = owners.get_key_value(container.target_container_name.as_str())?;
        let name: String = container.name.as_str().chars().take(NAME_MAX).collect();
        Some(format!("{}, and ephemeral container {name:?} may not target its container {target:?}", must(set)))
    });
    targeted.take(TOLD).collect()
}

#[derive(Default, Deserialize)]
#[serde(remote = "Self", default)]
struct WithEphemeral<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    spec: EphemeralSpec<'a>,
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
