//! What several deciders on one request make of their reason codes and refusals.

use admission::bounded::ellipsis;
use admission::reply::{Cause, Outcome};
use admission::{Denial, Findings, PatchWriter, Reason, Verdict};

use crate::reasons;

/// Key of the audit annotation with the reason.
pub const REASON: &str = "reason";

/// Faults that a refusal names, each in so many characters at most: of any number of sets, each may find one.
const NAMED: usize = 10;
const CHARS: usize = 2048;

/// Whether the code of a later decider says more.
pub fn says_little(reason: Reason) -> bool {
    matches!(reason, reasons::NO_MATCH | reasons::ALLOWED)
}

/// Refuses, and gives the audit log the reason.
pub fn refuse(findings: &mut Findings, reason: Reason, denial: Denial) {
    findings.audit.push((REASON.into(), reason.as_str().to_owned()));
    findings.denial = Some((reason, denial));
}

/// The same where an earlier decider gave the audit log another reason.
pub fn refuse_after_all(findings: &mut Findings, reason: Reason, denial: Denial) {
    findings.audit.retain(|(key, _)| *key != REASON);
    refuse(findings, reason, denial);
}

/// Puts the reason in place of the one that an earlier decider gave.
pub fn set_reason(verdict: &mut Verdict, reason: Reason) {
    verdict.reason = reason;
    verdict.audit.retain(|(key, _)| *key != REASON);
    verdict.audit.push((REASON.into(), reason.as_str().to_owned()));
}

/// Takes the patch of earlier deciders out of a verdict, to go on with it.
pub fn take_patch(verdict: &mut Verdict) -> PatchWriter {
    match std::mem::take(&mut verdict.outcome) {
        Outcome::Patched(patch) => patch,
        _ => PatchWriter::default(),
    }
}

/// The refusal of a pod that earlier deciders would have changed.
pub fn refused(mut verdict: Verdict, (reason, denial): (Reason, Denial)) -> Verdict {
    set_reason(&mut verdict, reason);
    // Nothing is injected into a pod that is refused.
    verdict.audit.retain(|(key, _)| *key != "sets");
    verdict.outcome = Outcome::Denied(Box::new(denial));
    verdict
}

/// The first of several texts in one, and how many more there are.
pub fn first_named(texts: &[String], separator: &str) -> String {
    let more = texts.len().saturating_sub(NAMED);
    let mut named: Vec<String> = texts.iter().take(NAMED).map(|text| ellipsis(text, CHARS)).collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join(separator)
}

/// The first of several causes, and one that counts the rest: beside the name of an object, kubectl prints causes in place of the message.
pub fn first_causes(mut causes: impl ExactSizeIterator<Item = Cause>) -> Vec<Cause> {
    let more = causes.len().saturating_sub(NAMED);
    let cut = |cause: Cause| Cause { message: ellipsis(&cause.message, CHARS), ..cause };
    let mut first: Vec<Cause> = causes.by_ref().take(NAMED).map(cut).collect();
    first.extend(causes.next().map(|next| Cause {
        message: format!("and {more} more"),
        field: "spec".to_owned(),
        ..next
    }));
    first
}
