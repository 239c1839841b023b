//! The reply side: a verdict, written as an `AdmissionReview`.
//!
//! What the API server checks is in `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`
//! (`VerifyAdmissionResponse`); how a denial becomes the user's error in `.../webhook/errors/statuserror.go`.

use std::borrow::Cow;
use std::collections::HashSet;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::sync::LazyLock;

use base64::Engine as _;
use serde::Serialize;

use crate::bounded::ellipsis;
use crate::field::{ErrorList, quote};
use crate::patch::PatchWriter;
use crate::reason::Reason;
use crate::review::{Request, Review, ReviewVersion};

#[cfg(test)]
mod tests;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static BASE64: LazyLock<base64::engine::Simd> =
    LazyLock::new(|| base64::engine::Simd::standard(base64::engine::general_purpose::PAD));

// The crate has no faster engine for other processors.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use base64::engine::general_purpose::STANDARD as BASE64;

/// Total runes of warnings above which the API server starts to shorten them, and each one's share then
/// (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`).
const WARNING_TOTAL_RUNES: usize = 4096;
const WARNING_ITEM_RUNES: usize = 256;

/// A refusal that the user sees; no `failurePolicy` softens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// HTTP code of the user's error. The API server raises what is below 400 to 400.
    pub code: u16,
    /// `metav1.StatusReason`, such as `Invalid` or `Forbidden`.
    pub status_reason: &'static str,
    /// The sentence for the user.
    pub message: String,
    /// The object that was refused.
    pub details: Details,
    /// One entry a fault.
    pub causes: Vec<Cause>,
}

/// The object a denial is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Name, empty where the API server has not chosen one yet.
    pub name: String,
    /// API group.
    pub group: String,
    /// The kind of the object.
    pub kind: String,
}

/// One fault of a denied object: `metav1.StatusCause`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// `metav1.CauseType`, such as `FieldValueRequired`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// Where it is wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Denial {
    /// 422 Invalid with every fault of the list, in the words of `k8s.io/apimachinery/pkg/api/errors` (`NewInvalid`).
    pub fn invalid<O>(request: &Request<'_, O>, errors: &ErrorList) -> Self {
        let details = Details::of(request);
        let qualified =
            if details.group.is_empty() { details.kind.clone() } else { format!("{}.{}", details.kind, details.group) };
        let faults = if errors.is_empty() { String::new() } else { format!(": {errors}") };
        let causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.reason().to_owned(),
                message: error.message(),
                field: error.field.clone(),
            })
            .collect();
        Self {
            code: 422,
            status_reason: "Invalid",
            message: format!("{qualified} {} is invalid{faults}", quote(&details.name)),
            details,
            causes,
        }
    }

    /// 403 Forbidden: a policy, not the object's shape, is against it.
    pub fn forbidden<O>(request: &Request<'_, O>, message: impl Into<String>) -> Self {
        Self {
            code: 403,
            status_reason: "Forbidden",
            message: message.into(),
            details: Details::of(request),
            causes: Vec::new(),
        }
    }

    /// 400 `BadRequest`: the object cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: 400,
            status_reason: "BadRequest",
            message: message.into(),
            details: Details::default(),
            causes: Vec::new(),
        }
    }

    /// 422 Invalid: the object is larger than what is read of one. `limit` names the limit and what was found. Without the object's
    /// name: beside a name, kubectl prints causes in place of the message (`checkErr` of k8s.io/kubectl/pkg/cmd/util).
    pub fn too_large(limit: impl Into<String>) -> Self {
        Self {
            code: 422,
            status_reason: "Invalid",
            message: limit.into(),
            details: Details::default(),
            causes: Vec::new(),
        }
    }

    /// 409 Conflict: the object clashes with what is there; reading it again and retrying may help.
    pub fn conflict<O>(request: &Request<'_, O>, message: impl Into<String>) -> Self {
        Self { code: 409, status_reason: "Conflict", ..Self::forbidden(request, message) }
    }

    /// 429 `TooManyRequests`: a rate limit that is a verdict. For a server that has no time to decide there is
    /// [`Unserved::Overloaded`](crate::Unserved::Overloaded).
    pub fn too_many_requests<O>(request: &Request<'_, O>, message: impl Into<String>) -> Self {
        Self { code: 429, status_reason: "TooManyRequests", ..Self::forbidden(request, message) }
    }

    /// Adds causes with field paths.
    #[must_use]
    pub fn with_causes(mut self, causes: impl IntoIterator<Item = Cause>) -> Self {
        self.causes.extend(causes);
        self
    }
}

