//! Pods that are resized.

use admission::{Findings, Mutating, ObjectLimit, Reason, Request, Unserved, Validating, Verdict};

use super::pods::{judge, too_large};
use super::scope::concerned;
use super::{AUDIT, noted};
use crate::limitrange::compiled::CompiledRange;
use crate::limitrange::defaults::Defaults;
use crate::plugins::endpoints::pods::staying;
use crate::plugins::pod_facts::PodFacts;
use crate::pod::decoded::Decoded;
use crate::pod::limits;
use crate::reasons;
use crate::snapshot::Snapshot;

/// The endpoint that fills in what is open.
pub struct ResizeMutation;

impl Mutating<Snapshot> for ResizeMutation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        let (Some(pod), Some(old)) = (&request.object, &request.old_object) else {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        };
        if old.even_if_cut().metadata.deletion_timestamp.is_some() {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        }
        let concerned = concerned(snapshot, &request.namespace, CompiledRange::fills)?;
        let defaults = Defaults::of(&concerned.objects);
        let mut verdict = Verdict::allow(reasons::NO_MATCH);
        verdict.warnings = concerned.warnings;
        if defaults.is_empty() {
            return Ok(verdict);
        }
        let pod = match pod.whole() {
            Ok(pod) => pod,
            Err(exceeded) => return Ok(Verdict::deny(Reason::TOO_LARGE, limits::too_large(exceeded))),
        };
        let Ok(filled) = defaults.fill_resized(pod, request.deadline)? else {
            return Ok(Verdict::deny(Reason::TOO_LARGE, too_large()));
        };
        if filled.by.is_empty() {
            verdict.reason = reasons::ALLOWED;
            return Ok(verdict);
        }
        let mut patched = Verdict::patch(reasons::PLUGIN_CHANGED, filled.patch);
        patched.warnings = verdict.warnings;
        let (audit, count) = noted(filled.by.into_iter(), reasons::PLUGIN_CHANGED.as_str(), "changed");
        patched.audit.push((AUDIT.into(), audit));
        patched.counts.push(count);
        Ok(patched)
    }
}

/// The endpoint that judges what is to be stored.
pub struct PodResizeValidation;

impl Validating<Snapshot> for PodResizeValidation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    /// What is read of a pod is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        let Some((pod, Some(_))) = staying(request, findings) else { return Ok(()) };
        let concerned = concerned(snapshot, &request.namespace, CompiledRange::bounds_pods)?;
        findings.warnings.extend(concerned.warnings);
        if concerned.objects.is_empty() {
            return Ok(());
        }
        findings.reason = reasons::ALLOWED;
        match pod.whole() {
            Ok(pod) => judge(pod, &concerned.objects, request, findings),
            Err(exceeded) => {
                findings.denial = Some((Reason::TOO_LARGE, limits::too_large(exceeded)));
                Ok(())
            }
        }
    }
}
