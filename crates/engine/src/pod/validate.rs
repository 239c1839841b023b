//! `/validate--v1-pod`: the twin of the mutating webhook. It sees the pod as it will be stored, after every other webhook, and
//! refuses one that must carry a set and does not.

use admission::reply::Cause;
use admission::{Denial, Findings, ObjectLimit, Reason, Request, Unserved, Validating};

use crate::limitrange::endpoints::pods as limits;
use crate::outcome::{REASON, first_causes, first_named, refuse};
use crate::plugins::endpoints::pods;
use crate::pod::decoded::Decoded;
use crate::pod::limits::too_large;
use crate::pod::select::{Fitted, Selection, fitted, injection, selected_at_creation};
use crate::pod::skip::skip;
use crate::pod::stages::{self, Stages};
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::injection::{AmountsSource, Clash, Injection, Missing, outdated_warning};
use crate::sidecarset::resources::OwnDefaults;
use crate::snapshot::Snapshot;

/// The endpoint: sets, then plugins, and then further stages.
pub struct PodValidation {
    /// The further stages, in their order.
    pub stages: Stages,
}

impl Validating<Snapshot> for PodValidation {
    type Object<'a> = Decoded<PodView<'a>>;

    /// The view of a pod bounds what is built of it: `pod::limits`.
    const LIMIT: Option<ObjectLimit> = None;
    const IN_ONE_PASS: bool = true;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodView<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        sets(request, snapshot, findings)?;
        limits::validate(request, snapshot, findings)?;
        pods::validate(request, snapshot, findings)?;
        stages::validate(&self.stages, request, snapshot, findings)
    }
}

/// What sets find.
fn sets(
    request: &Request<'_, Decoded<PodView<'_>>>,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<(), Unserved> {
    if let Some(reason) = skip(request, snapshot) {
        findings.reason = reason;
        findings.audit.push((REASON.into(), reason.as_str().to_owned()));
        return Ok(());
    }
    let Some(pod) = &request.object else {
        findings.lacks("object", request);
        return Ok(());
    };
    findings.reason = reasons::NO_MATCH;
    let selected = match selected_at_creation(pod, (&request.namespace, &request.user_info), snapshot)? {
        Ok(selected) => selected,
        Err(exceeded) => {
            refuse(findings, Reason::TOO_LARGE, too_large(exceeded));
            return Ok(());
        }
    };
    if selected.is_empty() {
        return Ok(());
    }
    let pod = match pod.whole() {
        Ok(pod) => pod,
        Err(exceeded) => {
            refuse(findings, Reason::TOO_LARGE, too_large(exceeded));
            return Ok(());
        }
    };
    // What was filled in is in the pod by now.
    let amounts = AmountsSource::Computed(OwnDefaults::default());
    let Fitted { sets, selections, .. } = fitted(pod, request.body, selected, (amounts, None), snapshot);
    let mut injection = injection(pod, request.body, &sets, &selections);
    let mut report = ValidationReport::default();
    for (set, selection) in sets.iter().zip(selections) {
        request.deadline.check()?;
        match selection {
            Selection::Skipped(reason, _) => report.note(reason),
            Selection::Unbound => {
                report.refusals.push(format!("{}: {}", must(set), Clash::unbound(set).text));
            }
            Selection::Unfit(clash) => report.clash(set, &clash),
            Selection::Selected => report.judge(&mut injection, set),
        }
    }
    for (set, key) in injection.lacking_annotations() {
        report.refusals.push(format!("{} and lacks its annotation {key:?}, or has another value", must(set)));
    }
    report.tell(request, findings);
    Ok(())
}

/// What was found about the sets that select the pod.
#[derive(Default)]
struct ValidationReport {
    reason: Option<Reason>,
    warnings: Vec<String>,
    refusals: Vec<String>,
}

impl ValidationReport {
    fn judge<'s>(&mut self, injection: &mut Injection<'_, 's>, set: &'s CompiledSet) {
        match injection.examine(set) {
            Ok(missing) => {
                self.weigh(set, &missing);
                // It settles what belongs to which set, for the sets that follow.
                injection.add_missing(set, missing);
            }
            Err(clash) => self.clash(set, &clash),
        }
    }

    fn clash(&mut self, set: &CompiledSet, clash: &Clash) {
        if set.is_must() {
            self.refusals.push(format!("{}: {}", must(set), clash.text));
        } else {
            // The mutating side has said why the pod goes without the set.
            self.note(clash.reason);
        }
    }

    fn weigh(&mut self, set: &CompiledSet, missing: &Missing<'_>) {
        let names = lacking(missing);
        if let Some(differing) = missing.outdated() {
            self.warnings.push(outdated_warning(set, differing));
            self.note(reasons::OUTDATED);
        } else if names.is_empty() {
            self.note(missing.present().unwrap_or(reasons::ALREADY_INJECTED));
        } else if set.is_must() {
            self.refusals.push(format!("{} and lacks its {}", must(set), lacks(&names)));
        } else {
            let text = format!("the pod should carry SidecarSet {:?} but lacks its {}", set.name, lacks(&names));
            self.warnings.push(format!("{}: {text}", reasons::UNINJECTED));
            self.note(reasons::UNINJECTED);
        }
    }

    /// One reason code is reported for the pod: what needs attention comes first.
    fn note(&mut self, reason: Reason) {
        fn rank(reason: Reason) -> u8 {
            match reason {
                reasons::UNINJECTED => 3,
                reasons::OUTDATED => 2,
                reasons::ALREADY_INJECTED | reasons::INJECTED_BY_OPENKRUISE => 1,
                _ => 0,
            }
        }
        if self.reason.is_none_or(|noted| rank(noted) < rank(reason)) {
            self.reason = Some(reason);
        }
    }

    fn tell(self, request: &Request<'_, Decoded<PodView<'_>>>, findings: &mut Findings) {
        findings.warnings.extend(self.warnings);
        if !self.refusals.is_empty() {
            refuse(findings, Reason::INVALID, refusal(request, "FieldValueRequired", &self.refusals));
        } else if let Some(reason) = self.reason {
            findings.reason = reason;
            if matches!(reason, reasons::UNINJECTED | reasons::OUTDATED) {
                findings.audit.push((REASON.into(), reason.as_str().to_owned()));
            }
        }
    }
}

/// The beginning of a refusal on behalf of a must.
pub(super) fn must(set: &CompiledSet) -> String {
    format!("pod must carry SidecarSet {:?} (spec.optOut: Denied)", set.name)
}

/// What the pod lacks of a set, in words.
fn lacking(missing: &Missing<'_>) -> Vec<String> {
    let names: Vec<String> = missing.lacking().map(|name| format!("{name:?}")).collect();
    let containers = (!names.is_empty()).then(|| format!("container {}", names.join(", ")));
    containers.into_iter().chain(missing.repairs()).collect()
}

fn lacks(names: &[String]) -> String {
    format!("{}; another admission webhook may have removed it after injection", names.join(", "))
}

/// The refusal for faults of the pod's containers. Each is a cause, with one of the words of Kubernetes' field errors.
pub(super) fn refusal(request: &Request<'_, Decoded<PodView<'_>>>, cause: &str, texts: &[String]) -> Denial {
    let causes = texts.iter().map(|text| Cause {
        reason: cause.to_owned(),
        message: text.clone(),
        field: "spec.containers".to_owned(),
    });
    Denial::forbidden(request, first_named(texts, "; ")).with_causes(first_causes(causes))
}
