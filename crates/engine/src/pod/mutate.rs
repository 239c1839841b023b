//! `/mutate--v1-pod`: what a new pod gets.

use std::borrow::Cow;

use admission::patch::escape;
use admission::reply::{Cause, Outcome as Answer};
use admission::{Denial, Mutating, PatchWriter, Reason, Request, Unserved, Verdict};

use crate::limitrange::endpoints::pods as limits;
use crate::outcome::{REASON, first_causes, first_named};
use crate::plugins::endpoints::pods;
use crate::pod::decoded::Decoded;
use crate::pod::in_place::STATE_ANNOTATION;
use crate::pod::limits::too_large;
use crate::pod::select::{
    Fitted, SKIP_ANNOTATION, Selection, Skip, fitted_at_creation, injection, opts_out_of_nothing, selected_at_creation,
};
use crate::pod::skip::skip;
use crate::pod::stages::{self, Stages};
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, OnClash};
use crate::sidecarset::injection::{Clash, Injection};
use crate::snapshot::Snapshot;

/// The endpoint: sets, then plugins, and then further stages.
pub struct PodMutation {
    /// The further stages, in their order.
    pub stages: Stages,
}

impl Mutating<Snapshot> for PodMutation {
    type Object<'a> = Decoded<PodView<'a>>;

    const IN_ONE_PASS: bool = true;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<PodView<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        let verdict = limits::mutate(sets(request, snapshot)?, request, snapshot)?;
        let verdict = pods::mutate(verdict, request, snapshot)?;
        stages::mutate(verdict, &self.stages, request, snapshot)
    }
}

/// What sets decide.
fn sets(request: &Request<'_, Decoded<PodView<'_>>>, snapshot: &Snapshot) -> Result<Verdict, Unserved> {
    if let Some(reason) = skip(request, snapshot) {
        return Ok(Verdict::allow(reason).audit(REASON, reason.as_str()));
    }
    let Some(pod) = &request.object else { return Ok(Verdict::allow(reasons::NO_MATCH)) };
    let selected = match selected_at_creation(pod, (&request.namespace, &request.user_info), snapshot)? {
        Ok(selected) => selected,
        Err(exceeded) => return Ok(Verdict::deny(Reason::TOO_LARGE, too_large(exceeded))),
    };
    if selected.is_empty() {
        return Ok(Verdict::allow(reasons::NO_MATCH));
    }
    let pod = match pod.whole() {
        Ok(pod) => pod,
        Err(exceeded) => return Ok(Verdict::deny(Reason::TOO_LARGE, too_large(exceeded))),
    };
    let skip = Skip::read(pod.metadata.annotation(SKIP_ANNOTATION));
    let mistyped = opts_out_of_nothing(&skip, &selected, &snapshot.sets);
    let Fitted { sets, selections, warnings } =
        fitted_at_creation(pod, (&request.namespace, request.body), selected, snapshot)?;
    let of_annotations = ignored_opt_outs(&skip, &sets).chain(mistyped).chain(warnings).collect();
    let mut report = MutationReport { of_annotations, ..MutationReport::default() };
    let mut injection = injection(pod, request.body, &sets, &selections);
    for (set, selection) in sets.iter().zip(selections) {
        // Every set that the pod matches costs, and their number has no limit.
        request.deadline.check()?;
        match outcome(&mut injection, set, selection) {
            Outcome::Carried(reason) => report.carried(&set.name, reason),
            Outcome::Skipped(reason, why) => report.skipped(&set.name, reason, why),
            Outcome::Refused(clash) => report.clashes.push((set.name.clone(), clash)),
        }
    }
    Ok(without_state(report.into_verdict(request, injection), pod))
}

/// Takes from a new pod what a rollout wrote down of another: templates that were exported from a running pod have it, and the new pod
/// would take a place in the budget of its sets.
fn without_state(mut verdict: Verdict, pod: &PodView<'_>) -> Verdict {
    if pod.metadata.annotation(STATE_ANNOTATION).is_some() && !matches!(verdict.outcome, Answer::Denied(_)) {
        let mut patch = match std::mem::take(&mut verdict.outcome) {
            Answer::Patched(patch) => patch,
            _ => PatchWriter::default(),
        };
        patch.remove(&format!("/metadata/annotations/{}", escape(STATE_ANNOTATION)));
        verdict.outcome = Answer::Patched(patch);
    }
    verdict
}

/// Warnings about sets that the pod asks to go without, and that let no pod do so.
pub(super) fn ignored_opt_outs<'s>(
    skip: &'s Skip<'_>,
    sets: &'s [Cow<'_, CompiledSet>],
) -> impl Iterator<Item = String> + 's {
    sets.iter().filter(|set| !set.may_opt_out && skip.asks_for(set)).map(|set| {
        format!(
            "SidecarSet {:?} lets no pod opt out (spec.optOut: Denied); {SKIP_ANNOTATION} is ignored for it",
            set.name
        )
    })
}