impl Details {
    fn of<O>(request: &Request<'_, O>) -> Self {
        Self {
            name: request.name.to_string(),
            group: request.kind.group.to_string(),
            kind: request.kind.kind.to_string(),
        }
    }
}

/// What was decided about the object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The request is allowed, and the object stays as it is.
    #[default]
    Allowed,
    /// With this JSON patch. An empty patch is the same as [`Outcome::Allowed`].
    Patched(PatchWriter),
    /// The request is refused, whatever the failure policy.
    Denied(Box<Denial>),
}

/// A decision with everything that explains it.
///
/// ```
/// use admission::{Denial, Reason, Review, Verdict};
/// let review: Review = Review::parse(br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
///     "request":{"uid":"1","operation":"CREATE"}}"#)?;
/// let denial = Denial::forbidden(&review.request, "backups are closed on Sundays");
/// let verdict = Verdict::deny(Reason::new("Closed"), denial).warn("try again on Monday").audit("reason", "Closed");
/// let reply = review.reply(&verdict);
/// assert!(reply.starts_with(br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"1","allowed":false,"#));
/// # Ok::<(), admission::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub outcome: Outcome,
    /// The reason code.
    pub reason: Reason,
    /// Sentences that the user's client prints, whatever the decision.
    pub warnings: Vec<String>,
    /// Entries for the audit log. The API server puts the webhook's name and a slash in front of each key.
    pub audit: Vec<(Cow<'static, str>, String)>,
    /// What a server counts beside the decision itself.
    pub counts: Vec<Count>,
}

/// One thing that is counted: who decided, in which mode, and what. Words of closed lists, as labels of a metric are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Count {
    /// Who decided.
    pub by: &'static str,
    /// In which mode.
    pub mode: &'static str,
    /// What it decided, as the value of a label.
    pub verdict: &'static str,
}

impl Verdict {
    /// Allows the request and leaves the object as it is.
    pub const fn allow(reason: Reason) -> Self {
        Self { outcome: Outcome::Allowed, reason, warnings: Vec::new(), audit: Vec::new(), counts: Vec::new() }
    }

    /// Allowed with changes; an empty patch is no change.
    pub fn patch(reason: Reason, patch: PatchWriter) -> Self {
        let outcome = if patch.is_empty() { Outcome::Allowed } else { Outcome::Patched(patch) };
        Self { outcome, reason, warnings: Vec::new(), audit: Vec::new(), counts: Vec::new() }
    }

