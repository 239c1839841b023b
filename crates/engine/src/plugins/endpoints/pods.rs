//! New pods: plugins follow the sidecars, in the call for pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::reply::Outcome;
use admission::review::UserInfo;
use admission::{Denial, Findings, Operation, PatchWriter, Reason, Request, Unserved, Verdict};

use super::report::Report;
use super::scope::{ConcernedPlugins, binds, cannot_tell, concerned, refuse_unread};
use crate::outcome::{refuse_after_all, refused, says_little, set_reason, take_patch};
use crate::plugins::Plugin;
use crate::plugins::compiled::{At, CompiledPlugin, Mode, Settings};
use crate::plugins::placement::Placement;
use crate::plugins::pod_facts::{PodFacts, Spec};
use crate::pod::borrowed_map::BorrowedMap;
use crate::pod::decoded::Decoded;
use crate::pod::limits::{self, Exceeded};
use crate::pod::view::{MIRROR_ANNOTATION, PodView};
use crate::reasons;
use crate::snapshot::Snapshot;

/// Group of the kubelets. Anybody can write the annotation.
const NODES: &str = "system:nodes";

/// Whether a request is for a new pod.
pub fn creates(request: &Request<'_, Decoded<PodView<'_>>>) -> bool {
    request.operation == Operation::Create && request.object.is_some()
}

/// Goes on with what sets decided about a new pod.
///
/// # Errors
/// [`Unserved`] when no decision is possible.
pub fn mutate(
    mut verdict: Verdict,
    request: &Request<'_, Decoded<PodView<'_>>>,
    snapshot: &Snapshot,
) -> Result<Verdict, Unserved> {
    if snapshot.plugins.is_empty() || !creates(request) || matches!(verdict.outcome, Outcome::Denied(_)) {
        return Ok(verdict);
    }
    let chosen = CompiledPlugin::mutates;
    let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
    verdict.warnings.extend(concerned.warnings);
    if concerned.plugins.is_empty() {
        return Ok(verdict);
    }
    let mut patch = take_patch(&mut verdict);
    let mut report = Report::default();
    let added = {
        let mut facts = match patched(request, &patch)? {
            Ok(facts) => facts,
            Err(refusal) if is_unread(&refusal) && !binds(&concerned.plugins) => {
                verdict.warnings.extend(cannot_tell(&concerned.plugins, &refusal.1.message));
                verdict.outcome = Outcome::Patched(patch);
                return Ok(verdict);
            }
            Err(refusal) => return Ok(refused(verdict, *refusal)),
        };
        let PodFacts { metadata, spec } = &mut facts;
        let Some(spec) = spec else {
            verdict.outcome = Outcome::Patched(patch);
            return Ok(verdict);
        };
        let at = At {
            is_mirror: is_mirror(metadata.annotations.as_ref(), &request.user_info),
            ..at(request, metadata.said_name(&request.name), concerned.placement)
        };
        let before = spec.count_of_tolerations();
        // What is stored would be refused when it is validated.
        if let Some(exceeded) = change(spec, concerned.plugins, &at, request, &mut report)? {
            return Ok(refused(verdict, (Reason::TOO_LARGE, limits::too_large(exceeded))));
        }
        spec.patch(before)
    };
    patch.append(&added);
    verdict.warnings.append(&mut report.warnings);
    verdict.audit.extend(report.audit());
    verdict.counts.extend(report.counts());
    let reason = report.reason();
    if let Some(denial) = report.denial {
        return Ok(refused(verdict, (reasons::PLUGIN_DENIED, denial)));
    }
    if let Some(reason) = reason.filter(|_| says_little(verdict.reason)) {
        set_reason(&mut verdict, reason);
    }
    verdict.outcome = Outcome::Patched(patch);
    Ok(verdict)
}

/// Makes the changes of all plugins, up to the first that refuses the pod. Returns the limit of tolerations where there are more then.
fn change<'s>(
    spec: &mut Spec<'_>,
    plugins: Vec<(&'s Arc<CompiledPlugin>, bool)>,
    at: &At<'_>,
    request: &Request<'_, Decoded<PodView<'_>>>,
    report: &mut Report<'s>,
) -> Result<Option<Exceeded>, Unserved> {
    for (plugin, is_exempt) in plugins {
        request.deadline.check()?;
        match plugin.change(spec, at) {
            Ok(change) => {
                if report.changes((plugin, is_exempt), &change) {
                    spec.apply(change);
                }
                if let Some(exceeded) = spec.too_many_tolerations() {
                    return Ok(Some(exceeded));
                }
            }
            Err(message) => {
                if report.checks((plugin, is_exempt), Err(message), request) {
                    break;
                }
            }
        }
    }
    Ok(None)
}