/// What becomes of a set that selects a pod.
pub(super) enum Outcome {
    /// The pod carries it, from now on or already.
    Carried(Reason),
    /// The pod goes without it.
    Skipped(Reason, String),
    /// The pod is refused.
    Refused(Clash),
}

/// Adds a set to those that the pod carries, as far as it is to carry it.
pub(super) fn outcome<'s>(injection: &mut Injection<'_, 's>, set: &'s CompiledSet, selection: Selection) -> Outcome {
    let added = match selection {
        Selection::Selected => injection.add(set),
        Selection::Unfit(clash) => Err(clash),
        Selection::Skipped(reason, why) => return Outcome::Skipped(reason, why),
        Selection::Unbound => return Outcome::Refused(Clash::unbound(set)),
    };
    match added {
        Ok(reason) => Outcome::Carried(reason),
        // Between sets the earlier wins, and no pod is refused for it, unless it would evade a must.
        Err(clash) if set.on_clash == OnClash::Skip || (clash.reason == reasons::SET_CONFLICT && !set.is_must()) => {
            Outcome::Skipped(clash.reason, clash.text)
        }
        Err(clash) => Outcome::Refused(clash),
    }
}

/// The outcome of each set.
#[derive(Default)]
struct MutationReport {
    injected: Vec<String>,
    // The first of them speaks for the pod when nothing was injected, and before it one of an older form.
    present: Option<Reason>,
    skipped: Vec<(String, Reason, String)>,
    // What the pod's annotations request, and no set grants.
    of_annotations: Vec<String>,
    clashes: Vec<(String, Clash)>,
}

impl MutationReport {
    fn carried(&mut self, set: &str, reason: Reason) {
        if reason == reasons::INJECTED {
            self.injected.push(set.to_owned());
        } else if reason == reasons::OUTDATED {
            self.present = Some(reason);
        } else {
            self.present.get_or_insert(reason);
        }
    }

    fn skipped(&mut self, set: &str, reason: Reason, why: String) {
        self.skipped.push((set.to_owned(), reason, why));
    }

    fn reason(&self) -> Reason {
        if !self.injected.is_empty() {
            return reasons::INJECTED;
        }
        let skipped = self.skipped.first().map(|(_, reason, _)| *reason);
        self.present.or(skipped).unwrap_or(reasons::NO_MATCH)
    }

    fn into_verdict(self, request: &Request<'_, Decoded<PodView<'_>>>, injection: Injection<'_, '_>) -> Verdict {
        let of_injection = injection.warnings().to_vec();
        let mut verdict = match self.clashes.first() {
            Some((_, clash)) => Verdict::deny(clash.reason, refusal(request, &self.clashes)),
            None => Verdict::patch(self.reason(), injection.into_patch()),
        };
        // The author who opted out knows.
        let skips = self.skipped.iter().filter(|(_, reason, _)| *reason != reasons::OPTED_OUT);
        verdict.warnings.extend(skips.map(|(_, reason, why)| format!("{reason}: {why}")));
        verdict.warnings.extend(self.of_annotations.iter().cloned());
        if self.clashes.is_empty() {
            verdict.warnings.extend(of_injection);
        }
        verdict = verdict.audit(REASON, verdict_reason(&self));
        if !self.injected.is_empty() && self.clashes.is_empty() {
            verdict = verdict.audit("sets", self.injected.join(","));
        }
        let skipped = self.skipped.iter().map(|(set, reason, _)| (set, *reason));
        let refused = self.clashes.iter().map(|(set, clash)| (set, clash.reason));
        let passed_over: Vec<String> = skipped.chain(refused).map(|(set, reason)| format!("{set}={reason}")).collect();
        let list = first_named(&passed_over, ",");
        if list.is_empty() { verdict } else { verdict.audit("skipped", list) }
    }
}

fn verdict_reason(report: &MutationReport) -> &'static str {
    report.clashes.first().map_or_else(|| report.reason(), |(_, clash)| clash.reason).as_str()
}

fn refusal(request: &Request<'_, Decoded<PodView<'_>>>, clashes: &[(String, Clash)]) -> Denial {
    let texts: Vec<String> =
        clashes.iter().map(|(set, clash)| format!("pod cannot carry SidecarSet {set:?}: {}", clash.text)).collect();
    let advice = "or set spec.clashPolicy: Skip on the set to let such pods go without it";
    let causes = clashes.iter().map(|(_, clash)| Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: clash.text.clone(),
        field: clash.field.clone(),
    });
    let message = format!("{} ({advice})", first_named(&texts, "; "));
    let mut denial = Denial::forbidden(request, message).with_causes(first_causes(causes));
    denial.code = 422;
    denial.status_reason = "Invalid";
    denial
}
