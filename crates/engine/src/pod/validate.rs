//! `/validate--v1-pod`: the twin of the mutating webhook. It sees the pod as it will be stored, after every other webhook, and
//! refuses one that must carry a set and does not.

use admission::reply::Cause;
use admission::{Denial, Findings, ObjectLimit, Reason, Request, Unserved, Validating};

use crate::pod::limits::too_large;
use crate::pod::select::{Selection, selected};
use crate::pod::skip::skip;
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, OnClash};
use crate::sidecarset::injection::Injection;
use crate::snapshot::Snapshot;

/// The endpoint.
pub struct PodValidation;

impl Validating<Snapshot> for PodValidation {
    type Object<'a> = PodView<'a>;

    /// The view of a pod bounds what is built of it: `pod::limits`.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, PodView<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        if let Some(reason) = skip(request, snapshot) {
            findings.reason = reason;
            findings.audit.push(("reason", reason.as_str().to_owned()));
            return Ok(());
        }
        let Some(pod) = &request.object else {
            findings.lacks("object", request);
            return Ok(());
        };
        findings.reason = reasons::NO_MATCH;
        let selected = match selected(pod, &request.namespace, snapshot)? {
            Ok(selected) => selected,
            Err(exceeded) => {
                findings.audit.push(("reason", Reason::TOO_LARGE.as_str().to_owned()));
                findings.denial = Some((Reason::TOO_LARGE, too_large(request, exceeded)));
                return Ok(());
            }
        };
        if selected.is_empty() {
            return Ok(());
        }
        let mut injection = Injection::new(pod, selected.iter().map(|(set, _)| -> &CompiledSet { set }));
        let mut lacking = Vec::new();
        for (set, selection) in selected {
            if !matches!(selection, Selection::Selected) {
                continue;
            }
            findings.reason = reasons::ALREADY_INJECTED;
            if must_be_carried(set) {
                lacking.extend(lack(&injection, set));
            }
            // Adding it settles what belongs to which set, for the sets that follow. A clash is the mutating side's affair.
            let _ = injection.add(set);
        }
        if !lacking.is_empty() {
            findings.audit.push(("reason", Reason::INVALID.as_str().to_owned()));
            findings.denial = Some((Reason::INVALID, refusal(request, &lacking)));
        }
        Ok(())
    }
}

/// A set that no pod may go without: neither by opting out nor because it clashes.
const fn must_be_carried(set: &CompiledSet) -> bool {
    !set.may_opt_out && matches!(set.on_clash, OnClash::Refuse)
}

/// What the pod lacks of the set, in words; empty when it carries it, or when an earlier set stands in its place.
fn lack<'s>(injection: &Injection<'_, 's>, set: &'s CompiledSet) -> Option<String> {
    let set_name = &set.name;
    match injection.examine(set) {
        Ok(missing) => {
            let names: Vec<String> = missing.containers().map(|piece| format!("{:?}", piece.name)).collect();
            (!names.is_empty()).then(|| {
                format!(
                    "pod must carry SidecarSet {set_name:?} (spec.optOut: Denied) and lacks its container {}; \
                     another admission webhook may have removed it after injection",
                    names.join(", ")
                )
            })
        }
        Err(clash) if clash.reason == reasons::SET_CONFLICT => None,
        Err(clash) => Some(format!("pod must carry SidecarSet {set_name:?} (spec.optOut: Denied): {}", clash.text)),
    }
}

fn refusal(request: &Request<'_, PodView<'_>>, lacking: &[String]) -> Denial {
    let causes = lacking.iter().map(|text| Cause {
        reason: "FieldValueRequired".to_owned(),
        message: text.clone(),
        field: "spec.containers".to_owned(),
    });
    Denial::forbidden(request, lacking.join("; ")).with_causes(causes)
}
