//! New pods: ranges follow the sidecars and go before the other plugins, as in the API server's order.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::reply::Outcome;
use admission::{Denial, Findings, Reason, Request, Unserved, Verdict};

use super::scope::concerned;
use super::{AUDIT, noted};
use crate::limitrange::bounds::Usage;
use crate::limitrange::compiled::CompiledRange;
use crate::limitrange::defaults::{Defaults, is_sidecar};
use crate::limitrange::judgement::Judgement;
use crate::outcome::{refuse_after_all, refused, says_little, set_reason, take_patch};
use crate::plugins::amounts::{Amounts, amounts_of, sum};
use crate::plugins::change::List;
use crate::plugins::endpoints::pods::{creates, facts, patched};
use crate::plugins::forbidden;
use crate::plugins::pod_facts::{PodFacts, Resources, Spec};
use crate::pod::decoded::Decoded;
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::resources::OwnDefaults;
use crate::snapshot::Snapshot;

/// Goes on with what sets decided about a new pod.
///
/// # Errors
/// [`Unserved`] when no decision is possible.
pub fn mutate(
    mut verdict: Verdict,
    request: &Request<'_, Decoded<PodView<'_>>>,
    snapshot: &Snapshot,
) -> Result<Verdict, Unserved> {
    if snapshot.limit_ranges.is_empty() || !creates(request) || matches!(verdict.outcome, Outcome::Denied(_)) {
        return Ok(verdict);
    }
    let concerned = concerned(snapshot, &request.namespace, CompiledRange::fills)?;
    verdict.warnings.extend(concerned.warnings);
    let defaults = Defaults::of(&concerned.objects);
    if defaults.is_empty() {
        return Ok(verdict);
    }
    let mut patch = take_patch(&mut verdict);
    let filled = match patched(request, &patch)? {
        Ok(facts) => defaults.fill(&facts, request.deadline)?,
        Err(refusal) => return Ok(refused(verdict, *refusal)),
    };
    let Ok(filled) = filled else {
        return Ok(refused(verdict, (Reason::TOO_LARGE, too_large())));
    };
    patch.append(&filled.patch);
    verdict.outcome = Outcome::Patched(patch);
    if !filled.by.is_empty() {
        let (audit, count) = noted(filled.by.into_iter(), reasons::PLUGIN_CHANGED.as_str(), "changed");
        verdict.audit.push((AUDIT.into(), audit));
        verdict.counts.push(count);
        if says_little(verdict.reason) {
            set_reason(&mut verdict, reasons::PLUGIN_CHANGED);
        }
    }
    Ok(verdict)
}

/// What the own containers of a new pod are to get that lack requests or limits.
///
/// # Errors
/// As [`mutate`].
pub fn own_defaults(namespace: &str, snapshot: &Snapshot) -> Result<OwnDefaults, Unserved> {
    Ok(Defaults::of(&concerned(snapshot, namespace, CompiledRange::fills)?.objects).of_own_containers())
}

/// The refusal of a pod that has no room for what is filled in.
pub fn too_large() -> Denial {
    let message = "the pod is too large: with what ClusterLimitRanges fill in, it holds more than any API server stores; make it smaller";
    Denial::too_large(message)
}

/// Goes on with what sets found about a pod that is about to be stored.
///
/// # Errors
/// [`Unserved`] when no decision is possible.
pub fn validate(
    request: &Request<'_, Decoded<PodView<'_>>>,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> Result<(), Unserved> {
    if snapshot.limit_ranges.is_empty() || !creates(request) || findings.denial.is_some() {
        return Ok(());
    }
    let concerned = concerned(snapshot, &request.namespace, CompiledRange::bounds_pods)?;
    findings.warnings.extend(concerned.warnings);
    if concerned.objects.is_empty() {
        return Ok(());
    }
    match facts(request) {
        Ok(facts) => judge(&facts, &concerned.objects, request, findings),
        Err(refusal) => {
            findings.denial = Some(*refusal);
            Ok(())
        }
    }
}

/// Judges a pod by these ranges.
///
/// # Errors
/// [`Unserved::OutOfTime`] when the deadline passes.
pub fn judge<O>(
    pod: &PodFacts<'_>,
    ranges: &[&Arc<CompiledRange>],
    request: &Request<'_, O>,
    findings: &mut Findings,
) -> Result<(), Unserved> {
    let Some(spec) = &pod.spec else { return Ok(()) };
    let judgement = Judgement::of(ranges);
    // A container may name hundreds of resources.
    let usage = |resources| usage(resources, |name| judgement.is_about(name));
    let lists = [List::Containers, List::Init].into_iter().flat_map(|list| spec.list(list));
    let containers: Vec<Usage> = lists.map(|container| usage(container.resources.as_ref())).collect();
    let whole = whole(spec, &containers, &usage(spec.resources.as_ref()));
    if let Some(refusal) = judgement.of_pod(&containers, &whole, request.deadline)? {
        let message = forbidden("pods", pod.metadata.said_name(&request.name), &refusal.text);
        refuse(refusal.by, message, request, findings);
    }
    Ok(())
}

/// What is asked for, of the resources that are wanted.
pub fn usage(resources: Option<&Resources<'_>>, is_wanted: impl Fn(&str) -> bool) -> Usage {
    Usage {
        requests: amounts_of(resources.and_then(|all| all.requests), &is_wanted),
        limits: amounts_of(resources.and_then(|all| all.limits), &is_wanted),
    }
}

/// Refuses what ranges do not allow.
pub fn refuse<O>(by: BTreeSet<&str>, message: String, request: &Request<'_, O>, findings: &mut Findings) {
    let (audit, count) = noted(by.into_iter(), reasons::PLUGIN_DENIED.as_str(), "denied");
    findings.audit.push((AUDIT.into(), audit));
    findings.counts.push(count);
    refuse_after_all(findings, reasons::PLUGIN_DENIED, Denial::forbidden(request, message));
}

/// What a pod asks for as a whole (`podRequests`, `podLimits`): what is asked for the pod goes before what its containers ask for.
fn whole(spec: &Spec<'_>, containers: &[Usage], of_pod: &Usage) -> Usage {
    let (own, init) = containers.split_at_checked(spec.list(List::Containers).len()).unwrap_or_default();
    let together = |part: fn(&Usage) -> &Amounts| {
        let init = spec.list(List::Init).iter().map(is_sidecar).zip(init);
        let mut all = sum(own.iter().map(part), init.map(|(is_sidecar, usage)| (is_sidecar, part(usage))));
        let of_pod = part(of_pod).iter().filter(|(name, _)| ["cpu", "memory"].contains(&name.as_str()));
        all.extend(of_pod.map(|(name, amount)| (name.clone(), amount.clone())));
        all
    };
    Usage { requests: together(|usage| &usage.requests), limits: together(|usage| &usage.limits) }
}