/// What the node selector of a pod that this user creates gets under these keys, if it has nothing there.
///
/// # Errors
/// As [`mutate`].
pub fn node_labels(
    keys: &[&'static str],
    namespace: &str,
    user: &UserInfo<'_>,
    snapshot: &Snapshot,
) -> Result<BTreeMap<&'static str, String>, Unserved> {
    let chosen =
        |one: &CompiledPlugin| matches!(one.settings, Settings::PodNodeSelector(_)) && one.mode == Mode::Enforce;
    let ConcernedPlugins { plugins, placement, .. } = concerned(snapshot, namespace, user, chosen)?;
    let at = At { namespace, name: "", user: &user.username, placement, is_mirror: false };
    let mut found = BTreeMap::new();
    for (plugin, _) in plugins.into_iter().filter(|(_, is_exempt)| !is_exempt) {
        let Settings::PodNodeSelector(settings) = &plugin.settings else { continue };
        for key in keys {
            if let Some(value) = settings.given(key, &at) {
                found.entry(*key).or_insert_with(|| value.to_owned());
            }
        }
    }
    Ok(found)
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
    if snapshot.plugins.is_empty() || !creates(request) || findings.denial.is_some() {
        return Ok(());
    }
    // What a mutator would change was said when it did not; and while replicas get to know it, not each of them does.
    let judges = |one: &CompiledPlugin| one.plugin.is_of_pods() && (!one.mutates() || one.judges_changes());
    let mut concerned = concerned(snapshot, &request.namespace, &request.user_info, judges)?;
    findings.warnings.append(&mut concerned.warnings);
    concerned.plugins.sort_by_key(|(one, _)| judging_order(one.plugin));
    if concerned.plugins.is_empty() {
        return Ok(());
    }
    let facts = match facts(request) {
        Ok(facts) => facts,
        Err(refusal) if is_unread(&refusal) => {
            refuse_unread(&concerned.plugins, refusal.1, findings);
            return Ok(());
        }
        Err(refusal) => {
            findings.denial = Some(*refusal);
            return Ok(());
        }
    };
    let Some(spec) = &facts.spec else { return Ok(()) };
    let mut report = Report::default();
    let at = At {
        is_mirror: is_mirror(facts.metadata.annotations.as_ref(), &request.user_info),
        ..at(request, facts.metadata.said_name(&request.name), concerned.placement)
    };
    // Of a mutator that was said when it changed nothing.
    concerned.plugins.retain(|(plugin, is_exempt)| !(*is_exempt && plugin.mutates()));
    report.judge(concerned.plugins, request, |plugin| Ok(plugin.check(spec, &at)))?;
    report.add_to(findings);
    let reason = report.reason();
    if let Some(denial) = report.denial {
        refuse_after_all(findings, reasons::PLUGIN_DENIED, denial);
    } else if let Some(reason) = reason.filter(|_| says_little(findings.reason)) {
        findings.reason = reason;
    }
    Ok(())
}

/// The API server judges topology before it judges what mutators left.
const fn judging_order(plugin: Plugin) -> u8 {
    match plugin {
        Plugin::LimitPodHardAntiAffinityTopology => 0,
        _ => 1,
    }
}

/// Where a decision is taken about an object that no kubelet made.
pub fn at<'r, O>(request: &'r Request<'_, O>, name: &'r str, placement: Option<&'r Placement>) -> At<'r> {
    At { namespace: &request.namespace, name, user: &request.user_info.username, placement, is_mirror: false }
}

/// Whether a kubelet creates the object of a static pod.
pub fn is_mirror(annotations: Option<&BorrowedMap<'_>>, user: &UserInfo<'_>) -> bool {
    is_mirrored_by(annotations.is_some_and(|annotations| annotations.get(MIRROR_ANNOTATION).is_some()), user)
}

/// Whether a pod with the annotation, or without it, is one that a kubelet creates.
pub fn is_mirrored_by(is_annotated: bool, user: &UserInfo<'_>) -> bool {
    is_annotated && user.groups.contains(NODES)
}

/// What plugins read of a pod, or why it cannot be read.
pub type Readable<'a> = Result<PodFacts<'a>, Box<(Reason, Denial)>>;

/// The pod as it is after a patch.
///
/// # Errors
/// [`Unserved::Fault`] when the patch is no patch.
pub fn patched<'p, 'a: 'p>(
    request: &Request<'a, Decoded<PodView<'a>>>,
    patch: &'p PatchWriter,
) -> Result<Readable<'p>, Unserved> {
    let mut facts: PodFacts<'p> = match facts(request) {
        Ok(facts) => facts,
        Err(refusal) => return Ok(Err(refusal)),
    };
    facts.follow(patch.document()).map_err(|_| Unserved::Fault)?;
    Ok(Ok(facts))
}

/// The object that a request stores and, of an update, as it is stored. None where that one is being deleted: it must be able to lose its
/// finalizers, whatever anybody decides.
pub fn staying<'r, 'a>(
    request: &'r Request<'a, Decoded<PodFacts<'a>>>,
    findings: &mut Findings,
) -> Option<(&'r Decoded<PodFacts<'a>>, Option<&'r Decoded<PodFacts<'a>>>)> {
    findings.reason = reasons::NO_MATCH;
    let (new, old) = findings.stored(request)?;
    let is_leaving = old.is_some_and(|old| old.even_if_cut().metadata.deletion_timestamp.is_some());
    (!is_leaving).then_some((new, old))
}

/// The pod as it came.
///
/// # Errors
/// Why it cannot be read.
pub fn facts<'a>(request: &Request<'a, Decoded<PodView<'a>>>) -> Readable<'a> {
    let undecodable = |message: String| Box::new((Reason::UNDECODABLE, Denial::bad_request(message)));
    let Some(pod) = &request.object else { return Ok(PodFacts::default()) };
    let facts = PodFacts::of_view(pod).map_err(|error| undecodable(error.to_string()))?;
    facts.into_whole().map_err(|exceeded| Box::new((Reason::TOO_LARGE, limits::too_large(exceeded))))
}

/// Whether a pod is refused for its size.
fn is_unread(refusal: &(Reason, Denial)) -> bool {
    refusal.0 == Reason::TOO_LARGE
}
