//! Several deciders on one pod, in a fixed order and in one call: what an earlier one added is seen by the later ones, and the reply
//! holds one patch.
//!
//! `SidecarSet`s are the first stage, `ClusterLimitRange`s the second and `AdmissionPlugin`s the third; all are part of the endpoints and
//! read the pod's view, for which the body is decoded once; only where a further stage has something to decide is the whole pod decoded.

use std::borrow::Cow;
use std::fmt::Debug;

use admission::reply::{Count, Outcome};
use admission::{
    Denial, Findings, ObjectLimit, Operation, PatchBuilder, PatchWriter, Reason, Request, Review, Unserved, Verdict,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::outcome::{refuse_after_all, refused, says_little, set_reason};
use crate::pod::decoded::Decoded;
use crate::pod::view::PodView;
use crate::sidecarset::narrowing::NarrowingRule;
use crate::snapshot::Snapshot;

/// A further decider on new pods. Pure, as everything here.
pub trait Stage: Debug + Send + Sync {
    /// Whether nothing that was accepted gives it anything to decide. It costs nothing then.
    fn is_idle(&self, snapshot: &Snapshot) -> bool;

    /// Whether it may have something to decide about this request. Only then is the whole pod decoded.
    fn concerns(&self, request: &PodRequest<'_>, snapshot: &Snapshot) -> bool {
        let _ = (request, snapshot);
        true
    }

    /// Changes a new pod, or refuses it. The document of `pod` holds what earlier stages added; `request` has the pod as it came.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn mutate(&self, pod: &mut PatchBuilder, request: &PodRequest<'_>, snapshot: &Snapshot) -> Result<Step, Unserved> {
        let _ = (pod, request, snapshot);
        Ok(Step::default())
    }

    /// Validates a new pod as it will be stored.
    ///
    /// # Errors
    /// [`Unserved`] when no decision is possible.
    fn validate(&self, pod: &Value, request: &PodRequest<'_>, snapshot: &Snapshot) -> Result<Step, Unserved> {
        let _ = (pod, request, snapshot);
        Ok(Step::default())
    }

    /// Which pods it can match. The API server does not call the webhook for others where entries are narrowed, so that a stage that
    /// cannot say says all.
    fn narrowing(&self, snapshot: &Snapshot) -> NarrowingRule {
        let _ = snapshot;
        NarrowingRule::Wide
    }
}

/// A request about a pod.
pub type PodRequest<'a> = Request<'a, Decoded<PodView<'a>>>;

/// Further stages, in their order.
pub type Stages = Vec<&'static dyn Stage>;

/// What a stage decided beside its changes.
#[derive(Debug, Default)]
pub struct Step {
    /// Why, if it had anything to decide.
    pub reason: Option<Reason>,
    /// Sentences for the user.
    pub warnings: Vec<String>,
    /// Entries for the audit log.
    pub audit: Vec<(Cow<'static, str>, String)>,
    /// What the metrics get.
    pub counts: Vec<Count>,
    /// Set when the pod is refused. No later stage is asked then.
    pub denial: Option<(Reason, Denial)>,
}

/// Which pods all stages together can match: what sets match, and what plugins and the further stages do.
pub fn narrowing(sets: NarrowingRule, stages: &[&'static dyn Stage], snapshot: &Snapshot) -> NarrowingRule {
    // A plugin or a range is about every pod of its namespaces.
    let is_wide = !snapshot.limit_ranges.is_empty() || snapshot.plugins.iter().any(|plugin| plugin.plugin.is_of_pods());
    let sets = if is_wide { NarrowingRule::Wide } else { sets };
    let busy = stages.iter().filter(|stage| !stage.is_idle(snapshot));
    busy.fold(sets, |all, stage| all.or(&stage.narrowing(snapshot)))
}

/// The stages that have something to decide about the request; none for one that every stage leaves alone.
fn busy<'s>(
    stages: &'s [&'static dyn Stage],
    request: &PodRequest<'_>,
    snapshot: &'s Snapshot,
) -> Vec<&'s &'static dyn Stage> {
    let concerns =
        || request.operation == Operation::Create && request.object.is_some() && !snapshot.excludes(&request.namespace);
    if stages.is_empty() || !concerns() {
        return Vec::new();
    }
    stages.iter().filter(|stage| !stage.is_idle(snapshot) && stage.concerns(request, snapshot)).collect()
}

/// The whole pod as it came, or why it cannot be decoded.
fn whole(request: &PodRequest<'_>) -> Result<Value, Box<(Reason, Denial)>> {
    let undecodable = |message: String| Box::new((Reason::UNDECODABLE, Denial::bad_request(message)));
    let review = Review::<&RawValue>::parse(request.body.as_bytes()).map_err(|error| undecodable(error.to_string()))?;
    let raw = review.request.object.map_or("null", RawValue::get);
    if let Some(Err(message)) = review.request.object.map(|object| ObjectLimit::STORABLE.check(object)) {
        return Err(Box::new((Reason::TOO_LARGE, Denial::too_large(message))));
    }
    serde_json::from_str(raw).map_err(|error| undecodable(error.to_string()))
}

/// Goes on with what sets decided about a new pod.
pub(super) fn mutate(
    mut verdict: Verdict,
    stages: &[&'static dyn Stage],
    request: &PodRequest<'_>,
    snapshot: &Snapshot,
) -> Result<Verdict, Unserved> {
    let busy = busy(stages, request, snapshot);
    if busy.is_empty() || matches!(verdict.outcome, Outcome::Denied(_)) {
        return Ok(verdict);
    }
    let mut document = match whole(request) {
        Ok(document) => document,
        Err(refusal) => return Ok(refused(verdict, *refusal)),
    };
    let mut patch = match std::mem::take(&mut verdict.outcome) {
        Outcome::Patched(patch) => patch,
        _ => PatchWriter::default(),
    };
    admission::patch::apply(&mut document, patch.document()).map_err(|_| Unserved::Fault)?;
    let mut pod = PatchBuilder::of(document);
    for stage in busy {
        let step = stage.mutate(&mut pod, request, snapshot)?;
        verdict.warnings.extend(step.warnings);
        verdict.audit.extend(step.audit);
        verdict.counts.extend(step.counts);
        if let Some(refusal) = step.denial {
            return Ok(refused(verdict, refusal));
        }
        if let Some(reason) = step.reason.filter(|_| says_little(verdict.reason)) {
            set_reason(&mut verdict, reason);
        }
    }
    patch.append(&pod.finish());
    verdict.outcome = Outcome::Patched(patch);
    Ok(verdict)
}

/// Goes on with what sets found about a pod that is about to be stored.
pub(super) fn validate(
    stages: &[&'static dyn Stage],
    request: &PodRequest<'_>,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<(), Unserved> {
    let busy = busy(stages, request, snapshot);
    if busy.is_empty() || findings.denial.is_some() {
        return Ok(());
    }
    let pod = match whole(request) {
        Ok(pod) => pod,
        Err(refusal) => {
            findings.denial = Some(*refusal);
            return Ok(());
        }
    };
    for stage in busy {
        let step = stage.validate(&pod, request, snapshot)?;
        findings.warnings.extend(step.warnings);
        findings.audit.extend(step.audit);
        findings.counts.extend(step.counts);
        if let Some((reason, denial)) = step.denial {
            refuse_after_all(findings, reason, denial);
            return Ok(());
        }
        if let Some(reason) = step.reason.filter(|_| says_little(findings.reason)) {
            findings.reason = reason;
        }
    }
    Ok(())
}
