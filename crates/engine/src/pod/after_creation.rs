//! What may be done to a pod that carries a must set, after it was created: updates of containers and labels, resizes, and ephemeral
//! containers.
//!
//! A must is a set that no pod goes without (`optOut: Denied`). The pod is compared with what it was: what it lacked it may go on
//! lacking, and what it keeps as it was is not compared with anything. Of a must a pod may have another form than the
//! current one.

mod annotations;
mod ephemeral;
mod forms;
mod groups;
mod left_over;

use std::collections::{BTreeMap, BTreeSet};

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Phase, Resource, Rule};
use admission::{Findings, ObjectLimit, Operation, Reason, Request, Unserved, Validating};

use self::forms::Must;
use self::groups::{Group, News};
use self::left_over::LeftOver;
use crate::demand::Demand;
use crate::outcome::refuse;
use crate::pod::decoded::Decoded;
use crate::pod::limits::{Exceeded, keeps, keeps_spec, too_large};
use crate::pod::select::{Selected, musts_of, selected};
use crate::pod::validate::{must, refusal};
use crate::pod::view::{Container, MIRROR_ANNOTATION, PodView};
use crate::reasons;
use crate::sidecarset::mark::is_marked_raw;
use crate::snapshot::Snapshot;

const EPHEMERAL: &str = "ephemeralcontainers";
const RESIZE: &str = "resize";

const RESOURCES: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
];

/// Finalizers and other annotations than the two by which a must's form is known are no matter, and controllers write them often.
const CHANGES: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/changes"),
    expression: concat!(
        "(has(request.subResource) && request.subResource != '') || object.spec.containers != oldObject.spec.containers || \
         has(object.spec.initContainers) != has(oldObject.spec.initContainers) || \
         (has(object.spec.initContainers) && object.spec.initContainers != oldObject.spec.initContainers) || \
         has(object.metadata.labels) != has(oldObject.metadata.labels) || \
         (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels) || \
         ['",
        api_domain!(),
        "/injected', '",
        api_domain!(),
        "/overrides'].exists(key, \
         (has(object.metadata.annotations) && key in object.metadata.annotations ? object.metadata.annotations[key] : '') != \
         (has(oldObject.metadata.annotations) && key in oldObject.metadata.annotations ? oldObject.metadata.annotations[key] : ''))",
    ),
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
    type Object<'a> = Pod<'a>;

    /// The view of a pod bounds what is built of it.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Pod<'a>>,
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
        if let Some(reason) = left_alone(request, old.even_if_cut(), snapshot) {
            findings.reason = reason;
            return Ok(());
        }
        findings.reason = reasons::ALLOWED;
        match refusals(request, (new, old), snapshot)? {
            Ok(refusals) if refusals.is_empty() => {}
            Ok(refusals) => {
                refuse(findings, Reason::INVALID, refusal(request, "FieldValueForbidden", &refusals));
            }
            Err(exceeded) => refuse(findings, Reason::TOO_LARGE, too_large(exceeded)),
        }
        Ok(())
    }
}

/// A pod, which may be cut.
type Pod<'a> = Decoded<PodView<'a>>;

/// Why the pod may not be changed so, or what is too long in it to know.
fn refusals<'u, 'p>(
    request: &'u Request<'p, Pod<'p>>,
    (new, stored): (&'u Pod<'p>, &'u Pod<'p>),
    snapshot: &'u Snapshot,
) -> Result<Result<Vec<String>, Exceeded>, Unserved> {
    match is_unconcerned(request, (new, stored), snapshot)? {
        Ok(true) => return Ok(Ok(Vec::new())),
        Ok(false) => {}
        Err(exceeded) => return Ok(Err(exceeded)),
    }
    let all = match selected(new, &request.namespace, snapshot)? {
        Ok(all) => all,
        Err(exceeded) => return Ok(Err(exceeded)),
    };
    match (new.whole(), stored.whole()) {
        (Ok(new), Ok(old)) => Update { request, stored, old, new, all: &all, snapshot }.refusals(),
        (Err(exceeded), _) | (_, Err(exceeded)) => Ok(Err(exceeded)),
    }
}

/// Whether the update is nothing to judge: no must selects the pod, nor did one, and other sets have nothing to say of an update; or the
/// pod is larger than what is read of one, was stored so, and keeps its spec and its musts. It is unknown, where the labels are too long,
/// which are no longer the same.
fn is_unconcerned(
    request: &Request<'_, Pod<'_>>,
    (new, old): (&Pod<'_>, &Pod<'_>),
    snapshot: &Snapshot,
) -> Result<Result<bool, Exceeded>, Unserved> {
    let musts = |pod: &Pod<'_>| musts_of(&pod.even_if_cut().metadata.labels, &request.namespace, snapshot);
    let is_kept = keeps_labels(request.body, (new, old));
    let after = match musts(new)? {
        Ok(after) => after,
        Err(_) if is_kept && keeps_spec(request.body) => return Ok(Ok(true)),
        Err(exceeded) => return Ok(Err(exceeded)),
    };
    let before = match if is_kept { Ok(after.clone()) } else { musts(old)? } {
        Ok(before) => before,
        Err(exceeded) => return Ok(Err(exceeded)),
    };
    let is_cut = || new.whole().is_err() || old.whole().is_err();
    let are_none = before.is_empty() && after.is_empty();
    Ok(Ok(are_none || is_cut() && before == after && keeps_spec(request.body)))
}