    /// A refusal.
    pub fn deny(reason: Reason, denial: Denial) -> Self {
        Self {
            outcome: Outcome::Denied(Box::new(denial)),
            reason,
            warnings: Vec::new(),
            audit: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Adds a warning.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Adds an audit annotation. `key` must not hold a slash.
    #[must_use]
    pub fn audit(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.audit.push((key.into(), value.into()));
        self
    }
}

impl<O> Review<'_, O> {
    /// Writes the reply to this review.
    pub fn reply(&self, verdict: &Verdict) -> Vec<u8> {
        write(self.version, &self.request.uid, verdict)
    }
}

pub(crate) fn write(version: ReviewVersion, uid: &str, verdict: &Verdict) -> Vec<u8> {
    let patch_len = match &verdict.outcome {
        Outcome::Patched(patch) => patch.len().div_ceil(3) * 4 + 64,
        _ => 0,
    };
    let mut out = Vec::with_capacity(256 + patch_len);
    out.extend_from_slice(b"{\"apiVersion\":\"");
    out.extend_from_slice(version.as_str().as_bytes());
    out.extend_from_slice(b"\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":");
    json(&mut out, uid);
    match &verdict.outcome {
        Outcome::Allowed => out.extend_from_slice(b",\"allowed\":true"),
        Outcome::Patched(patch) if patch.is_empty() => out.extend_from_slice(b",\"allowed\":true"),
        Outcome::Patched(patch) => write_patch(&mut out, patch),
        Outcome::Denied(denial) => write_status(&mut out, denial),
    }
    let warnings = presentable(&verdict.warnings);
    if !warnings.is_empty() {
        out.extend_from_slice(b",\"warnings\":");
        json(&mut out, &warnings);
    }
    if !verdict.audit.is_empty() {
        out.extend_from_slice(b",\"auditAnnotations\":{");
        for (index, (key, value)) in verdict.audit.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json(&mut out, key);
            out.push(b':');
            json(&mut out, value);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
    out
}

fn write_patch(out: &mut Vec<u8>, patch: &PatchWriter) {
    out.extend_from_slice(b",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"");
    let document = patch.document();
    let start = out.len();
    out.resize(start + document.len().div_ceil(3) * 4, 0);
    if let Some(target) = out.get_mut(start..) {
        // The slice is exactly as long as the encoding, so this cannot fail.
        let written = BASE64.encode_slice(document, target).unwrap_or(0);
        out.truncate(start + written);
    }
    out.push(b'"');
}

fn write_status(out: &mut Vec<u8>, denial: &Denial) {
    out.extend_from_slice(b",\"allowed\":false,\"status\":");
    let details = StatusDetails {
        name: &denial.details.name,
        group: &denial.details.group,
        kind: &denial.details.kind,
        causes: &denial.causes,
    };
    let status = Status {
        outcome: "Failure",
        message: &denial.message,
        reason: denial.status_reason,
        details: (details != StatusDetails::default()).then_some(details),
        code: denial.code,
    };
    json(out, &status);
}

/// `metav1.Status`, with its fields in the order of the Go type.
#[derive(Serialize)]
struct Status<'d> {
    #[serde(rename = "status")]
    outcome: &'static str,
    message: &'d str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<StatusDetails<'d>>,
    code: u16,
}

#[derive(Default, PartialEq, Serialize)]
struct StatusDetails<'d> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'d str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'d str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'d str,
    #[serde(skip_serializing_if = "<[Cause]>::is_empty")]
    causes: &'d [Cause],
}

fn json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Strings, lists and maps with string keys always serialise, and a Vec takes every byte.
    let _ = serde_json::to_writer(out, value);
}

/// Warnings as they survive the way to the user: one line each, within the API server's limits.
///
/// They travel in an HTTP header, where a control character makes the API server drop the whole warning. It drops
/// empty and repeated ones too, so they must not use up the limit here.
fn presentable(warnings: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let lines: Vec<String> = warnings
        .iter()
        .map(|warning| warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>())
        .filter(|line| !line.is_empty() && seen.insert(line.clone()))
        .collect();
    let total: usize = lines.iter().map(|line: &String| line.chars().count()).sum();
    if total <= WARNING_TOTAL_RUNES {
        return lines;
    }
    let keep = WARNING_TOTAL_RUNES / WARNING_ITEM_RUNES - 1;
    let dropped = lines.len().saturating_sub(keep);
    let mut short: Vec<String> = lines.into_iter().take(keep).map(shorten).collect();
    if dropped > 0 {
        let subject = if dropped == 1 { "warning was" } else { "warnings were" };
        short.push(format!("{dropped} more {subject} left out"));
    }
    short
}

fn shorten(line: String) -> String {
    if line.chars().nth(WARNING_ITEM_RUNES).is_some() { ellipsis(&line, WARNING_ITEM_RUNES - 1) } else { line }
}