/// Whether the labels are as they were. Those that were cut are compared as they are in the body.
fn keeps_labels(body: &str, (new, old): (&Pod<'_>, &Pod<'_>)) -> bool {
    let (new, old) = (&new.even_if_cut().metadata.labels, &old.even_if_cut().metadata.labels);
    if new.is_cut() && old.is_cut() { keeps(body, &["metadata", "labels"]) } else { new.is_as(old) }
}

fn left_alone(request: &Request<'_, Pod<'_>>, old: &PodView<'_>, snapshot: &Snapshot) -> Option<Reason> {
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

/// An update of a pod, and the sets that select what it is to be.
struct Update<'u, 'p> {
    request: &'u Request<'p, Pod<'p>>,
    stored: &'u Pod<'p>,
    old: &'u PodView<'p>,
    new: &'u PodView<'p>,
    all: &'u Selected<'u>,
    snapshot: &'u Snapshot,
}

impl<'u> Update<'u, '_> {
    /// Why the pod may not be changed so, for each must.
    fn refusals(&self) -> Result<Result<Vec<String>, Exceeded>, Unserved> {
        let musts: Vec<Must<'u>> = Must::among(self.all, self.snapshot).collect();
        let before = self.musts_before()?;
        let before: Option<Vec<Must<'_>>> = before.as_ref().map(|before| Must::among(before, self.snapshot).collect());
        let concerned: Vec<Must<'_>> = musts.iter().chain(before.iter().flatten()).copied().collect();
        let containers = self.containers(&concerned);
        let left_over = self.left_over(&concerned, &containers);
        let mut refusals = self.left_over_changed(&left_over);
        if let Some(before) = &before {
            let names: BTreeSet<&str> = musts.iter().map(Must::name).collect();
            let lost = before.iter().filter(|must| !names.contains(must.name()));
            refusals.extend(lost.filter_map(|must| containers.lost(must, &left_over)));
        }
        let names_before: Option<BTreeSet<&str>> =
            before.as_ref().map(|before| before.iter().map(Must::name).collect());
        let is_new = |must: &Must<'_>| names_before.as_ref().is_some_and(|names| !names.contains(must.name()));
        refusals.extend(self.asked_anew(&musts, &containers));
        refusals.extend(self.recorded_too_long(&musts, &containers));
        refusals.extend(self.recorded_with_too_many(&musts));
        let is_recorded_anew = self.recorded_anew();
        let news = News { is_new: &is_new, is_recorded_anew: &|must| is_recorded_anew(must) };
        let groups = Group::all(&musts, &news, &containers);
        refusals.extend(self.faults_of(&groups)?);
        if self.request.sub_resource.as_str() == EPHEMERAL {
            match self.targeted(&musts, &containers, &left_over)? {
                Ok(targeted) => refusals.extend(targeted),
                Err(exceeded) => return Ok(Err(exceeded)),
            }
        }
        Ok(Ok(refusals))
    }

    /// The sets that selected the pod, where its labels have changed.
    fn musts_before(&self) -> Result<Option<Selected<'u>>, Unserved> {
        if self.old.metadata.labels.iter().eq(self.new.metadata.labels.iter()) {
            return Ok(None);
        }
        self.selected_before().map(Some)
    }

    fn selected_before(&self) -> Result<Selected<'u>, Unserved> {
        selected(self.stored, &self.request.namespace, self.snapshot)?.map_err(|_| Unserved::Fault)
    }

    /// What has become of the containers. `musts` are those that the pod is to carry, or was to.
    fn containers(&self, musts: &[Must<'_>]) -> Containers<'u> {
        let mut containers = Containers::of(self.old, self.new, self.request.body);
        if musts.iter().any(|must| must.older.is_some()) {
            let is_injected = |container: &&Container<'_>| container.raw(self.request.body).is_some_and(is_marked_raw);
            let injected = all(self.old).filter(is_injected);
            containers.injected = injected.map(|container| container.name.as_str()).collect();
        }
        if musts.iter().any(Must::is_unreadable) {
            let known: BTreeSet<&str> = self.all.iter().flat_map(|(set, _)| forms::names(set, self.snapshot)).collect();
            containers.unclaimed = &containers.injected - &known;
        }
        containers
    }
}

/// Names of the containers that a pod had.
#[derive(Default)]
struct Containers<'p> {
    old: BTreeSet<&'p str>,
    /// Of these, the ones that are others now, or gone.
    changed: BTreeSet<&'p str>,
    /// Of these, the ones that carry the mark of injection, where a must has an older form. A container of a running pod keeps it.
    injected: BTreeSet<&'p str>,
    /// Of these, the ones that no set is known to bring, where the older form of a must cannot be read.
    unclaimed: BTreeSet<&'p str>,
}

impl<'p> Containers<'p> {
    fn of(old: &'p PodView<'_>, new: &PodView<'_>, body: &str) -> Self {
        let text = |container: &Container<'_>| container.raw(body).map(|raw| raw.get().to_owned());
        let now: BTreeMap<&str, Option<String>> =
            all(new).map(|container| (container.name.as_str(), text(container))).collect();
        let mut containers = Self::default();
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

    /// A pod that carries a must keeps the labels by which it does: without them, its containers could be changed one by one.
    fn lost(&self, lost: &Must<'_>, left_over: &LeftOver<'_, '_, '_>) -> Option<String> {
        let carries = lost.names(self).any(|name| self.old.contains(name)) || left_over.has_of(lost);
        carries.then(|| {
            format!(
                "{}: the labels by which the set selects it may not be taken from a pod that carries the set; recreate the pod",
                must(lost.set)
            )
        })
    }
}

fn all<'p, 'a>(pod: &'p PodView<'a>) -> impl Iterator<Item = &'p Container<'a>> {
    pod.spec.containers().iter().chain(pod.spec.init_containers())
}
